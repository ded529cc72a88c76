"""What a run of a few turns does without: modules that nobody needs, schemas that are written down, searches for garbage."""

import subprocess
import sys
from pathlib import Path

import pytest

from hostile_git import needs_git
from serving import serving
from ybs.testing import call

pytestmark = [pytest.mark.integration, needs_git]

#: Runs the command and writes, at its end, how often garbage was looked for, how many schemas of tools were made, and which
#: modules were loaded.
TOLD = """
import atexit, gc, sys
from ybs.cli import main
def collections():
    return sum(each["collections"] for each in gc.get_stats())
def tell():
    made = sys.modules["ybs.core.schema"].schema_of.cache_info().misses
    print(collections() - before, made, *sys.modules, file=sys.stderr)
before = collections()
atexit.register(tell)
sys.exit(main())
"""
#: What only an undo, a commit of another branch or an archive needs.
NEEDLESS = {"ybs.git.moves", "shutil", "lzma", "bz2"}


def test_reading_an_edit_and_a_command_load_little_and_look_for_no_garbage(project: Path) -> None:
    subprocess.run(("git", "init", "-q"), cwd=project, check=True)
    (project / "app.py").write_text("VALUE = 1\n")
    calls = (
        call("read_file", path="app.py"),
        call("edit_file", path="app.py", old_text="VALUE = 1", new_text="VALUE = 2"),
        call("run_shell", command="echo fine"),
    )
    with serving([*calls, "Done."]) as server:
        options = ("--endpoint", server.url, "-m", "scripted", "--mode", "bypass")
        words = (sys.executable, "-c", TOLD, *options, "--print", "go")
        done = subprocess.run(words, cwd=project, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert (project / "app.py").read_text() == "VALUE = 2\n"
    collections, schemas, *loaded = done.stderr.splitlines()[-1].split()
    assert (collections, schemas, NEEDLESS & set(loaded)) == ("0", "0", set())
