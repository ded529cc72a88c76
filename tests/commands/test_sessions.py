"""/sessions, /resume, /save, /fork, /rename and /session: what a person does with saved sessions."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from hosts import this_host
from replies import shown
from ybs.commands.open import SlashCommands
from ybs.commands.registry import activity_of, runs_beside_a_turn
from ybs.commands.sessions import age, file_name
from ybs.core.envelope import MAIN, Envelope
from ybs.core.events import (
    AssistantSaid,
    ConfirmationAnswered,
    ConfirmationAsked,
    Noticed,
    SessionEnded,
    TextStreamed,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserSaid,
)
from ybs.core.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage, UserMessage
from ybs.session.exchange import (
    MOST_ANSWER_LINES,
    MOST_EARLIER,
    MOST_STEPS,
    earlier_exchanges,
    last_exchange,
    told_beside,
)
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.transcripts.reading import ONE_SHOT
from ybs.transcripts.store import SessionStore


def opened(project: Path, **options: Any) -> Session:
    """Open a session that sends nothing."""
    known = {"provider": "openai", "endpoint": "http://127.0.0.1:9", "model": "m"}
    return Session.open(project, commands=SlashCommands(), **{**known, "sandbox": False, **options})


async def said(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


def talk(session: Session, *words: str, model: str = "m") -> str:
    """Have turns without a model; return the session's name."""
    name = session.journal.begin()
    session.emit(session.beginning(name))
    for text in words:
        session.conversation.append(UserMessage.of(text))
        session.emit(UserSaid(content=text))
        answer = AssistantMessage(content=(Text(text=f"done: {text}"),), model=model)
        session.conversation.append(answer)
        session.emit(AssistantSaid.of(answer))
        session.emit(TurnFinished(reason="done"))
    return name


def file_of(name: str) -> Path:
    return this_host().sessions_folder / f"{name}.jsonl"


async def saved(project: Path, name: str, *words: str, age_seconds: int = 0, **options: Any) -> str:
    """Leave a saved session behind."""
    async with opened(project, **options) as session:
        first = talk(session, *words)
        await said(session, f"/rename {name} it is")
    file_of(first).rename(file_of(name))
    now = file_of(name).stat().st_mtime
    os.utime(file_of(name), (now - age_seconds, now - age_seconds))
    return name


async def test_what_makes_no_sense_is_an_error_and_changes_nothing(project: Path):
    async with opened(project) as session:
        assert shown(await said(session, "/sessions")).startswith(
            "There are no saved sessions of this"
        )
        assert shown(await said(session, "/sessions all")) == "There are no saved sessions yet."
        assert "This session is still empty" in shown(await said(session, "/session"))
        wrong = ("/sessions some", "/resume nothing", "/load 3", "/resume ../x", "/resume x fork")
        for line in (*wrong, "/fork", "/fork x", "/save", "/save x", "/session x"):
            assert (await said(session, line)).is_error, line
        name = talk(session, "one")
        for line in ("/save ../..", "/save 12", "/resume 9"):
            assert (await said(session, line)).is_error, line
        await said(session, "/sessions")
        for line in (f"/resume {name}", "/sessions 1"):
            assert await said(session, line) == Reply(
                text="You are in this session: nothing changed."
            )
        assert session.journal.name == name
        assert "session-" in shown(await said(session, "/save"))
    assert [each.name for each in this_host().sessions_folder.iterdir()] == [f"{name}.jsonl"]


@pytest.mark.integration
async def test_sessions_are_offered_newest_first_and_taken_by_number(project: Path):
    other = project.parent / "other"
    other.mkdir()
    await saved(project, "old", "a", "b", age_seconds=7_300)
    await saved(other, "far", "c", age_seconds=60)
    async with opened(project) as session:
        name = talk(session, "now")
        offer = await said(session, "/sessions")
        assert offer.menu is not None
        assert [(i.line, i.label, i.is_current) for i in offer.menu.items] == [
            (f"/resume {name}", offer.menu.items[0].label, True),
            ("/resume old", "old it is", False),
        ]
        assert offer.menu.items[1].detail == "2 h ago, 4 messages"
        assert "  2  old it is  2 h ago" in shown(offer)
        assert "/sessions all" in shown(offer)
        everywhere = await said(session, "/sessions ALL")
        assert everywhere.menu is not None
        assert everywhere.menu.items[2].line == "/resume far"
        assert everywhere.menu.items[2].detail.endswith(f", {other}")
        assert "current" not in everywhere.menu.items[2].detail
        assert shown(await said(session, "/load 3")).startswith("Resumed “far it is”, 2 messages.")
        assert session.journal.name == "far"
        assert shown(await said(session, "/resume 1")).startswith("Resumed"), "of this folder"
        assert session.journal.name == name
        assert shown(await said(session, "/sessions 2")).startswith("Resumed “old it is”")
        assert session.journal.name == "old"
        await said(session, "/sessions all")
        assert shown(await said(session, "/sessions 3")).startswith("Resumed “far it is”")
        assert (await said(session, "/sessions 99")).is_error


@pytest.mark.integration
async def test_a_resumed_session_is_as_it_was_and_what_differs_is_said(project: Path):
    other = project.parent / "other"
    other.mkdir()
    await saved(other, "far", "look", "mend it\n" + "x\n" * 20)
    with file_of("far").open("ab") as file:
        file.write(b'{"torn\n{"type": "user"\n')
    async with opened(project, mode="plan") as session:
        talk(session, "now")
        reply = await said(session, "/resume far it is")
        first, answer, *rest = session.conversation.messages
        assert first == UserMessage.of("look")
        assert answer == AssistantMessage(content=(Text(text="done: look"),), model="m")
        assert len(rest) == 2
        lines = shown(reply).splitlines()
        assert lines[0] == "Resumed “far it is”, 4 messages."
        assert "2 damaged lines" in lines[1]
        assert str(other) in lines[2]
        assert str(project) in lines[2]
        assert len(lines) == 3
        *earlier, words, last = reply.events
        assert earlier == [UserSaid(content="look"), AssistantSaid(content="done: look")]
        assert isinstance(words, UserSaid)
        assert words.content.startswith("mend it\nx")
        assert words.content.endswith("…")
        assert isinstance(last, AssistantSaid)
        assert session.mode == "plan"
        assert shown(await said(session, "/session")).count("far") == 3


@pytest.mark.integration
async def test_a_session_of_another_model_names_the_way_back(project: Path):
    await saved(project, "old", "a")
    async with opened(project) as session:
        text = shown(await said(session, "/resume old"))
        assert "/model m switches back" not in text
    async with opened(project, model="small") as session:
        text = shown(await said(session, "/resume old"))
        assert "It used m before and uses small now; /model m switches back." in text
    async with opened(project, provider="llamacpp", incognito=True) as session:
        text = shown(await said(session, "/resume old"))
        assert "/provider openai m switches back" in text
        assert "not saved: an incognito session saves nothing" in text
        before = file_of("old").read_bytes()
        talk(session, "secret")
        assert (await said(session, "/fork")).is_error
        assert (await said(session, "/save x")).is_error
        assert file_of("old").read_bytes() == before


async def test_turns_that_failed_are_shown_on_resuming_too(project: Path):
    async with opened(project) as session:
        name = session.journal.begin()
        session.emit(session.beginning(name))
        for text in ("one", "two", "three"):
            session.conversation.append(UserMessage.of(text))
            session.emit(UserSaid(content=text))
            session.emit(TurnFinished(reason="error", message="nobody answers"))
    async with opened(project) as session:
        reply = await said(session, f"/resume {name}")
        words = [each.content for each in reply.events if isinstance(each, UserSaid)]
        assert words == ["one", "two", "three"]


@pytest.mark.integration
async def test_what_another_ybs_has_open_goes_on_in_a_copy(project: Path):
    async with opened(project) as first:
        name = talk(first, "one")
        async with opened(project) as session:
            offer = await said(session, "/resume")
            assert offer.menu is not None
            assert "open in another ybs" in offer.menu.items[0].detail
            reply = await said(session, "/resume 1")
            assert reply.is_error
            assert f"`/resume {name} fork`" in shown(reply)
            assert session.journal.name == ""
            reply = await said(session, f"/resume {name} fork")
            assert session.journal.name in shown(reply)
            assert session.journal.name not in ("", name)
            assert len(session.conversation.messages) == 2


async def test_one_shots_are_listed_last_and_called_so(project: Path):
    await saved(project, "spoken", "one", age_seconds=60)
    async with opened(project) as session:
        alone = talk(session, "two")
        session.emit(SessionEnded(reason=ONE_SHOT, message_count=2))
    async with opened(project) as session:
        menu = (await said(session, "/sessions")).menu
        assert menu is not None
        assert [item.line for item in menu.items] == ["/resume spoken", f"/resume {alone}"]
        assert ["one-shot" in item.detail for item in menu.items] == [False, True]
        menu = (await said(session, "/sessions all")).menu
        assert menu is not None
        assert [item.line for item in menu.items] == ["/resume spoken", f"/resume {alone}"]


async def test_a_fork_leaves_the_first_file_as_it_is(project: Path):
    async with opened(project) as session:
        name = talk(session, "one")
        await said(session, "/rename Work")
        reply = await said(session, "/fork")
        assert session.journal.replay.title == "Work (fork)"
        assert session.journal.name != name
        assert shown(reply).startswith(f"You continue in a copy, {session.journal.name}; {name}")
        before = file_of(name).read_bytes()
        talk(session, "two")
        assert file_of(name).read_bytes() == before
        assert len(session.conversation.messages) == 4


@pytest.mark.integration
async def test_a_copy_has_a_safe_name_and_overwrites_nothing(project: Path):
    async with opened(project) as session:
        talk(session, "one")
        assert shown(await said(session, "/save Über: the ../bug\x1b[2J")).startswith(
            "Saved as Über-"
        )
        (copy,) = [
            path for path in this_host().sessions_folder.iterdir() if path.name.startswith("Ü")
        ]
        assert copy.parent == this_host().sessions_folder
        before = copy.read_bytes()
        assert (await said(session, "/save Über: the ../bug\x1b[2J")).is_error
        assert copy.read_bytes() == before
        talk(session, "two")
        assert copy.read_bytes() == before
        assert shown(await said(session, f"/resume {copy.stem}")).startswith(
            "Resumed “Über: the .."
        )


@pytest.mark.integration
async def test_without_auto_save_only_a_save_writes(project: Path):
    async with opened(project, overrides={"session.auto_save": False}) as session:
        talk(session, "one")
        assert not this_host().sessions_folder.exists()
        assert "session.auto_save is off" in shown(await said(session, "/session"))
        assert (await said(session, "/fork")).is_error
        assert shown(await said(session, "/save mine")).startswith("Saved as mine.")
        assert [path.name for path in this_host().sessions_folder.iterdir()] == ["mine.jsonl"]
        assert shown(await said(session, "/save")).startswith("Saved as session-")
        assert shown(await said(session, "/resume mine")).startswith("Resumed “mine”, 2 messages.")


@pytest.mark.integration
async def test_a_title_is_given_shown_and_kept(project: Path):
    async with opened(project) as session:
        assert "no title" in shown(await said(session, "/rename"))
        name = talk(session, "one")
        assert shown(await said(session, "/rename Mend\x1b the   cart")) == "Title: Mend␛ the cart"
        assert shown(await said(session, "/rename")) == "Title: Mend␛ the cart"
        text = shown(await said(session, "/session"))
        for part in ("Mend␛ the cart", name, f"{name}.jsonl", "messages  2", "continuously", "20"):
            assert part in text, part
    async with opened(project) as session:
        assert shown(await said(session, f"/resume {name}")).startswith("Resumed “Mend␛ the cart”")


def test_earlier_exchanges_are_told_shortly_and_the_oldest_are_counted():
    assert earlier_exchanges([]) == ()
    messages: list[Any] = []
    for number in range(MOST_EARLIER + 3):
        call = ToolCall(id=str(number), name="read_file", arguments=Raw(b"{}"))
        messages += [
            UserMessage.of(f"ask {number}"),
            AssistantMessage(content=(call,)),
            ToolResult(call_id=call.id, name=call.name, output="x"),
            AssistantMessage(content=(Text(text=f"answer {number}\n" + "more\n" * 20),)),
        ]
    first, *events = earlier_exchanges(messages)
    assert first == Noticed(level="info", text="2 earlier prompts are not shown")
    assert [each.content for each in events if isinstance(each, UserSaid)] == [
        f"ask {number}" for number in range(2, MOST_EARLIER + 2)
    ]
    answers = [each.content for each in events if isinstance(each, AssistantSaid)]
    assert len(answers) == MOST_EARLIER
    assert all(each.count("\n") == MOST_ANSWER_LINES and each.endswith("…") for each in answers)
    assert events[1] == Noticed(level="info", text="1 step")


def test_the_last_exchange_is_short_and_says_what_is_missing():
    assert last_exchange([]) == ()
    calls = [ToolCall(id=str(n), name="read_file", arguments=Raw(b"{}")) for n in range(10)]
    messages: list[Any] = [UserMessage.of("before"), UserMessage.of("go")]
    for call in calls[:-1]:
        messages.append(AssistantMessage(content=(Text(text=f"step {call.id}"), call)))
        messages.append(ToolResult(call_id=call.id, name=call.name, output="x"))
    messages.append(UserMessage.of("steered"))
    messages.append(UserMessage.of("mind the time", origin="guard"))
    messages.append(AssistantMessage(content=(calls[-1],), stop_reason="cut_off"))
    events = last_exchange(messages, {1: TurnFinished(reason="done")})
    kinds: list[type] = [type(event) for event in events]
    assert kinds.count(UserSaid) == 2
    assert kinds.count(ToolStarted) == kinds.count(ToolFinished) == MOST_STEPS
    notes = [event.text for event in events if isinstance(event, Noticed)]
    assert notes == [
        "earlier steps are left out",
        "the session ended while read_file ran",
        "it was stopped here",
    ]
    assert last_exchange(messages[1:]) == events, "words amid the work begin no turn"
    finished = [*messages[1:], AssistantMessage(content=(Text(text="so"),)), UserMessage.of("new")]
    assert last_exchange(finished, {0: None}) == (UserSaid(content="new"),)
    shell = UserMessage.of("[Shell command output]\nCommand: ls\nExit code: 0", origin="shell")
    (event,) = last_exchange([shell])
    assert isinstance(event, UserSaid)
    assert event.content == "!ls"


def test_what_ended_a_turn_early_is_told_of_the_last_exchange_and_those_before():
    failed = TurnFinished(reason="error", message="No answer.", usage=Usage(input_tokens=9))
    shown = TurnFinished(reason="error", message="No answer.")
    stopped = TurnFinished(reason="interrupted")
    messages = [UserMessage.of("one"), UserMessage.of("two"), UserMessage.of("three")]
    one, two = UserSaid(content="one"), UserSaid(content="two")
    assert earlier_exchanges(messages, {0: failed, 1: stopped, 2: failed}) == (
        *(one, shown),
        *(two, stopped),
    )
    assert last_exchange(messages[:1], {0: failed}) == (one, shown)
    killed = Noticed(level="warning", text="ybs ended before this turn did")
    assert last_exchange(messages[:1], {0: None}) == (one, killed)
    assert last_exchange(messages[:1], {5: failed}) == (one,), "another turn's"


def test_sub_agents_and_questions_without_an_answer_stand_where_they_were():
    calls = [ToolCall(id=each, name="delegate", arguments=Raw(b"{}")) for each in "ab"]
    done = [ToolFinished(id=each, name="delegate", success=True, output="x") for each in "ab"]
    told = [Envelope("s", "explore-1", UserSaid(content="look")) for _ in range(3)]
    asked = ConfirmationAsked(id="b", name="delegate", title="", preview="")
    answered = ConfirmationAnswered(id="a", is_allowed=True)
    earlier = [
        *(Envelope("s", MAIN, each) for each in (msgspec.structs.replace(asked, id="a"), answered)),
        Envelope("s", "explore-1", TextStreamed(text="not drawn again")),
        told[0],
        Envelope("s", MAIN, done[0]),
        Envelope("s", MAIN, asked),
        told[1],
        Envelope("s", MAIN, done[1]),
        told[2],
        Envelope("s", MAIN, TurnFinished(reason="done")),
    ]
    messages: list[Any] = [UserMessage.of("go"), AssistantMessage(content=tuple(calls))]
    messages += [ToolResult(call_id=each, name="delegate", output="x") for each in "ab"]
    beside = told_beside(earlier)
    shown = [each for each in last_exchange(messages, None, beside) if each in (*told, asked)]
    assert beside == {"a": [told[0]], "b": [asked, told[1]], "": [told[2]]}
    assert shown == [told[0], asked, told[1], told[2]]


def test_small_words():
    ages = {0: "just now", 59: "just now", 60: "1 min ago", 7_300: "2 h ago", 90_000: "1 day ago"}
    assert {seconds: age(seconds) for seconds in ages} == ages
    names = {"a b": "a-b", "../x": "x", "x.jsonl": "x", "…": "", "-x": "x", "é" * 200: "é" * 80}
    assert {name: file_name(name) for name in names} == names
    assert activity_of("/compact the plan") == "compacting"
    assert activity_of("/etc/hosts") == activity_of("words") == activity_of("/clear") == ""
    beside = {"/sessions": True, "/resume": True, "/resume 1": False, "/undo": False}
    beside |= {"/redo": False, "/compact": False, "/restore": False, "/fork": False, "/save": True}
    assert {line: runs_beside_a_turn(line) for line in beside} == beside


async def test_a_disk_that_is_full_is_told_and_nothing_breaks(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "/x/y.jsonl")

    async with opened(project) as session:
        talk(session, "one")
        monkeypatch.setattr(SessionStore, "copy", full)
        reply = await said(session, "/save x")
        assert reply == Reply(text="No space left on device: /x/y.jsonl", is_error=True)
