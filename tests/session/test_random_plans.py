"""Random plans of edits, commands, commits and ways back: what undo says it did is what it did, byte for byte."""

import asyncio
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from random import Random
from shutil import which
from typing import Any, TypeAlias
from unittest.mock import patch

import pytest
from msgspec import Struct

from rows import every_row
from scripted import Entry, OpenAIServer, RecordedRequest
from session.trees import tree
from ybs.checkpoints import scan, states
from ybs.commands.open import SlashCommands
from ybs.commands.undo import FILES_STAY, NONE_KNOWN, told
from ybs.core.errors import YbsError
from ybs.session.history import WayBack
from ybs.session.session import Session
from ybs.testing import answer, call

Tree: TypeAlias = dict[str, tuple[str, int, bytes]]
PATHS = ("a", "b", "d/a", "d/e/f", "x.log", "d/y.log", "local/c", "local/in/g.log", "big")
BULK = ("node_modules", "d/node_modules")
FILES = (*PATHS, *(f"{folder}/{path}" for folder in BULK for path in ("m", "p/q/m")))
FOLDERS = ("d", "d/e", "local", *BULK)
CONTENTS = (
    "",
    "one\n",
    "two\n",
    "x" * 2_000,
)  # the last one is over the limit, which is lower here
MODES = ("600", "644", "755")
MOST_BYTES = 1_000


class Play(Struct):
    """A turn that can be undone: the project before and after, and HEAD and what git said before."""

    before: Tree
    after: Tree
    place: str
    is_disturbed: bool = False  # somebody else has changed something since


class Plan:
    """One session in one project, played at random."""

    def __init__(self, project: Path, seed: int, server: OpenAIServer, script: list[Entry]) -> None:
        self.random, self.project, self._script = Random(seed), project, script
        self.has_git = seed % 2 == 0 and which("git") is not None
        self._write(".gitignore", "*.log\nlocal/\nnode_modules/\n")
        for path in self.random.sample(FILES, 7):
            self._write(path, self.random.choice(CONTENTS))
        if self.has_git:
            self.git("-c", "init.defaultBranch=main", "init", "-q", "--template=")
            self.git("add", ".")
            self.git("commit", "-qm", "theirs")
        self.session = Session.open(
            project,
            commands=SlashCommands(),
            provider="openai",
            endpoint=server.url,
            model="m",
            sandbox=False,
            mode="bypass",
            overrides={"git.auto_commit": seed % 4 == 0},
        )
        self.plays: list[Play] = []
        #: What each undo changed, as it was before, for a redo.
        self.undone: list[tuple[Tree, Sequence[Play]]] = []
        self.is_alone = True  # nobody else has changed anything since the last turn or way back

    def disturb(self) -> None:
        """Note that somebody else changes something."""
        self.is_alone = False
        for play in self.plays:
            play.is_disturbed = True

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=me", "-c", "user.email=me@here")
        done = subprocess.run(
            ["git", *who, *words], cwd=self.project, capture_output=True, text=True, check=False
        )
        return done.stdout

    def look(self) -> Tree:
        """Return all that is in the project but git's own."""
        return {
            path: entry
            for path, entry in tree(self.project).items()
            if path != ".git" and not path.startswith(".git/")
        }

    def place(self) -> str:
        """Return where git stands; empty without git."""
        return (
            self.git("rev-parse", "HEAD") + self.git("status", "-s", "-uall")
            if self.has_git
            else ""
        )

    def _write(self, path: str, content: str) -> None:
        file = self.project / path
        if file.parent.is_dir() or not file.parent.is_symlink():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)

    async def step(self) -> None:
        """Do one thing."""
        kinds = (
            "turn",
            "turn",
            "turn",
            "undo",
            "undo",
            "undo",
            "redo",
            "redo",
            "person",
            "meddle",
            "meddle",
            "commit",
        )
        match self.random.choice(kinds):
            case "turn":
                await self.turn()
            case "undo":
                await self.undo()
            case "redo":
                await self.redo()
            case "person":
                self.disturb()
                self.shell(self.command())
            case "meddle" if self.plays:
                self.disturb()
                self.shell(self.meddling())
                await self.undo()
            case _ if self.has_git:
                self.disturb()
                self.git("add", "--all", *self.random.choice([(), ("a",)]))
                self.git("commit", "-qm", "theirs")
            case _:
                pass

    def shell(self, command: str) -> None:
        subprocess.run(
            ["/bin/sh", "-c", command], cwd=self.project, check=False, capture_output=True
        )

    def command(self) -> str:
        """Return a shell command that does something to files and folders."""
        one, other = self.random.sample((*FILES, *FOLDERS), 2)
        file, content = self.random.choice(FILES), self.random.choice(CONTENTS)
        folder = file.rpartition("/")[0] or "."
        return self.random.choice(
            (
                f"mkdir -p {folder}; printf '%s' '{content}' > {file}",
                f"mkdir -p {folder}; printf '%s' '{content}' > {file}",
                f"rm -f {file}",
                f"rm -rf {one}",
                f"mv {one} {other}",
                f"chmod {self.random.choice(MODES)} {file}",
                f"rm -f {file}; ln -s {other} {file}",
                f"rm -f {file}; ln {other} {file}",
                f"mkdir -p {one}",
                "true",
            )
        )

    def meddling(self) -> str:
        """Return a command that goes on with what the last turn changed."""
        play = self.plays[-1]
        changed = sorted(differing(play.before, play.after)) or ["a"]
        path = self.random.choice(changed)
        return f"echo more >> {path} || touch {path}/mine"

    def calls(self) -> Iterator[Any]:
        for number in range(self.random.randint(1, 3)):
            path = self.random.choice(PATHS)
            kind = self.random.choice(("write", "delete", "run", "run"))
            if kind == "write":
                yield call("write_file", path=path, content=f"{number} by a tool\n")
            elif kind == "delete":
                yield call("delete_file", path=path)
            else:
                yield call("run_shell", command=self.command())

    async def turn(self) -> None:
        before, place = self.look(), self.place()
        self._script[:] = [answer(each) for each in self.calls()] + ["done"]
        await self.session.send("go on")
        self._script.clear()
        self.plays.append(Play(before=before, after=self.look(), place=place))
        self.undone.clear()
        self.is_alone = True

    async def undo(self) -> None:
        count, force = self.random.choice((1, 1, 2)), self.random.random() < 0.3
        before, place = self.look(), self.place()
        gone = self.plays[-count:]
        try:
            way = await self.session.history.undo(count, force=force)
        except YbsError:
            assert (gone, before) == ([], self.look())
            return
        text = told(self.session, way, done="Took back.", force="/undo force").text
        if not self.is_done(way, text, before, place):
            return
        del self.plays[-count:]
        after, expected = self.look(), dict[str, Any]()
        for play in reversed(gone):
            changed = differing(play.before, play.after)
            expected |= {path: play.before.get(path) for path in changed}
        self.compare(way, text, before, after, expected)
        self.check_bulk(way, gone, after, text)
        self.check_git(way, gone, place)
        self.undone.append((before, gone))
        self.is_alone = True

    async def redo(self) -> None:
        before, place = self.look(), self.place()
        try:
            way = await self.session.history.redo()
        except YbsError:
            assert (self.undone, before) == ([], self.look())
            return
        text = told(self.session, way, done="Did again.", force="/redo force").text
        if not self.is_done(way, text, before, place):
            return
        then, gone = self.undone.pop()
        self.plays += gone
        after = self.look()
        if way.files is not None:
            for path in way.files.paths:
                assert after.get(path) == then.get(path), (path, text)
            changed = differing(before, after) - above(way.files.paths)
            assert changed <= {*way.files.paths, *way.files.stayed}, text
            if self.is_alone:
                assert self.excused(differing(then, after), way) == set(), text
        else:
            assert after == before
        self.is_alone = True

    def is_done(self, way: WayBack, text: str, before: Tree, place: str) -> bool:
        """Return whether something was done; where there were conflicts nothing may have changed, and they are named."""
        assert text.strip()
        if way.files is None or way.files.is_done:
            return True
        assert not way.files.problem, way.files.problem
        assert way.files.conflicts
        assert way.files.conflicts[0] in text
        assert (self.look(), self.place()) == (before, place)
        return False

    def compare(
        self, way: WayBack, text: str, before: Tree, after: Tree, expected: Mapping[str, Any]
    ) -> None:
        """Hold what was said against what was done."""
        changed = differing(before, after)
        if way.files is None:
            assert not changed
            assert FILES_STAY in text or NONE_KNOWN in text
            assert self.excused(expected.keys(), way) == set(), text
            assert FILES_STAY not in text or not expected
            return
        for path in way.files.paths:
            assert after.get(path) == expected[path], (path, text)
        assert changed - above(way.files.paths) <= {*way.files.paths}, text
        wrong = {path for path, state in expected.items() if after.get(path) != state}
        assert self.excused(wrong, way) == set(), text
        for names in (way.files.paths, way.files.unkept, way.files.left, way.files.stayed):
            assert not names or next(iter(names)) in text

    def excused(self, wrong: Any, way: WayBack) -> set[str]:
        """Return the paths that are not as they were and that nothing was said of; bulk is checked apart."""
        named: set[str] = set()
        if way.files is not None:
            named = {*way.files.unkept, *way.files.left, *way.files.stayed}
        return {path for path in wrong if path not in named and not is_bulk(path)}

    def check_bulk(self, way: WayBack, gone: Sequence[Play], after: Tree, text: str) -> None:
        """A bulk folder that a turn removed is named, and one in which it changed something at any depth."""
        for play in gone:
            changed = {path for path in differing(play.before, play.after) if is_bulk(path)}
            for path in changed:
                if after.get(path) != play.before.get(path):
                    self.check_named(way, path, text)
            for folder in BULK:
                was = play.before.get(folder, ("",))[0] == "folder"
                is_gone = folder not in play.after and folder not in after
                if was and is_gone:
                    assert way.files is not None
                    assert folder in way.files.unkept

    def check_named(self, way: WayBack, path: str, text: str) -> None:
        """The bulk folder of a path is named, or one above it, or it is said that nothing is known of any."""
        if way.files is None or way.ran_commands:
            assert "keeps no copies" in text, path
            return
        folder = path[: path.index("node_modules") + len("node_modules")]
        named = {*way.files.unkept, *way.files.paths, *way.files.left, *way.files.stayed}
        is_named = any(f"{folder}/".startswith(f"{name}/") for name in named)
        assert is_named or f"{folder}/" in "".join(way.files.beyond), (path, text)

    def check_git(self, way: WayBack, gone: Sequence[Play], place: str) -> None:
        """The branch is where it was before the turns, or it was said that it is not."""
        if not self.has_git:
            return
        how = {each.how for each in way.commits}
        if not how:
            assert self.place().split()[:1] == place.split()[:1]
        is_one = all(one.after == other.before for one, other in pairwise(gone))
        is_clean = way.files is not None and not (way.files.unkept or way.files.left)
        is_disturbed = any(play.is_disturbed for play in gone)
        if how == {"moved"} and is_one and is_clean and not is_disturbed:
            assert self.place() == gone[0].place


def differing(one: Tree, other: Tree) -> set[str]:
    """Return the paths that are not the same in both."""
    return {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


def above(paths: Sequence[str]) -> set[str]:
    """Return the folders that some paths lie in: they are made where somebody else has removed them."""
    return {str(folder) for path in paths for folder in Path(path).parents}


def is_bulk(path: str) -> bool:
    return "node_modules" in path.split("/")


async def _play(project: Path, seed: int, steps: int) -> None:
    script: list[Entry] = []

    def reply(_: RecordedRequest) -> Entry:
        return script.pop(0) if script else "spare"

    async with OpenAIServer([reply], is_repeated=True) as server:
        plan = Plan(project, seed, server, script)
        async with plan.session:
            for _ in range(steps):
                await plan.step()


def play(seed: int, steps: int = 12) -> None:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        for module in (states, scan):
            stack.enter_context(patch.object(module, "MOST_FILE_BYTES", MOST_BYTES))
        project = Path(folder).resolve() / "project"
        project.mkdir()
        try:
            asyncio.run(_play(project, seed, steps))
        except BaseException as error:
            error.add_note(f"the plan's seed is {seed}")
            raise


@pytest.mark.integration
@pytest.mark.timeout(60)
@every_row("seed", range(4))
def test_what_undo_says_in_a_random_plan_is_what_it_did(seed: int):
    play(seed, steps=6)


@pytest.mark.slow
@pytest.mark.timeout(300)
@every_row("first", range(0, 20, 10))
def test_what_undo_says_in_many_random_plans_is_what_it_did(first: int):
    for seed in range(first, first + 10):
        play(seed)
