"""Stands in for pip: `fake_pip.py … --target DIR NAME==VERSION` puts that part's data into DIR."""

import os
import sys
from pathlib import Path

target, name = sys.argv[sys.argv.index("--target") + 1], sys.argv[-1].split("==")[0]
with Path(os.environ["PIP_FAKE_LOG"]).open("a") as log:
    log.write(f"{name}\n")
if name in os.environ.get("PIP_FAKE_FAILS", "").split():
    sys.exit(f"ERROR: No matching distribution found for {name}")
if name not in os.environ.get("PIP_FAKE_EMPTY", "").split():
    data = Path(target) / name / "data"
    data.mkdir(parents=True)
    (data / "part01.bin").write_bytes((Path(os.environ["PIP_FAKE_PARTS"]) / name).read_bytes())
