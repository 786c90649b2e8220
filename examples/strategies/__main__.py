"""Runs all examples of this folder, one after the other."""

import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent

for program in sorted(FOLDER.glob("*.py")):
    if program.name in ("__main__.py", "training.py"):
        continue
    print(f"{program.stem}:", flush=True)
    subprocess.run([sys.executable, str(program)], check=True)
