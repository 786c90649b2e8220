"""Follows the links of Markdown pages: check_links.py ROOT

In: all pages below ROOT, of a repository those that git knows. A link to a
file must lead to one that exists, one to a heading (#...) to a heading of that
page, as GitHub and the site name them. Links to other sites are not followed.
Prints each broken link as `page:line: link`, else how many there are.
"""

import pathlib
import re
import subprocess
import sys
from functools import cache

LINK = re.compile(r"(?<!!)\[[^]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)


def blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


@cache
def headings(page: pathlib.Path) -> set[str]:
    """The names of a page's headings, of equal ones the second with -1."""
    names: set[str] = set()
    text = FENCE.sub(blank, page.read_text())
    for title in re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = 0
        while (f"{name}-{number}" if number else name) in names:
            number += 1
        names.add(f"{name}-{number}" if number else name)
    return names


def follow_links(
    root: pathlib.Path, page: pathlib.Path
) -> tuple[int, list[str]]:
    """How many links a page has, and those that are broken."""
    text = FENCE.sub(blank, page.read_text())
    bad = []
    count = 0
    for match in LINK.finditer(text):
        if re.match(r"[a-z]+:", match[1]):
            continue
        count += 1
        file, _, heading = match[1].partition("#")
        target = (page.parent / file).resolve() if file else page
        known = target.exists()
        if known and heading and target.suffix == ".md":
            known = heading in headings(target)
        if not known:
            line = text.count("\n", 0, match.start()) + 1
            bad.append(f"{page.relative_to(root)}:{line}: {match[1]}")
    return count, bad


def find_pages(root: pathlib.Path) -> list[pathlib.Path]:
    if not (root / ".git").exists():
        pages = sorted(root.rglob("*.md"))
        own = [path.relative_to(root).parts for path in pages]
        return [
            page
            for page, parts in zip(pages, own)
            if parts[0] not in (".venv", "build")
        ]
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.md"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [root / name for name in sorted(listed.stdout.split("\n")) if name]


def main(argument: str) -> None:
    root = pathlib.Path(argument).resolve()
    total = 0
    bad = []
    for page in find_pages(root):
        count, wrong = follow_links(root, page)
        total += count
        bad += wrong
    print("\n".join(bad) or f"{total} links lead somewhere")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main(sys.argv[1])
