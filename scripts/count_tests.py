"""Prints how many tests of all suites passed and failed, from ctest's report.

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
}


def main() -> None:
    """Sums over the suites; one without counts is one test."""
    total = {"passed": 0, "failed": 0}
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
        print(
            f"{case.get('name')}: {counts['passed']} passed, "
            f"{counts['failed']} failed in {float(case.get('time', 0)):.1f} s"
        )
        for what in total:
            total[what] += counts[what]
    print(f"{total['passed']} passed, {total['failed']} failed")


if __name__ == "__main__":
    main()
