"""What the site has beside docs/: a hook of MkDocs (mkdocs.yml).

In: the pages of docs/. Out: the same, README.md as the first page, CHANGELOG.md
and the READMEs of examples/ as pages; what pages link to outside of docs/ (a
source file, a script) lies below source/ in the site, as it is.
"""

from __future__ import annotations

import os
import pathlib
import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Files outside of docs/ that are pages of the site, by where they lie there.
PAGES = {
    "index.md": "README.md",
    "changes.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "examples/gpt.md": "examples/gpt/README.md",
    "examples/strategies.md": "examples/strategies/README.md",
}
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(#[^)\s]*)?(?=\))")


def site_path(target: pathlib.Path) -> str:
    """Where a file or folder of the repository lies in the site."""
    name = target.relative_to(ROOT).as_posix()
    for page, source in PAGES.items():
        if name == source:
            return page
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return f"source/{name}"


def rewrite(
    text: str,
    page: str,
    folder: pathlib.Path,
    files: Files,
    config: MkDocsConfig,
) -> str:
    """The text with links as the site has them.

    `page` is its place in the site, `folder` the one that its links are
    relative to; what they need below source/ is added to `files`.
    """

    def replace(match: re.Match[str]) -> str:
        if re.match(r"[a-z]+:", match[1]):
            return match[0]
        target = (folder / match[1]).resolve()
        if not target.is_relative_to(ROOT) or not target.exists():
            return match[0]
        if target.is_dir():
            return match[0]  # The site has no listings of folders.
        place = site_path(target)
        if place.startswith("source/") and not files.get_file_from_path(place):
            files.append(
                File.generated(config, place, abs_src_path=str(target))
            )
        link = os.path.relpath(place, os.path.dirname(page) or ".")
        return link + (match[2] or "")

    return LINK.sub(replace, text)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for page, source in PAGES.items():
        path = ROOT / source
        text = rewrite(path.read_text(), page, path.parent, files, config)
        files.append(File.generated(config, page, content=text))
    for file in list(files.documentation_pages()):
        if file.src_uri not in PAGES and file.abs_src_path:
            path = pathlib.Path(file.abs_src_path)
            rewrite(path.read_text(), file.src_uri, path.parent, files, config)
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    name = page.file.src_uri
    if name in PAGES:
        return markdown
    path = ROOT / "docs" / name
    return rewrite(markdown, name, path.parent, files, config)
