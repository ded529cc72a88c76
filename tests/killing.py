"""Runs of the real command that are killed at random moments, and what must be true of them afterwards."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec
from msgspec import Raw

from scripted import OpenAIServer, RecordedRequest
from scripted.faults import Entry
from ybs.core.events import AssistantSaid, ToolFinished
from ybs.core.messages import ToolCall
from ybs.testing.script import ScriptedAnswer, answer
from ybs.transcripts.reading import Transcript
from ybs.transcripts.store import SessionStore

YBS = str(Path(sys.executable).with_name("ybs"))
#: How many lines a turn prints, and how many calls it makes.
LINES, CALLS = 47, 7
#: A write of it takes more than one page.
_FILLER = "".join(f"line {number} of a file that is not so short\n" for number in range(150))
BIG = "big.txt"
_COMMITTER = ("-c", "user.name=a", "-c", "user.email=a@example.org")
#: What is there for a moment while a file that exists is replaced.
_STRAY = re.compile(r"\.ybs-[0-9a-f]{8}\.tmp")
_PROMPT = re.compile(r"take turn (\d+)")


class RepeatingServer(OpenAIServer):
    """Asks its one cue for the answer to every request."""

    def __init__(self, script: Sequence[Any]) -> None:
        super().__init__(script, is_repeated=True)


class Player:
    """Answers each request with the next step of a turn, and checks the history that came with it.

    `bodies` are the digests of all contents that each file may ever have, `results` what was sent back of each call.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.bodies: dict[str, set[bytes]] = {BIG: {_digest(big_body(1))}}
        self.results: dict[str, str] = {}
        self._history: list[dict[str, Any]] = []
        self._count = 0

    def __call__(self, request: RecordedRequest) -> Entry:
        """Take a request and play the answer to it."""
        _, *messages = cast("list[dict[str, Any]]", request.body["messages"])
        self._check(messages)
        self._history = messages
        turns = [(place, each) for place, each in enumerate(messages) if _turn_of(each)]
        place, prompt = turns[-1]
        steps = sum(each["role"] == "assistant" for each in messages[place:])
        return self._step(steps, _turn_of(prompt))

    def _step(self, step: int, turn: int) -> Entry:
        known = f"known{turn % 2}.txt"
        match step:
            case 0:
                return self._calls(self._write(known), ("read_file", {"path": "kept.txt"}))
            case 1:
                return self._calls(self._edit(known), self._edit(BIG))
            case 2:
                command = f"mkdir -p made/{turn}; seq 300"
                return self._calls(("run_shell", {"command": command}))
            case 3:
                return self._calls(self._write(f"new{turn}.txt"), self._edit(known))
            case _:
                return f"Turn {turn} is done."

    def _calls(self, *calls: tuple[str, dict[str, str]]) -> ScriptedAnswer:
        made: list[ToolCall] = []
        for name, arguments in calls:
            self._count += 1
            raw = Raw(msgspec.json.encode(arguments))
            made.append(ToolCall(id=f"call{self._count}", name=name, arguments=raw))
        return answer("Let me see.", *made, chunk_size=4_000)

    def _write(self, path: str) -> tuple[str, dict[str, str]]:
        body = self._body(path)
        return "write_file", {"path": path, "content": body}

    def _edit(self, path: str) -> tuple[str, dict[str, str]]:
        old = f"version {len(self.bodies.get(path, ()))}\n"
        new = self._body(path).partition("line")[0]
        return "edit_file", {"path": path, "old_text": old, "new_text": new}

    def _body(self, path: str) -> str:
        """Make the next content of a file."""
        known = self.bodies.setdefault(path, set())
        number = len(known) + 1
        body = big_body(number) if path == BIG else f"version {number}\n{_FILLER}"
        known.add(_digest(body))
        return body

    def _check(self, messages: Sequence[dict[str, Any]]) -> None:
        for place, was in enumerate(self._history):
            now = messages[place] if place < len(messages) else {}
            is_joined = was["role"] == "user" and str(now.get("content")).startswith(was["content"])
            if now != was and not is_joined:
                self.problems.append(f"message {place} was {_short(was)}, and is {_short(now)}")
        waiting: list[str] = []
        for message in [*messages, {"role": "end"}]:
            if message["role"] == "tool":
                name = message["tool_call_id"]
                if name not in waiting[:1]:
                    self.problems.append(f"the result of {name} stands where it does not belong")
                waiting = waiting[1:]
                self.results[name] = message["content"]
            elif waiting:
                self.problems.append(f"there is no result of {waiting}")
            if message["role"] == "assistant":
                calls = cast("list[dict[str, Any]]", message.get("tool_calls") or [])
                waiting = [each["id"] for each in calls]


class Victim:
    """A session in a project and a home of its own, gone on with after each kill.

    With `in_git` the project is a repository, in which each turn that comes to its end is committed.
    """

    def __init__(
        self, folder: Path, player: Player, url: str, random: Random, *, in_git: bool = False
    ) -> None:
        self.player, self.problems = player, player.problems
        self.home, self.project = folder / "home", folder / "project"
        for made in (self.home, self.project):
            made.mkdir(parents=True)
        (self.project / "kept.txt").write_text(_FILLER)
        (self.project / BIG).write_text(big_body(1))
        if in_git:
            self.git("init", "-q", "-b", "main")
            self.git("add", ".")
            self.git(*_COMMITTER, "commit", "-q", "-m", "kept")
        settings = self.home / ".config" / "ybs"
        settings.mkdir(parents=True)
        # Nothing is set aside in a window of this size.
        here = {"endpoint": url, "model": "scripted", "window": 1_000_000}
        config = {"llm": {"provider": "here"}, "providers": {"here": here}}
        (settings / "config.json").write_bytes(msgspec.json.encode(config))
        self._store = SessionStore(settings / "sessions")
        self._random, self._turn = random, 0
        #: Files that a kill left in the midst of a replacement.
        self.left_over: set[Path] = set()
        #: What was printed of each run: results by their call, and answers.
        self._printed: dict[str, str] = {}
        self._said: list[str] = []

    def run(self, *, is_killed: bool = False) -> int:
        """Take a turn, and be killed in it, if that is asked for; return the exit code."""
        self._turn += 1
        begun = self._store.newest(str(self.project.resolve())) is not None
        words = [*(["--continue"] if begun else []), "-P", f"take turn {self._turn}"]
        with subprocess.Popen(
            [YBS, "--mode", "bypass", "--no-sandbox", "--output-format", "stream-json", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.project,
            env={**os.environ, "HOME": str(self.home)},
        ) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            lines = self._kill(child) if is_killed else []
            self._note([*lines, *child.stdout.readlines()])
            complaint = child.stderr.read().decode()
        if complaint:
            self.problems.append(f"turn {self._turn} said: {complaint}")
        self.look()
        if child.returncode < 0 and not self._random.randrange(4):
            self._tear()
        return child.returncode

    def _kill(self, child: "subprocess.Popen[bytes]") -> list[bytes]:
        """Kill a moment after a random line, or after the beginning of a random call; return what was read."""
        kind, count = self._random.choice([(b"", LINES), (b'"type":"tool_call"', CALLS)])
        left = self._random.randrange(count)
        pause = self._random.random() * (0.02 if left else 0.3)  # a start takes its time
        lines: list[bytes] = []
        assert child.stdout is not None
        while left and (line := child.stdout.readline()):
            lines.append(line)
            left -= kind in line
        if not left:
            with suppress(subprocess.TimeoutExpired):
                child.wait(pause)
            child.kill()
        return lines

    def git(self, *words: str) -> str:
        """Run git in the project and return what it says."""
        done = subprocess.run(
            ["git", *words], cwd=self.project, capture_output=True, text=True, check=False
        )
        if done.returncode:
            self.problems.append(f"git {words} failed: {done.stderr}")
        return done.stdout

    def _tear(self) -> None:
        """Put half a line at the end of the transcript, as a kill in the midst of a large write does."""
        for path in self._store.folder.glob("*.jsonl"):
            with path.open("ab") as file:
                file.write(b'{"timestamp":"2026-01-01T00:00:00.000Z","type":"user","conte')

    def _note(self, lines: Sequence[bytes]) -> None:
        for data in lines:
            if not data.endswith(b"\n"):
                continue  # nobody has read it whole
            line = msgspec.json.decode(data)
            if line["type"] == "tool_result":
                self._printed[line["id"]] = line["output"]
            elif line["type"] == "assistant":
                self._said.append(line["content"])

    def look(self) -> None:
        """Compare the transcript with what was sent and printed, and the files with what was written."""
        saved = self._store.newest(str(self.project.resolve()))
        if saved is not None:
            self._look_at(self._store.read(saved.name))
        elif self._printed or self._said or self.player.results:
            self.problems.append("the session is gone")
        for path in self.project.rglob("*"):
            name = str(path.relative_to(self.project))
            if path.is_dir() or name == "kept.txt" or name.startswith(".git/"):
                continue
            body = _digest(path.read_text())
            if _STRAY.fullmatch(name) and any(body in all_ for all_ in self.player.bodies.values()):
                self.left_over.add(path)  # whole, and gone with the next write of its file
            elif body not in self.player.bodies.get(name, ()):
                self.problems.append(f"turn {self._turn} left {name}, {path.stat().st_size} bytes")

    def look_at_rest(self) -> None:
        """Look at what the kills have left for good: after a turn for each of the two files that are replaced."""
        self.problems += [f"{path} was left" for path in self.left_over if path.exists()]
        if not (self.project / ".git").is_dir():
            return
        self.problems += [f"{path} was left" for path in self.project.rglob(".git/**/*.lock")]
        if broken := self.git("fsck", "--no-dangling", "--no-progress"):
            self.problems.append(f"the repository is broken: {broken}")

    def _look_at(self, transcript: Transcript) -> None:
        events = [each.event for each in transcript.events]
        kept = {each.id: each.output for each in events if isinstance(each, ToolFinished)}
        for where, results in (("sent", self.player.results), ("printed", self._printed)):
            lost = [name for name, output in results.items() if kept.get(name) != output]
            if lost:
                self.problems.append(f"turn {self._turn}: lost of what was {where}: {lost}")
        said = [each.content for each in events if isinstance(each, AssistantSaid)]
        if not _is_within(self._said, said):
            self.problems.append(f"turn {self._turn}: lost of what was answered: {self._said}")


def big_body(number: int) -> str:
    """Return a text that takes its time to be written."""
    return f"version {number}\n{_FILLER * 120}"


def _digest(body: str) -> bytes:
    return blake2b(body.encode()).digest()


def _is_within(some: Sequence[str], all_: Sequence[str]) -> bool:
    """Return whether the first stand in the second, in their order."""
    left = iter(all_)
    return all(each in left for each in some)


def _turn_of(message: dict[str, Any]) -> int:
    """Return the number of the turn that a message begins; 0 if it begins none."""
    found = _PROMPT.findall(str(message["content"])) if message["role"] == "user" else []
    return int(found[-1]) if found else 0


def _short(message: dict[str, Any]) -> str:
    text = msgspec.json.encode(message).decode()
    return text if len(text) < 400 else f"{text[:200]} ... {text[-200:]}"
