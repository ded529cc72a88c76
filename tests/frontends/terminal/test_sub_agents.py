"""Two sub-agents that tell into one sink at once: every frontend keeps them apart, whole and in order."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from paper import Page
from stage import staged

from fake_session import FakeSession, question_of, says
from hosts import this_host
from scripted import ServerProcess
from ybs.core.envelope import MAIN
from ybs.core.events import (
    AssistantSaid,
    ConfirmationAnswered,
    ConfirmationAsked,
    Emit,
    Event,
    Noticed,
    RequestStarted,
    TextStreamed,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import ToolCall, ToolResult, Usage
from ybs.core.ports import Toolbox, ToolSpec
from ybs.frontends.headless.output import Format
from ybs.frontends.headless.run import run_once
from ybs.session.options import Options
from ybs.session.session import Session
from ybs.testing import call
from ybs.transcripts.reading import read

Open = Callable[..., Any]
PASSING = (TextStreamed, RequestStarted)


def turn_of(letter: str, end: TurnFinished, *, success: bool) -> list[Event]:
    """Return the events of a sub-agent whose words all hold its letter; the ids are those of the other one too."""
    path = f"{letter}.py"
    arguments = Raw(msgspec.json.encode({"path": path}))
    pieces = [f"{letter}{number} " for number in range(20)]
    used = Usage(input_tokens=1_000, output_tokens=10)
    return [
        UserSaid(content=f"look at {letter}"),
        RequestStarted(model=f"model-{letter}", step=1),
        *(TextStreamed(text=piece) for piece in pieces),
        AssistantSaid(content="".join(pieces), usage=used),
        ToolStarted(id="call_1", name="read_file", arguments=arguments),
        ToolFinished(id="call_1", name="read_file", success=success, output=f"seen {letter}"),
        Noticed(level="warning", text=f"careful with {letter}"),
        RequestStarted(model=f"model-{letter}", step=2),
        TextStreamed(text=f"{letter} ends"),
        AssistantSaid(content=f"{letter} ends", usage=used),
        end,
    ]


TOLD = {
    "one-1": turn_of("a", TurnFinished(reason="done"), success=True),
    "two-1": turn_of("b", TurnFinished(reason="error", message="The server went."), success=False),
}


def interleaved() -> Iterator[tuple[str, Event]]:
    """Yield an event of one sub-agent, then one of the other."""
    for pair in zip_longest(*TOLD.values()):
        yield from ((name, event) for name, event in zip(TOLD, pair, strict=True) if event)


class Delegates(Toolbox):
    """A toolbox with one tool, whose call is the work of two sub-agents."""

    session: Session | None = None
    _specs = (
        ToolSpec(
            name="share_out",
            description="Delegates.",
            effect="read",
            parameters=Raw(b'{"type":"object","properties":{}}'),
        ),
    )

    def specs(self) -> Sequence[ToolSpec]:
        return self._specs

    def is_read_only(self, call: ToolCall) -> bool:
        return True

    async def run(self, call: ToolCall, emit: Emit) -> ToolResult:
        for name, event in interleaved():
            assert self.session is not None
            self.session.emit(event, agent=name, started_by=call.id)
            await asyncio.sleep(0)
        return ToolResult(call_id=call.id, name=call.name, output="both have looked")


def told(session: FakeSession) -> None:
    for name, event in interleaved():
        session.emit(event, agent=name)


async def works(session: FakeSession) -> None:
    arguments = Raw(b'{"path":"mine"}')
    session.emit(ToolStarted(id="call_1", name="share_out", arguments=arguments))
    told(session)
    session.emit(ToolFinished(id="call_1", name="share_out", success=True, output="both"))
    session.emit(TextStreamed(text="All seen."))
    session.emit(AssistantSaid(content="All seen."))


def opener(options: Options) -> Session:
    """Open a session whose tool `share_out` tells of its sub-agents."""
    toolbox = Delegates()
    session = toolbox.session = Session(msgspec.structs.replace(options, toolboxes=(toolbox,)))
    return session


def headless(
    project: Path, tmp_path: Path, output_format: Format, *, is_verbose: bool = False
) -> int:
    with ServerProcess("openai", [call("share_out"), "All seen."], tmp_path) as server:
        settings = {"provider": "openai", "endpoint": server.url, "model": "m"}
        options = Options.of(project, {**settings, "sandbox": False})
        return run_once(
            options, prompt="go", output_format=output_format, is_verbose=is_verbose, opener=opener
        )


@pytest.mark.integration
async def test_the_terminal_draws_one_line_of_each_and_nothing_of_what_they_write() -> None:
    async with staged(FakeSession(works), prompt="go") as stage:
        await stage.sees("All seen.")
        await stage.until(lambda: not stage.session.is_busy)
        lines = [line.rstrip() for line in stage.screen.split("\n")]
    work = lines[lines.index("› go") + 2 : lines.index("  All seen.")]
    dot = " · "
    assert [" ".join(line.split()) for line in work if line] == [
        "! one-1: careful with a",
        "! two-1: careful with b",
        f"• one-1 look at a 2 steps{dot}2.0k tokens",
        "✗ two-1 look at b",
        "The server went.",
        "• share_out mine",
    ]


def test_while_they_work_each_has_its_own_line_below_the_calls() -> None:
    page = Page(width=78)
    seen: list[list[str]] = []
    for name, event in interleaved():
        page.clock.now += 1
        page.draw(event, agent=name)
        seen.append(page.passing(78))
    assert seen[3] == [
        "⠋ one-1     look at a   waits for model-a  3 s",
        "⠋ two-1     look at b   waits for model-b  2 s",
    ]
    reading = next(lines for lines in seen if "b.py" in lines[-1])
    assert [line.partition("look")[2] for line in reading] == [
        " at a   read a.py · 1 step · 1.0k tokens  47 s",
        " at b   read b.py · 1 step · 1.0k tokens  46 s",
    ]
    assert seen[-1] == []


def test_ctrl_o_shows_what_each_did_and_said_whole_and_in_order() -> None:
    page = Page(width=78)
    for name, event in interleaved():
        page.draw(event, agent=name)
    drawn = len(page.text)
    for letter, state in (("b", "failed: "), ("a", "")):
        assert page.renderer.unfold()
        shown = " ".join(page.text[drawn:].split())
        drawn = len(page.text)
        pieces = " ".join(f"{letter}{number}" for number in range(20))
        assert shown.endswith(
            f"look at {letter} {pieces} read {letter}.py: {state}seen {letter} "
            f"careful with {letter} {letter} ends"
        )


def test_more_than_fit_are_counted_and_a_narrow_screen_has_what_matters() -> None:
    page = Page(width=40)
    for number in range(9):
        page.draw(UserSaid(content="do it"), agent=f"agent-{number}")
    assert page.passing(40) == [*(f"⠋ agent-{number} begins" for number in range(6)), "  … 3 more"]


def test_the_time_of_a_question_is_not_the_sub_agents() -> None:
    page = Page(width=78)
    page.live.begin()
    page.draw(UserSaid(content="do it"), agent="one-1")
    page.clock.now += 2
    page.draw(ConfirmationAsked(id="1", name="run_shell", title="", preview=""), agent="one-1")
    page.clock.now += 30
    assert "asks you" in page.passing(78)[0]
    assert page.live.worked_seconds == 2
    page.draw(ConfirmationAnswered(id="1", is_allowed=True), agent="one-1")
    page.clock.now += 1
    assert page.passing(78)[0].endswith(" 3 s")
    assert page.live.worked_seconds == 3
    page.draw(TurnFinished(reason="done"), agent="one-1")
    assert page.text.rstrip().endswith(" 3.0 s")


def test_the_last_line_counts_what_summaries_took_too() -> None:
    page = Page()
    *events, _ = TOLD["one-1"]
    whole = Usage(input_tokens=39_000, output_tokens=1_000)
    page.draw(*events, TurnFinished(reason="done", steps=4, usage=whole), agent="one-1")
    assert "4 steps · 40k tokens" in page.text


def test_what_comes_after_the_end_begins_nothing() -> None:
    page = Page(width=78)
    page.draw(UserSaid(content="do it"), TurnFinished(reason="interrupted"), agent="one-1")
    page.draw(Noticed(level="info", text="late"), TurnFinished(reason="done"), agent="one-1")
    assert [line.split() for line in page.text.splitlines()] == [
        ["✗", "one-1", "do", "it"],
        ["stopped"],
    ]
    assert page.passing(78) == []


async def test_the_plain_terminal_names_who_begins_ends_and_calls(talking: Open) -> None:
    async with talking(FakeSession(works)) as talk:
        talk.types("go\n")
        await talk.sees("All seen.")
    _, _, work = talk.text.partition("You: ")
    assert work.split("\n")[:14] == [
        "one-1 begins: look at a.",
        "two-1 begins: look at b.",
        "one-1: read_file a.py: done.",
        "two-1: read_file b.py: failed, seen b.",
        "one-1: Warning: careful with a",
        "two-1: Warning: careful with b",
        "one-1 is done: 2 steps, 2.0k tokens, 1 ms.",
        "two-1 ended early, The server went: 2 steps, 2.0k tokens, 1 ms.",
        "share_out mine: done.",
        "",
        "All seen.",
        "",
        "(1.2k in, 34 out, 1.5 s)",
        "",
    ]


@pytest.mark.integration
async def test_what_they_do_while_a_question_stands_there_is_told_after_its_answer(talking):
    async def asks_meanwhile(session: FakeSession) -> None:
        question = msgspec.structs.replace(question_of("write_file", "write"), agent="one-1")
        asking = asyncio.ensure_future(session.confirm(question))
        await asyncio.sleep(0)
        told(session)
        session.answers.append(await asking)
        await says("Over.")(session)

    session = FakeSession(asks_meanwhile)
    async with talking(session, "go") as talk:
        await talk.sees("no because ...: ")
        assert talk.text.endswith("no because ...: ")
        talk.clock.now += 1
        talk.types("yes\n")
        await talk.sees("Over.")
    assert session.answers[0].is_allowed
    asked, _, rest = talk.text.partition("no because ...: ")
    assert "begins" not in asked
    assert rest.index("one-1 begins") < rest.index("two-1 begins") < rest.index("Over.")


@pytest.mark.integration
@pytest.mark.parametrize("is_verbose", [False, True])
def test_print_shows_the_main_agents_answer_alone(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_verbose: bool
) -> None:
    assert headless(project, tmp_path, "text", is_verbose=is_verbose) == 0
    written = capsys.readouterr()
    assert written.out == "All seen.\n"
    theirs = [line for line in written.err.split("\n") if line.startswith("[")]
    warned = ["[one-1] warning: careful with a", "[two-1] warning: careful with b"]
    assert [line for line in theirs if "warning" in line] == warned
    assert (theirs == warned) is not is_verbose


@pytest.mark.integration
def test_the_result_as_json_counts_what_they_used(project, tmp_path, capsys):
    assert headless(project, tmp_path, "json") == 0
    used = msgspec.json.decode(capsys.readouterr().out)["usage"]
    theirs = sum(
        event.usage.input_tokens
        for events in TOLD.values()
        for event in events
        if isinstance(event, AssistantSaid)
    )
    assert used["input_tokens"] > theirs > 0


@pytest.mark.integration
def test_stream_json_and_the_transcript_keep_them_apart_whole_and_in_order(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert headless(project, tmp_path, "stream-json") == 0
    lines = [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]
    known = {"timestamp", "v", "session", "agent", "started_by"}
    (started,) = (
        line["id"] for line in lines if line["type"] == "tool_call" and line["agent"] == MAIN
    )
    assert {(line["agent"], line.get("started_by")) for line in lines} == {
        (MAIN, None),
        *((name, started) for name in TOLD),
    }
    for name, events in TOLD.items():
        got = [
            {key: value for key, value in line.items() if key not in known}
            for line in lines
            if line["agent"] == name
        ]
        assert got == [msgspec.json.decode(msgspec.json.encode(event)) for event in events]
    (result,) = (line for line in lines if line["type"] == "result")
    assert (result["result"], result["agent"]) == ("All seen.", MAIN)
    (path,) = this_host().sessions_folder.glob("*.jsonl")
    kept = read(path)
    for name, events in TOLD.items():
        stored = [event for event in events if not isinstance(event, PASSING)]
        theirs = [each for each in kept.events if each.agent == name]
        assert [each.event for each in theirs] == stored
        assert {each.started_by for each in theirs} == {started}
    assert kept.replay.last_answer == "All seen."
