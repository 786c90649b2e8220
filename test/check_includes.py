"""Checks that each folder includes only those before it in the order.

Usage: check_includes.py ROOT. Prints one line for each include that breaks the
order, that reaches into the private headers of another folder (only tests may),
or that reads a header of LLVM or MLIR in a folder that links neither.
"""

from __future__ import annotations

import pathlib
import re
import sys

ORDER = [
    "System",
    "Cluster",
    "Placement",
    "ProgramFormat",
    "Report",
    "Step",
    "Planner",
    "Support",
    "Dialect",
    "Sharding",
    "Transforms",
    "Transforms/Import",
    "Transforms/TaskGraphs",
    "Transforms/Placed",
    "Transforms/Partition",
    "Transforms/Schedule",
    "Conversion",
    "Conversion/Kernel",
    "Conversion/LoopNest",
    "Conversion/Gpu",
    "Conversion/StableHLO",
    "Conversion/Library",
    "Conversion/Fusion",
    "Target/CPU",
    "Target/CUDA",
    "Program",
    "Runtime",
    "Sim",
    "tools",
    "python",
]
"""A folder below include/whale, lib and unittests; `Runtime`: runtime/, too."""

SHARED = {"Conversion"}
"""Folders whose subfolders may read each other's private headers."""

WITHOUT_LLVM = {
    "System",
    "Cluster",
    "ProgramFormat",
    "Report",
    "Runtime",
    "Sim",
}
"""What runs programs consists of these."""

AGGREGATES = {"include/whale/Transforms/Passes.h"}
"""Headers that stand for a folder's subfolders."""

INCLUDE = re.compile(r'^\s*(?:#\s*)?include "([^"]+)"', re.MULTILINE)


def folder_of(path: str) -> str | None:
    """The folder of the order that holds a file, given from the root."""
    for top, name in (("runtime/", "Runtime"), ("sim/", "Sim")):
        if path.startswith(top):
            return name
    for prefix in ("include/whale/", "lib/", "unittests/"):
        path = path.removeprefix(prefix)
    found = [name for name in ORDER if path.startswith(name + "/")]
    return max(found, key=len, default=None)


def check(root: pathlib.Path) -> list[str]:
    """What is wrong, a line each."""
    faults = []
    for top in (
        "include",
        "lib",
        "runtime",
        "sim",
        "tools",
        "python",
        "unittests",
    ):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".td"):
                continue
            name = str(path.relative_to(root))
            folder = folder_of(name)
            if folder is None or name in AGGREGATES:
                continue
            for include in INCLUDE.findall(path.read_text()):
                if folder in WITHOUT_LLVM and include.startswith(
                    ("llvm/", "mlir/")
                ):
                    faults.append(f"{name}: {include}: {folder} has no LLVM")
                other = included(root, path, include)
                if other is None or other == folder:
                    continue
                if ORDER.index(other) > ORDER.index(folder):
                    faults.append(f"{name}: {include}: {other} comes later")
                elif (
                    is_private(include)
                    and top != "unittests"
                    and parent_of(other) != parent_of(folder)
                ):
                    faults.append(f"{name}: {include}: is private to {other}")
    return faults


def parent_of(folder: str) -> str:
    """The folder itself, or one of SHARED that it is in."""
    parent = folder.split("/")[0]
    return parent if parent in SHARED else folder


def is_private(include: str) -> bool:
    return not include.startswith("whale/")


def included(
    root: pathlib.Path, path: pathlib.Path, include: str
) -> str | None:
    """The folder that an include of `path` is in, if it is one of ours."""
    if include.startswith("whale/"):
        return folder_of("include/" + include)
    beside = (path.parent / include).resolve()
    if beside.exists() and beside.is_relative_to(root):
        return folder_of(str(beside.relative_to(root)))
    for parent in SHARED:
        if (root / "lib" / parent / include).exists():
            return folder_of(f"lib/{parent}/{include}")
    if (root / "runtime" / include).exists():
        return "Runtime"
    return None


def main() -> None:
    faults = check(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(faults) or "every include follows the order")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
