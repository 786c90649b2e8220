"""The scripts that people and machines read the results of."""

import argparse
import importlib
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

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
    assert all(c.idle is None or c.idle in names for c in cases.CASES)
    results = {
        "gpt": {
            "seconds": {"whale": 0.1, "jax": 0.25},
            "processor_s": {"whale": 0.2, "jax": 0.3},
            "bytes": {"whale": 2e6, "jax": 1e6},
        },
        "gpt-split-4": {"seconds": {"whale": 0.2, "jax": 0.25}},
        "gpt-busy": {"seconds": {"whale": 0.2, "jax": 0.3}},
    }
    lines = report.table(report.rows(results)).splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines[2:]]
    found = [(c[2], c[3], c[6], c[7], c[9]) for c in cells]
    assert found == [
        ("1", "step", "2.50 x as fast", "1.50 x", "yes"),
        ("1", "memory", "2.00 x as much", "", "no"),
        ("4", "step", "1.25 x as fast", "", "no"),
        ("4", "step", "2.00 x as long", "", "no"),
        ("1", "step", "1.50 x as fast", "", "no"),
    ]
    assert cells[-1][8] == "at least 2.00, idle / 1.25"


def rows_of_a_suite(suites, ratios):
    return [
        suites.Row(f"k{i % 2}/{i}", f"k{i % 2}", i < 6, 1e-3 * ratio, 1e-3)
        for i, ratio in enumerate(ratios)
    ]


def test_suites(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    suites = importlib.import_module("suites")
    rows = rows_of_a_suite(suites, [2, 0.8, 1.5, 1, 3, 0.7, 1.2, 0.89])
    assert suites.read(json.loads(json.dumps(suites.write(rows)))) == rows
    assert suites.summary(rows, by_kind=True).splitlines()[2:] == [
        "| all | 8 | 1.10 x | 0.70 x | 3 |",
        "| tried while tuning | 6 | 1.25 x | 0.70 x | 2 |",
        "| only measured | 2 | 1.04 x | 0.89 x | 1 |",
        "| `k0` | 4 | 1.75 x | 1.20 x | 0 |",
        "| `k1` | 4 | 0.84 x | 0.70 x | 3 |",
    ]
    assert suites.slowest(rows, 2).splitlines()[2:] == [
        "| `k1/5` | 0.700 | 1.000 | 0.70 x |",
        "| `k1/1` | 0.800 | 1.000 | 0.80 x |",
    ]
    suite = suites.Suite("s", "steps", "s.py", median=1.0, worst=0.7)
    assert suites.missed(suite, rows) is None
    for changed in {"median": 1.2}, {"worst": 0.75}:
        other = suites.dataclasses.replace(suite, **changed)
        assert "the goal is" in suites.missed(other, rows)
    rows[2] = suites.dataclasses.replace(rows[2], differs=True)
    assert suites.missed(suite, rows) == "results differ from JAX's: k0/2"
    assert "differ from JAX's: k0/2." in suites.section(suite, rows)


def test_the_page_of_benchmarks(monkeypatch):
    """Of hundreds of rows it has few."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    report = importlib.import_module("report")
    suites = importlib.import_module("suites")
    rows = rows_of_a_suite(suites, [1.1 + i / 100 for i in range(200)])
    machine = dict.fromkeys(("processor", "cores", "jax", "jaxlib", "python"))
    page = report.page(
        machine | {"memory_bytes": 8e9, "load": 1.0},
        {suite.name: suites.write(rows) for suite in suites.SUITES},
    )
    for suite in suites.SUITES:
        section = page.split(f"## {suite.what.capitalize()}\n")[1]
        lines = section.split("##")[0].splitlines()
        assert sum(line.startswith("|") for line in lines) == 5 + 7
        assert (
            sum(f" {suite.what}, the " in row for row in page.split("\n")) == 2
        )
    medians = [row for row in page.split("\n") if "small steps, the" in row]
    assert [row.split("|")[-2].strip() for row in medians] == ["yes", "yes"]


def test_a_suite_by_its_script(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    run = importlib.import_module("run")
    suites = importlib.import_module("suites")
    script = tmp_path / "suite.py"
    script.write_text(
        "import json, sys\n"
        "path = sys.argv[1].removeprefix('--output=')\n"
        "if '--rounds=0' not in sys.argv:\n"
        "    with open(path, 'w') as file:\n"
        "        json.dump({'rows': sys.argv[2:]}, file)\n"
        "sys.exit('the goal is missed')\n"
    )
    suite = suites.Suite("s", "steps", str(script), median=1.0, worst=0.7)
    options = argparse.Namespace(rounds=None, seconds=0.5)
    assert run.measure_rows(suite, options) == {"rows": ["--seconds=0.5"]}
    options.rounds = 0
    with pytest.raises(RuntimeError, match="has measured nothing"):
        run.measure_rows(suite, options)


def test_limits(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    limits = importlib.import_module("limits")
    report = importlib.import_module("report")
    rows = [
        limits.Row("a save", "a copy", "ms", 12.0, 10.0, 1.5),
        limits.Row("a move", "bytes", "ms", 31.0, 20.0, 1.5),
    ]
    assert limits.read(json.loads(json.dumps(limits.write(rows)))) == rows
    lines = [
        "| a save | 12.0 ms | a copy: 10.0 ms | 1.20 x | 1.5 | yes |",
        "| a move | 31.0 ms | bytes: 20.0 ms | 1.55 x | 1.5 | no |",
    ]
    assert limits.table(rows).splitlines()[2:] == lines
    assert limits.missed(rows) == "above the limit: a move"
    assert limits.missed(rows[:1]) is None
    machine = dict.fromkeys(("processor", "cores", "jax", "jaxlib", "python"))
    page = report.page(
        machine | {"memory_bytes": 8e9, "load": 1.0},
        {"state": limits.write(rows)},
    )
    assert "## Training states" in page and lines[1] in page


@pytest.mark.long
def test_times_of_states(tmp_path):
    """A small state: what is measured is right, whatever it takes."""
    rows = tmp_path / "rows.json"
    done = subprocess.run(
        [
            *(sys.executable, ROOT / "benchmarks" / "state.py"),
            *("--processes=2", f"--bytes={2 << 20}", "--width=256"),
            *("--leaves=6", "--rounds=1", "--steps=2", f"--output={rows}"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    # It says of what misses its limit that it does.
    assert done.returncode == 0 or "above the limit" in done.stderr, done.stderr
    assert len(json.loads(rows.read_text())["rows"]) == 1 + 3 * 5


def test_timing_beside_jax(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    beside = importlib.import_module("beside")
    monkeypatch.setattr(beside, "QUIET_SECONDS", 0)
    calls = []

    def prepare(error):
        def side(name):
            def step(state, x):
                calls.append(name)
                return state + 1, x + (error if name == "whale" else 0)

            return beside.Side(step, 0, (np.ones(3),))

        return {"jax": side("jax"), "whale": side("whale")}

    def item(name, kind, error=0.0):
        return beside.Item(name, kind, True, 1e-3, lambda: prepare(error))

    row = beside.measure(item("k/1", "k"), rounds=2, seconds=0.0)
    assert row.name == "k/1" and not row.differs and row.ratio > 0
    # In turn, after a first call of each; one each, as these take too long.
    assert calls == ["jax", "whale"] * 3
    calls.clear()
    beside.measure(item("k/1", "k"), rounds=2, seconds=1e-2)
    assert calls[:4] == ["jax", "whale"] * 2 and len(calls) > 100
    assert not beside.measure(item("k/1", "k", 9e-4), 1, 0.0).differs
    assert beside.measure(item("k/1", "k", 2e-3), 1, 0.0).differs
    assert beside.measure(item("k/1", "k", np.nan), 1, 0.0).differs
    items = [item("a/1", "x"), item("a/2", "y"), item("b/1", "x")]
    for patterns, wanted in (
        ([], "a/1 a/2 b/1"),
        (["a"], "a/1 a/2"),
        (["x", "a/2"], "a/1 a/2 b/1"),
        (["*/1"], "a/1 b/1"),
        (["c"], ""),
    ):
        found = beside.choose(items, patterns)
        assert " ".join(item.name for item in found) == wanted


def test_convolutions_that_are_drawn(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    shapes = importlib.import_module("convolution_shapes")
    drawn = shapes.draw(1, 20)
    assert drawn == shapes.draw(1, 20)
    assert not {each.name for each in drawn} & {
        each.name for each in (*shapes.SHAPES, *shapes.draw(2, 20))
    }
    assert {len(each.image) for each in drawn} == {1, 2, 3}
    for each in drawn:
        _, w, y = each.tensors()
        assert min(y.shape) > 0 and 1e7 < shapes.flops(each) < 5e8
        assert each.groups * w.shape[-2] == each.inputs


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
