"""What the frontends show of a session that goes on: its last exchange, and what was compacted."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace
from paper import Page
from stage import staged

from fake_session import FakeSession, says
from ybs.core.envelope import Envelope
from ybs.core.events import (
    AssistantSaid,
    Compacted,
    ConfirmationAsked,
    Event,
    Noticed,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.session.reply import Outcome, Reply

EVENTS: tuple[Event | Envelope, ...] = (
    UserSaid(content="fix\x1b the\ncart"),
    Noticed(level="info", text="earlier steps are left out"),
    AssistantSaid(content="I look."),
    ToolStarted(id="1", name="read_file", arguments=Raw(b'{"path": "cart.py"}')),
    ToolFinished(id="1", name="read_file", success=True, output="x", summary="12 lines"),
    ToolStarted(id="2", name="run_shell", arguments=Raw(b'{"command": "make"}')),
    ConfirmationAsked(id="2", name="run_shell", title="", preview=""),
    Envelope("s", "explore-1", UserSaid(content="look around")),
    Envelope("s", "explore-1", TurnFinished(reason="done", duration_seconds=6.5)),
    ToolFinished(id="2", name="run_shell", success=False, output="Nobody knows."),
    AssistantSaid(content="It is **mended**."),
    TurnFinished(reason="error", message="The provider is overloaded."),
)
RESUMED = Reply(text="Resumed “Fix the cart”, 4 messages.", events=EVENTS)
COMPACTED = Compacted(
    messages=(), reason="full", tokens_before=31_000, tokens_after=9_000, outputs=14
)


@pytest.mark.integration
async def test_the_terminal_draws_the_last_exchange_before_the_first_prompt() -> None:
    session = FakeSession(says("Next."))
    session.resumed = RESUMED
    async with staged(session) as stage:
        await stage.sees("Resumed “Fix the cart”")
        lines = [line.rstrip() for line in stage.screen.splitlines() if line.strip()]
        first = lines.index("› fix␛ the")
        assert lines[first + 1 : first + 3] == ["  cart", "  earlier steps are left out"]
        assert lines[first + 3] == "  I look."
        assert lines[first + 4].startswith("• read      cart.py   12 lines")
        assert lines[first + 5].startswith("• explore-1 look around   0 steps")
        assert lines[first + 5].endswith("6.5 s")
        assert lines[first + 6].startswith("✗ shell     make   not run")
        assert lines[first + 7 : first + 10] == [
            "  It is mended.",
            "✗ The provider is overloaded.",
            RESUMED.text,
        ]
        assert not stage.terminal.live.calls
        stage.keys("go on\r")
        await stage.sees("Next.")


async def test_plain_tells_the_last_exchange_in_sentences(talking: Callable[..., Any]) -> None:
    session = FakeSession()
    session.resumed = RESUMED
    async with talking(session) as talk:
        await talk.sees("Resumed")
        for line in (
            "You: fix␛ the\ncart\n",
            "Info: earlier steps are left out",
            "read_file cart.py: done, 12 lines.\n",
            "explore-1 is done: 0 steps, 6.5 s.\n",
            "\nIt is **mended**.\n",
            "Error: The provider is overloaded.",
        ):
            assert line in talk.text, line


@pytest.mark.integration
async def test_a_command_that_takes_long_says_what_it_does() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    class Slow(FakeSession):
        async def handle(self, line: str, images: Any = ()) -> Reply | Outcome:
            begun.set()
            await go.wait()
            self.emit(COMPACTED)
            return Reply(text="")

    async with staged(Slow()) as stage:
        stage.keys("/compact the plan\r")
        await begun.wait()
        await stage.sees("compacting")
        go.set()
        await stage.sees("compacted 31k → 9.0k tokens; 14 tool outputs set aside (/restore)")
        assert "compacting" not in stage.screen


def test_a_compaction_is_one_dim_line() -> None:
    assert Page().draw(COMPACTED).split("\n") == [
        "  compacted 31k → 9.0k tokens; 14 tool outputs set aside",
        "  (/restore)",
        "",
    ]


async def test_plain_tells_a_compaction(talking: Callable[..., Any]) -> None:
    async def cue(session: FakeSession) -> None:
        session.emit(COMPACTED)
        session.emit(replace(COMPACTED, reason="refused"))
        session.emit(replace(COMPACTED, reason="smaller"))
        session.emit(replace(COMPACTED, outputs=0))

    async with talking(FakeSession(cue)) as talk:
        talk.types("go\n")
        await talk.sees("Compacted 31k to 9.0k tokens; 14 tool outputs set aside (/restore).")
        await talk.sees("Too long for the provider: compacted 31k to 9.0k tokens;")
        await talk.sees("The window is smaller now: compacted 31k to 9.0k tokens;")
        await talk.sees("Compacted 31k to 9.0k tokens (/restore).")
