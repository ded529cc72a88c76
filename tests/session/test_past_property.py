"""Whatever a session goes through, the live state, the conversation and what the file gives back are the same."""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from opened import events_to
from scripted import Entry, OpenAIServer, RecordedRequest
from ybs.agent.prompt_context import thought_in
from ybs.commands.open import SlashCommands
from ybs.core.errors import YbsError
from ybs.core.events import Event, ToolFinished
from ybs.session.history import What
from ybs.session.session import Session
from ybs.testing import answer, call
from ybs.transcripts.past_turns import PastTurns
from ybs.transcripts.reading import Transcript

#: What is done, and a number that says which of its kinds.
Step: TypeAlias = tuple[str, int]
ANSWERS: dict[str, list[Entry]] = {
    "talk": ["yes"],
    "explain": ["at length " * 500],
    "write": [call("write_file", path="a.txt", content="1\n"), "ok"],
    "edit": [call("write_file", path="d/b.txt", content="2\n"), "ok"],
    "run": [call("run_shell", command="echo 3 >> a.txt; rm -rf d; mkdir e"), "ok"],
    "aim": [call("set_thought", text="mend the cart"), "ok"],
    "ask both": [answer("both", call("read_file", path="a.txt"), call("list_files")), "ok"],
}
WAYS = ("undo", "redo", "rewind", "clear", "compact", "restore")
DOORS = ("reopen", "kill", "/fork", "!echo 4 > c.txt", "/rename other", "/focus the cart")
#: The only errors that a life may meet: there is nothing that the step could act on.
NOTHING_TO_DO = {
    "undo": "nothing to undo",
    "redo": "nothing to redo",
    "restore": "There was no compaction",
}
WHAT: tuple[What, ...] = ("both", "conversation", "files")
steps = st.tuples(st.sampled_from([*ANSWERS, *WAYS, *DOORS]), st.integers(0, 30))
lives = st.lists(steps, min_size=3, max_size=14)


class Life:
    """A session that is opened again and again."""

    def __init__(self, project: Path, server: OpenAIServer, answers: list[Entry]) -> None:
        self._project, self._server, self._answers = project, server, answers
        self.session = self._opened()

    def _opened(self, **options: Any) -> Session:
        here = {"provider": "openai", "endpoint": self._server.url, "model": "m", "sandbox": False}
        return Session.open(
            self._project, commands=SlashCommands(), **{**here, "mode": "bypass", **options}
        )

    async def do(self, what: str, number: int) -> None:
        """Do one step. Raises YbsError where it makes no sense."""
        session, name = self.session, self.session.journal.name
        self._answers[:] = ANSWERS.get(what, [])
        if what in ANSWERS:
            await self._say("go on" if number % 2 else f"words {number}", number)
        elif what in WAYS:
            await self._go_back(what, number)
        elif what in ("reopen", "kill"):
            if what == "kill":
                session.journal.close()
            await session.close()
            self.session = self._opened(**({"resume": name} if name else {}))
        else:
            await session.handle(what)

    async def _say(self, words: str, number: int) -> None:
        """Take a turn that may be stopped at some event, and hear more words meanwhile."""
        left = number

        def see(event: Event) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self.session.cancel()
            if isinstance(event, ToolFinished) and number % 3 == 0:
                self.session.steer("and this")

        unsubscribe = self.session.subscribe(events_to(see))
        await self.session.send(words)
        unsubscribe()
        self.session.unread()

    async def _go_back(self, what: str, number: int) -> None:
        past = self.session.history
        match what:
            case "undo":
                await past.undo(number % 3 + 1, force=number % 5 == 0)
            case "redo":
                await past.redo()
            case "rewind" if prompts := past.prompts():
                place, _ = prompts[number % len(prompts)]
                await past.rewind(place, WHAT[number % 3], force=True)
            case "clear":
                past.clear()
            case "compact":
                await self.session.compact()
            case "restore":
                past.restore(self.session.agent.window)
            case _:
                pass


def check(session: Session) -> None:
    """Compare the three, and a copy."""
    live, messages = session.journal.replay, list(session.conversation.messages)
    assert live.messages == messages
    assert thought_in(messages) == session.context.thought
    for each in session.history.turns:
        assert each.place < 0 or messages[each.place] == each.message
    if session.journal.path:
        store = session.journal.store()
        read = store.read(session.journal.name)
        copy = store.fork(read)
        for other in (read, store.read(copy)):
            assert _left(other) == (
                messages,
                live.checkpoints,
                live.past_turns.open,
                live.restorable(),
            )
        assert (read.damaged, read.replay.usage) == (0, live.usage)
        store.delete(copy)


def _left(transcript: Transcript) -> tuple[Any, ...]:
    replay, rounds = transcript.replay, transcript.replay.past_turns
    assert isinstance(rounds, PastTurns)
    return replay.messages, replay.checkpoints, rounds.open, replay.restorable()


@contextmanager
def suppress_nothing_to_do(what: str) -> Iterator[None]:
    """Let the errors of NOTHING_TO_DO pass and no other."""
    try:
        yield
    except YbsError as error:
        if NOTHING_TO_DO.get(what, "never") not in str(error):
            raise


async def _live(project: Path, life: Sequence[Step]) -> None:
    answers: list[Entry] = []

    def reply(_: RecordedRequest) -> Entry:
        return answers.pop(0) if answers else "spare"

    async with OpenAIServer([reply], is_repeated=True) as server:
        lived = Life(project, server, answers)
        for what, number in life:
            with suppress_nothing_to_do(what):
                await lived.do(what, number)
            check(lived.session)
        await lived.session.close()


def _play(life: Sequence[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_live(Path(folder).resolve(), life))


@pytest.mark.integration
@settings(max_examples=5, deadline=None)
@example([("aim", 0), ("rewind", 1), ("talk", 0)])
@given(lives)
def test_a_life_is_the_same_live_in_its_file_and_in_a_copy(life: list[Step]):
    _play(life)


@pytest.mark.slow
@pytest.mark.timeout(300)
@settings(max_examples=20, deadline=None)
@given(lives)
def test_many_lives_are_the_same_live_in_their_files_and_in_copies(life: list[Step]):
    _play(life)
