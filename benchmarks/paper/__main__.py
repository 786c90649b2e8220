"""Regenerates docs/paper.md."""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time

os.environ["JAX_PLATFORMS"] = "cpu"

from paper import figures
from paper.figures import Numbers, Values, middle
from paper.page import Made, write
from paper.rows import EXPERTS, FAMILIES, Family, Make
from paper.simulate import ROOT, CannotBeMade


def attempt(make: Make, values: Values) -> Numbers | str:
    """The numbers, or why there are none."""
    try:
        return make(values)
    except CannotBeMade as error:
        return str(error)


def make_family(family: Family, is_quick: bool) -> Made:
    """All numbers of a family."""
    begin = time.perf_counter()
    made = Made(family)
    found = attempt(family.make, middle())
    if isinstance(found, str):
        made.why_not = found
    else:
        made.middle = found
        made.controls = [
            attempt(control.make, middle()) for control in family.controls
        ]
        for values in family.variations(compiles=not is_quick):
            numbers = attempt(family.make, values)
            if not isinstance(numbers, str):
                made.spread.append(numbers)
    seconds = time.perf_counter() - begin
    print(f"{family.name}: {seconds:.0f} s", file=sys.stderr, flush=True)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        default="",
        help="print rows whose family has this in its name",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="leave out ends of ranges for which steps are compiled anew",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="fail where the page is not what would be written",
    )
    options = parser.parse_args()
    all_made = [
        make_family(family, options.quick)
        for family in FAMILIES
        if options.only in family.name
    ]
    experts = {
        size: attempt(functools.partial(figures.experts, size=size), middle())
        for size, *_ in EXPERTS
        if options.only in f"M6-MoE-{size}"
    }
    text, pictures = write(all_made, experts, options.quick, "paper")
    if options.only:
        print(text)
        return
    page = ROOT / "docs" / "paper.md"
    folder = page.with_suffix("")
    files = {page: text} | {
        folder / name: picture for name, picture in pictures.items()
    }
    if options.check:
        changed = [
            str(file.relative_to(ROOT))
            for file, content in files.items()
            if not file.exists() or file.read_text() != content
        ]
        if changed:
            sys.exit(f"scripts/paper changes {', '.join(changed)}")
        return
    folder.mkdir(exist_ok=True)
    for file, content in files.items():
        file.write_text(content)
    print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
