"""Listing: the tool `list_files` on 100,000 files, beside `rg --files`."""

import asyncio
import sys
from functools import partial
from pathlib import Path

from lab import Lab, Row
from search import bare, by_turns

from ybs.frontends.host import this_host
from ybs.security.paths.roots import Roots
from ybs.tools.builtin.list_files import ListFiles, ListFilesArguments
from ybs.tools.workspace import Workspace

FOLDERS, FILES = 500, 200
SECONDS = 5.0  # for one glob
MOST = 1.5
GLOBS = ("**", "**/*.py", "pack1*/**/file-1?.{py,txt}", "**,!*.txt")


def measure(lab: Lab, rounds: int) -> list[Row]:
    rg = str(Path(sys.executable).with_name("rg"))
    folder = lab.folder / "many"
    make_files(folder)
    rows: list[Row] = []
    for rules in ("", "*.log\nbuild/\nnode_modules/\n/dist\n__pycache__/\n*.py[cod]\n!keep.log\n"):
        (folder / ".gitignore").write_text(rules)
        tool = ListFiles(Workspace(Roots(this_host(), folder)))
        for glob in GLOBS:
            calls = (
                partial(bare, [rg, "--files", "--no-require-git"], folder),
                partial(listed, tool, glob),
            )
            (time, cpu), (our_time, our_cpu) = by_turns(calls, rounds, SECONDS)
            what = f"{glob}{', with ignore rules' if rules else ''}: list_files / rg --files"
            rows.append(Row(what, our_time / time, "x", MOST, f"CPU time {our_cpu / cpu:.2f}"))
    return rows


def make_files(folder: Path) -> None:
    for number in range(FOLDERS):
        inner = folder / f"pack{number // 20}" / f"part{number}"
        inner.mkdir(parents=True)
        for place in range(FILES):
            (inner / f"file-{place}.{'py' if place % 2 else 'txt'}").touch()


def listed(tool: ListFiles, glob: str) -> int:
    return asyncio.run(tool.run(ListFilesArguments(pattern=glob), print)).display["total_matches"]
