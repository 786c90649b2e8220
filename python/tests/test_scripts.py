"""The scripts that people and machines read the results of."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]

REPORT = """<testsuite>
<testcase name="lit" status="run" time="1.5"><system-out>
Total Discovered Tests: 12
  Unsupported: 1 (8.33%)
  Passed     : 10 (83.33%)
  Expectedly Failed: 1 (8.33%)
</system-out></testcase>
<testcase name="pytest" status="fail" time="2"><failure/><system-out>
=== 2 failed, 5 passed, 1 skipped, 1 error in 1.2s ===
</system-out></testcase>
<testcase name="PlannerTests" status="run" time="0.1"><system-out>
[==========] 7 tests from 2 test suites ran. (3 ms total)
[  PASSED  ] 7 tests.
</system-out></testcase>
<testcase name="Broken" status="fail" time="0.1"><system-out>
[  PASSED  ] 6 tests.
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] A.B
</system-out></testcase>
<testcase name="silent" status="run" time="0"/>
<testcase name="crashed" status="fail" time="0"/>
</testsuite>
"""


def test_counting_tests(tmp_path):
    report = tmp_path / "tests.xml"
    report.write_text(REPORT)
    lines = subprocess.run(
        [sys.executable, ROOT / "scripts" / "count_tests.py", report],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert lines[:3] == [
        "lit: 11 passed, 0 failed in 1.5 s",
        "pytest: 5 passed, 3 failed in 2.0 s",
        "PlannerTests: 7 passed, 0 failed in 0.1 s",
    ]
    assert lines[3].startswith("Broken: 6 passed, 2 failed")
    assert lines[4].startswith("silent: 1 passed, 0 failed")
    assert lines[5].startswith("crashed: 0 passed, 1 failed")
    assert lines[-1] == "30 passed, 6 failed"
