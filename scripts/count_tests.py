"""Prints how many tests of all suites passed, failed and were skipped, from
ctest's report.

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


def main() -> None:
    """Sums over the suites; one without counts is one test."""
    total = dict.fromkeys(PATTERNS, 0)
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
        seconds = float(case.get("time", 0))
        print(f"{case.get('name')}: {describe(counts)} in {seconds:.1f} s")
        # What pytest says of them with -rs: how many, where and why.
        for line in re.findall(r"^SKIPPED (\[\d+\] .*)", output, re.M):
            print(f"  skipped: {line}")
        for what in total:
            total[what] += counts[what]
    print(describe(total))


def describe(counts: dict[str, int]) -> str:
    """As "8 passed, 0 failed, 1 skipped"."""
    return ", ".join(f"{number} {what}" for what, number in counts.items())


if __name__ == "__main__":
    main()
