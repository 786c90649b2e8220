"""Prints how many tests of all suites passed, failed and were skipped, and what
those that failed printed, from ctest's report.

ctest knows one test for each suite; lit, pytest and GoogleTest say in their
output how many they ran.
"""

import re
import sys
from xml.etree import ElementTree

# The closing lines of the suites, by what they count.
PATTERNS = {
    "passed": (
        r"^  Passed *: *(\d+)",  # lit
        r"^  Expectedly Failed *: *(\d+)",
        r"(?:^|[ ,])(\d+) passed",  # pytest
        r"^\[  PASSED  \] (\d+) test",  # GoogleTest
    ),
    "failed": (
        r"^  (?:Failed|Unresolved|Timed Out|Unexpectedly Passed) *: *(\d+)",
        r"(?:^|[ ,])(\d+) (?:failed|error)",
        r"^\[  FAILED  \] (\d+) tests?, listed below",
    ),
    "skipped": (
        r"^  Unsupported *: *(\d+)",
        r"(?:^|[ ,])(\d+) skipped",
        r"^\[  SKIPPED \] (\d+) tests?, listed below",
    ),
}
# What a suite prints of one test that failed.
FAILURES = (
    r"^\*+ TEST '.*' FAILED \*+$.*?^\*{20}$",  # lit
    r"^_{3,} .* _{3,}$.*?(?=^(?:_{3,} .* _{3,}|=+ .* =+)$)",  # pytest
    r"^\[ RUN      \] (\S+)$(?:(?!^\[ RUN ).)*?^\[  FAILED  \] \1.*?$",
)


def main() -> None:
    """Sums over the suites; one without counts is one test."""
    total = dict.fromkeys(PATTERNS, 0)
    failures: list[str] = []
    for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        counts = {
            what: sum(
                int(number)
                for pattern in patterns
                for number in re.findall(pattern, output, re.M)
            )
            for what, patterns in PATTERNS.items()
        }
        ok = case.get("status") == "run"
        if ok and not counts["passed"]:
            counts["passed"] = 1
        if not ok and not counts["failed"]:
            counts["failed"] = 1
        if not ok:
            failures += find_failures(output)
        seconds = float(case.get("time", 0))
        print(f"{case.get('name')}: {describe(counts)} in {seconds:.1f} s")
        # What pytest says of them with -rs: how many, where and why.
        for line in re.findall(r"^SKIPPED (\[\d+\] .*)", output, re.M):
            print(f"  skipped: {line}")
        for what in total:
            total[what] += counts[what]
    for failure in failures:
        print(f"\n{failure}")
    print(describe(total))


def find_failures(output: str) -> list[str]:
    """What a suite printed of its failures; its end if it stopped short."""
    found = [
        match.group()
        for pattern in FAILURES
        for match in re.finditer(pattern, output, re.M | re.S)
    ]
    return found or [output[-10000:]]


def describe(counts: dict[str, int]) -> str:
    """As "8 passed, 0 failed, 1 skipped"."""
    return ", ".join(f"{number} {what}" for what, number in counts.items())


if __name__ == "__main__":
    main()
