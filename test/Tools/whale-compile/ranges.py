"""Compiles with numbers at the ends of their ranges: ranges.py TEXTS SCRATCH

Inside of its range every number of a cluster gives a plan, within seconds, of
which no number is infinite; one beyond is an error that names the field and the
range.
"""

import copy
import itertools
import json
import pathlib
import re
import subprocess
import sys

CLUSTER = {
    "kinds": {
        "k": {
            "flops": {"f32": 1e12},
            "memory_bytes": 1e9,
            "memory_bandwidth": 1e11,
            "efficiency": {
                "matmul": 0.5,
                "convolution": 0.5,
                "reduction": 0.5,
                "elementwise": [[1e3, 0.1], [1e6, 0.5]],
            },
            "power_w": 300,
        }
    },
    "nodes": [
        {
            "devices": [{"kind": "k", "slowdown": 1}, {"kind": "cpu"}],
            "link": {"bandwidth": 1e10, "latency": 1e-6},
            "host": {"memory_bytes": 1e9, "bandwidth": 1e9},
        },
        {"devices": [{"kind": "k", "slowdown": 2}, {"kind": "k"}]},
    ],
    "network": {"bandwidth": 1e9, "latency": 1e-5},
}
RATE = (1, 1e24, "1 to 1e24")
MEMORY = (1, 1e18, "1 to 1e18")
PART = (1e-6, 1, "1e-6 to 1")
# Path, least, most, the range as a message has it.
FIELDS = [
    ("kinds.k.flops.f32", *RATE),
    ("kinds.k.memory_bandwidth", *RATE),
    ("kinds.k.memory_bytes", *MEMORY),
    ("kinds.k.efficiency.matmul", *PART),
    ("kinds.k.efficiency.reduction", *PART),
    ("kinds.k.efficiency.convolution", 1e-6, 4, "1e-6 to 4"),
    ("kinds.k.efficiency.elementwise[1][1]", *PART),
    ("kinds.k.power_w", 1e-3, 1e6, "0.001 to 1e6"),
    ("nodes[0].devices[0].slowdown", 1, 1e6, "1 to 1e6"),
    ("nodes[0].link.bandwidth", *RATE),
    ("nodes[0].link.latency", 0, 1e3, "0 to 1000"),
    ("nodes[0].host.memory_bytes", *MEMORY),
    ("nodes[0].host.bandwidth", *RATE),
    ("network.bandwidth", *RATE),
    ("network.latency", 0, 1e3, "0 to 1000"),
]
# With several strategies: replicas, shards, a pipeline, one cut by costs.
PROGRAMS = [
    ("dense", "--strategy=replicate"),
    ("loop", "--strategy=split"),
    ("stages", "--micro-batches=2"),
    ("automatic", "--strategy=replicate"),
]


def put(cluster, path, value):
    parts = re.findall(r"\w+", path)
    *parts, last = (int(part) if part.isdigit() else part for part in parts)
    for part in parts:
        cluster = cluster[part]
    cluster[last] = value


def compile_with(cluster, program, texts, scratch):
    file = scratch / "cluster.json"
    text = cluster if isinstance(cluster, str) else json.dumps(cluster)
    file.write_text(text)
    return subprocess.run(
        [
            "whale-compile", texts / f"{program[0]}.mlir", program[1],
            f"--cluster={file}", "--target=none", "--explain",
            "-o", scratch / "out.whale",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )  # fmt: skip


def check_inside(cluster, what, program, texts, scratch):
    result = compile_with(cluster, program, texts, scratch)
    # A byte of memory is too little, and said to be.
    if result.returncode and "memory" in result.stderr:
        assert result.stderr.count("error: ") == 1, result.stderr
        return
    assert result.returncode == 0, f"{what}: {program}: {result.stderr}"
    odd = re.search(r"(?<![\w.%@'\"-])-?(inf|nan)(?![\w(])", result.stdout)
    assert not odd, f"{what}: {program}: {result.stdout}"


def main():
    texts, scratch = map(pathlib.Path, sys.argv[1:])
    scratch.mkdir(parents=True, exist_ok=True)
    programs = itertools.cycle(PROGRAMS)
    for path, least, most, shown in FIELDS:
        for value in (least, most):
            cluster = copy.deepcopy(CLUSTER)
            put(cluster, path, value)
            check_inside(cluster, f"{path} = {value}", next(programs), texts,
                         scratch)  # fmt: skip
        next(programs)
        below = least * 0.999 if least else -5e-324
        for value in (below, most * 1.001, 5e-324, 1e308, "NaN", "1e400"):
            if value == 5e-324 and least == 0:
                continue
            cluster = copy.deepcopy(CLUSTER)
            put(cluster, path, "HERE" if isinstance(value, str) else value)
            text = json.dumps(cluster).replace('"HERE"', str(value))
            result = compile_with(text, PROGRAMS[0], texts, scratch)
            error = result.stderr
            assert result.returncode == 1 and error.count("\n") == 1, error
            if not isinstance(value, str):
                wanted = f"error: {path}: expected a number from {shown}, found"
                assert wanted in error, (path, value, error)
    # The slowest and the fastest of all.
    for end in (1, 2):
        cluster = copy.deepcopy(CLUSTER)
        for field in FIELDS:
            # A byte of memory holds nothing, and latency hides what is fast.
            if "memory_bytes" not in field[0]:
                slow = "latency" in field[0] or "slowdown" in field[0]
                put(cluster, field[0], field[3 - end if slow else end])
        for program in PROGRAMS:
            check_inside(cluster, f"end {end}", program, texts, scratch)


if __name__ == "__main__":
    main()
