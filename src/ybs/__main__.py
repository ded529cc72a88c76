"""python -m ybs."""

import os
import sys

if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):  # noqa: PTH120 - nothing is imported yet
    del sys.path[0]  # the folder that ybs is started in: its modules are not ybs's

from ybs.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
