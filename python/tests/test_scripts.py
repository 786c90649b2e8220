"""The scripts that people and machines read the results of."""

import argparse
import importlib
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
SKIPPED [1] test/Tools/test_slurm.py:9: needs root
=== 2 failed, 5 passed, 1 skipped, 1 error in 1.2s ===
</system-out></testcase>
<testcase name="PlannerTests" status="run" time="0.1"><system-out>
[==========] 7 tests from 2 test suites ran. (3 ms total)
[  PASSED  ] 7 tests.
[  SKIPPED ] 1 test, listed below:
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
        "lit: 11 passed, 0 failed, 1 skipped in 1.5 s",
        "pytest: 5 passed, 3 failed, 1 skipped in 2.0 s",
        "  skipped: [1] test/Tools/test_slurm.py:9: needs root",
    ]
    assert lines[3] == "PlannerTests: 7 passed, 0 failed, 1 skipped in 0.1 s"
    assert lines[4].startswith("Broken: 6 passed, 2 failed")
    assert lines[5].startswith("silent: 1 passed, 0 failed")
    assert lines[6].startswith("crashed: 0 passed, 1 failed")
    assert lines[-1] == "30 passed, 6 failed, 3 skipped"


def test_benchmark_table(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    cases = importlib.import_module("cases")
    report = importlib.import_module("report")
    names = [case.name for case in cases.CASES]
    assert len(set(names)) == len(names)
    assert all(c.own is None or c.own[0] in names for c in cases.CASES)
    results = {
        "gpt": {
            "seconds": {"whale": 0.1, "jax": 0.25},
            "processor_s": {"whale": 0.2, "jax": 0.3},
            "bytes": {"whale": 2e6, "jax": 1e6},
        },
        "gpt-split-4": {"seconds": {"whale": 0.2, "jax": 0.25}},
    }
    lines = report.table(report.rows(results)).splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines[2:]]
    found = [(c[2], c[3], c[6], c[7], c[9]) for c in cells]
    assert found == [
        ("1", "step", "2.50 x as fast", "1.50 x", "yes"),
        ("1", "memory", "2.00 x as much", "", "no"),
        ("4", "step", "1.25 x as fast", "", "no"),
        ("4", "step", "2.00 x as long", "", "no"),
    ]


def test_steps_beside_those_of_before(monkeypatch, capsys, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    before = importlib.import_module("before")
    (tmp_path / "python" / "whale").mkdir(parents=True)
    (tmp_path / "python" / "whale" / "whale-compile").touch()
    cases = {"gpt": [1.0, 1.02, 1.04], "lstm": [1.0, 1.0, 1.05]}
    monkeypatch.setattr(before, "measure", lambda case, *_: cases[case.name])
    options = argparse.Namespace(before=tmp_path, names=["gpt", "lstm"])
    assert before.main(options) == "slower than before: lstm, the mean"
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "| gpt | 1000.000 | 1020.000 | 1040.000 | 1.040 | yes |"
    assert lines[-1] == "geometric mean of the ratios: 1.045"
    options.names = ["gpt"]
    cases["gpt"][2] = 1.01
    assert before.main(options) is None
    options.before = tmp_path / "python"
    assert "not a checkout that is built" in str(before.main(options))


def test_processes_wait_for_the_slowest(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    process = importlib.import_module("process")
    answers = [{"seconds": [1, 5], "loss": 7}, {"seconds": [3, 4], "loss": 8}]
    assert process.slowest(answers) == {"seconds": [3, 4], "loss": 8}
