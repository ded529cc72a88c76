"""/undo, /redo, /rewind, /compact and /restore: the ways back, in words and in files."""

import asyncio
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replies import shown
from scripted import OpenAIServer
from ybs.checkpoints.states import WHY_LARGE, Restored
from ybs.commands.open import SlashCommands
from ybs.commands.undo import FILES_STAY, STILL_RUNS, told
from ybs.core.events import AssistantSaid, Compacted, TurnFinished, UserSaid
from ybs.core.messages import AssistantMessage, Image, Text, Usage, UserMessage
from ybs.core.ports import Answer, Question
from ybs.frontends.terminal.prompt.draft import PromptDraft
from ybs.frontends.terminal.prompt.history import LineHistory
from ybs.session.history import CommitSet, WayBack
from ybs.session.mentions import MOST_MENTIONS
from ybs.session.reply import Reply, TerminalActions
from ybs.session.session import Session
from ybs.testing import RecordedEvents, call

#: A PNG of one dot.
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
Open = Callable[..., tuple[Session, RecordedEvents]]


async def said(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


def names_in(folder: Path, pattern: str = "*") -> list[str]:
    return sorted(path.name for path in folder.glob(pattern))


@pytest.fixture
def quiet(project: Path) -> Session:
    """A session that sends nothing."""
    return Session.open(
        project,
        commands=SlashCommands(),
        provider="openai",
        endpoint="http://127.0.0.1:9",
        model="m",
        sandbox=False,
    )


def writes(path: str, content: str) -> list[Any]:
    """Script a turn that writes a file."""
    return [call("write_file", path=path, content=content), f"Wrote {path}."]


def talk(session: Session, *words: str) -> None:
    session.journal.begin()
    for text in words:
        session.conversation.append(UserMessage.of(text))
        session.emit(UserSaid(content=text))
        answer = AssistantMessage(content=(Text(text="yes"),), model="m")
        session.conversation.append(answer)
        session.emit(AssistantSaid.of(answer))
        session.emit(TurnFinished(reason="done"))


async def test_what_makes_no_sense_is_an_error_and_changes_nothing(quiet: Session):
    async with quiet:
        for line in ("/undo", "/redo", "/restore"):
            assert shown(await said(quiet, line)).startswith(
                ("There is nothing", "There was no", "Nothing was")
            ), line
        talk(quiet, "one")
        wrong = ("/undo 0", "/undo x", "/undo 1 2", "/undo -1", "/redo 1", "/redo", "/restore 1")
        more = ("/rewind 1 some", "/rewind 1 force x", "/diff 0", "/diff -1", "/restore")
        for line in (*wrong, *more):
            assert (await said(quiet, line)).is_error, line
        assert len(quiet.conversation.messages) == 2


@pytest.mark.integration
async def test_an_undo_takes_words_and_files_back_and_a_redo_does_them_again(
    open_session: Open, project: Path
):
    script = [*writes("a.py", "x = 1\n"), *writes("a.py", "x = 2\n"), "Nothing to do."]
    async with OpenAIServer(script) as server:
        session, _ = open_session(server, mode="bypass")
        async with session:
            for words in ("write it", "another\none", "talk"):
                await session.send(words)
            reply = await said(session, "/undo")
            assert reply == Reply(
                text=f"Took back the last turn. {FILES_STAY}",
                terminal=TerminalActions(draft="talk"),
            )
            first = await said(session, "/diff 2")
            assert "+x = 1" in first.diff
            assert "Turn 2 back" in first.text
            assert "-x = 1" not in first.diff
            assert "+x = 1" in (await said(session, "/diff all")).diff
            assert (
                shown(await said(session, "/diff 3"))
                == "There are only 2 turns that changed files."
            )
            assert (await said(session, "/diff redo")).text == "No file would be changed."
            ahead = (await said(session, "/diff undo")).diff
            assert "-x = 1\n+x = 2" in ahead
            reply = await said(session, "/undo 2")
            assert shown(reply) == "Took back 2 turns. 1 file is as before: a.py."
            assert reply.terminal.draft == "write it"
            assert not (project / "a.py").exists()
            assert list(session.conversation.messages) == []
            assert (await said(session, "/diff undo")).text == "No file would be changed."
            again = (await said(session, "/diff redo")).diff
            assert again.index("+x = 1") < again.index("-x = 1\n+x = 2")
            reply = await said(session, "/redo")
            assert shown(reply) == "Redone: a.py."
            assert (project / "a.py").read_text() == "x = 2\n"
            assert len(session.history.prompts()) == 2
            (project / "a.py").write_text("mine\n")
            reply = await said(session, "/undo")
            assert reply.is_error
            assert (
                "Changed since, by you or another program: a.py.\n/undo force overwrites it."
                in shown(reply)
            )
            assert (project / "a.py").read_text() == "mine\n"
            assert (await said(session, "/undo force")).terminal.draft == "another\none"
            assert (project / "a.py").read_text() == "x = 1\n"


@pytest.mark.integration
async def test_a_copy_of_a_session_knows_what_its_turns_changed(open_session: Open, project: Path):
    script = [*writes("a.py", "1"), *writes("b.py", "2")]
    async with OpenAIServer(script) as server:
        session, _ = open_session(server, mode="bypass")
        async with session:
            await session.send("one")
            await session.send("two")
            for line in ("/undo", "/redo"):
                assert not (await said(session, line)).is_error
            for done in ("b.py", "a.py"):
                assert not (await said(session, "/fork")).is_error
                reply = await said(session, "/undo")
                assert shown(reply) == f"Took back the last turn. 1 file is as before: {done}."
    assert names_in(project) == []


@pytest.mark.integration
async def test_a_rewind_over_changes_asks_what_is_to_go_back(open_session: Open, project: Path):
    script = [*writes("a.py", "1"), *writes("b.py", "2"), *writes("b.py", "3")]
    async with OpenAIServer(script) as server:
        session, _ = open_session(server, mode="bypass")
        async with session:
            for words in ("one", "two", "three"):
                await session.send(words)
            offer = await said(session, "/rewind")
            assert offer.menu is not None
            assert "1 file changed since" in offer.menu.items[0].detail
            assert "2 files changed since" in offer.menu.items[2].detail
            second = await said(session, offer.menu.items[1].line)
            assert second.menu is not None
            lines = [item.line for item in second.menu.items]
            ways = ("both", "conversation", "files")
            assert lines == [f"/rewind 2 of 3 {way}" for way in ways]
            assert len(session.conversation.messages) == 12
            again = await said(session, "/rewind 1")
            assert again.menu is not None
            assert again.menu.items[0].line == "/rewind 1 both", "no item of the menu before"
            reply = await said(session, lines[2])
            assert shown(reply) == "Took the files back. 1 file is as before: b.py."
            assert reply.terminal.draft == ""
            assert names_in(project) == ["a.py"]
            reply = await said(session, lines[0])
            assert (shown(reply), reply.terminal.draft) == (
                f"Went back by 2 prompts. {FILES_STAY}",
                "two",
            )
            reply = await said(session, "/rewind 1 conversation")
            assert (shown(reply), reply.terminal.draft) == (
                f"Went back by one prompt. {FILES_STAY}",
                "one",
            )
            assert (project / "a.py").exists()
            assert (await said(session, "/diff")).diff, "it is still there"


@pytest.mark.integration
async def test_an_undo_of_a_typed_command_gives_the_command_back(open_session: Open, project: Path):
    async with OpenAIServer(["I see."]) as server:
        session, _ = open_session(server, mode="bypass")
        async with session:
            await session.handle("!touch made")
            assert names_in(project) == ["made"]
            assert (await said(session, "/undo")).terminal.draft == "!touch made"
    assert names_in(project) == []


@pytest.mark.integration
@pytest.mark.parametrize("again", ["{}", "{} please", "see {}"])
async def test_what_was_data_in_words_that_are_taken_back_attaches_nothing_from_outside(
    open_session: Open, project: Path, home: Path, again: str
):
    inside, outside, named = project / "in.txt", home / "diary.txt", home / "named.txt"
    for file in (inside, outside, named):
        file.write_text(f"content of {file.name}\n")
    picture = home / "shot.png"
    picture.write_bytes(b64decode(PICTURE))
    commands = home / ".config" / "ybs" / "commands"
    commands.mkdir(parents=True)
    (commands / "review.md").write_text("Review $ARGUMENTS.")
    data = f"@{inside} @{outside} {picture}"
    async with OpenAIServer(["one", "two", "three", "four"]) as server:
        session, _ = open_session(server)
        async with session:
            for line, most in (
                (f"@{named} is good", {"named.txt"}),
                (f"/review {data}", {"in.txt"}),
            ):
                await session.handle("/new")
                await session.handle(line)
                draft = (await said(session, "/undo")).terminal.draft
                assert draft
                await session.handle("/new")
                await session.handle(again.format(draft))
                (message,) = [
                    m for m in session.conversation.messages if isinstance(m, UserMessage)
                ]
                contents = [
                    each
                    for each in (inside, outside, named)
                    if each.read_text().strip() in message.text
                ]
                assert {each.name for each in contents} == most
                assert not any(isinstance(each, Image) for each in message.content)


@pytest.mark.integration
async def test_what_was_taken_back_behind_more_mentions_than_are_looked_at_attaches_nothing(
    open_session: Open, home: Path
):
    (home / "diary.txt").write_text("the diary\n")
    commands = home / ".config" / "ybs" / "commands"
    commands.mkdir(parents=True)
    (commands / "review.md").write_text("Review $ARGUMENTS.")
    async with OpenAIServer(["one", "two"]) as server:
        session, _ = open_session(server)
        async with session:
            await session.handle("/review " + "@a " * MOST_MENTIONS + "@~/diary.txt")
            draft = (await said(session, "/undo")).terminal.draft
            assert draft is not None
            await session.handle(draft.replace("@a ", ""))
            assert "@~/diary.txt" in session.conversation.messages[-2].text
            assert "the diary" not in str(session.conversation.messages)


def _sent(draft: PromptDraft) -> None:
    """Press Enter."""


def _edited(draft: PromptDraft) -> None:
    """Come back from Ctrl-G, where control characters are left out."""
    draft.replace(f"{draft.words}\n")


def _put_aside(draft: PromptDraft) -> None:
    draft.put_aside()
    draft.give("first this")
    draft.clear()
    draft.put_aside()


def _joined(draft: PromptDraft) -> None:
    draft.give("first this")


def _shortened(draft: PromptDraft) -> None:
    draft.set(draft.text[draft.text.index("\n") + 1 :])


@pytest.mark.integration
@pytest.mark.parametrize("touch", [_sent, _edited, _put_aside, _joined, _shortened])
async def test_piped_words_that_come_back_attach_nothing_outside_unasked_in_whatever_form(
    open_session: Open, home: Path, touch: Callable[[PromptDraft], None]
):
    """The prompt takes blanks and control characters out of a text, and so makes another path of one, or a mention of none."""
    (home / "diary.txt").write_text("the diary\n")
    for number, end in enumerate(('@"~/diary.txt ', "\x07@~/diary.txt", "@~/dia\x1b[0mry.txt")):
        asked: list[str] = []

        async def ask(question: Question, asked: list[str] = asked) -> Answer:
            title = question.preview.title
            asked.extend([title] * title.startswith("attach "))
            return Answer(is_allowed=title.startswith("send your message without"))

        async with OpenAIServer(["one", "two", "three"]) as server:
            before, _ = open_session(server)
            async with before:
                await before.send(f"Issue 12:\nit says {end}", typed="")
                name = before.journal.name
            session, _ = open_session(server, resume=name)
            session.confirm = ask
            async with session:
                draft = PromptDraft(LineHistory(), print)
                draft.offer((await said(session, "/undo")).terminal.draft)
                touch(draft)
                words = draft.take()
                assert await session.inbox.kept(words) == "", "another session could not tell"
                assert await session.inbox.kept("hi there") == "hi there"
                await session.handle(words)
                message = session.conversation.messages[0]
                assert isinstance(message, UserMessage)
                assert "diary.txt" in message.text.replace("\x1b[0m", "")
                assert "the diary" not in message.text
                assert message.typed == "", "nothing is learned from it"
                is_named = number == 0 or touch is _edited
                assert ["diary.txt" in each for each in asked] == [True] * is_named


@pytest.mark.integration
async def test_words_that_the_person_typed_attach_again_unasked_where_they_come_back(
    open_session: Open, home: Path
):
    (home / "diary.txt").write_text("the diary\n")
    async with OpenAIServer(["one", "two"]) as server:
        session, _ = open_session(server)
        async with session:
            await session.handle("see @~/diary.txt")
            draft = (await said(session, "/undo")).terminal.draft
            assert await session.inbox.kept(draft) == "see @~/diary.txt"
            await session.handle(f"{draft} and @~/diary.txt:1")
            message = session.conversation.messages[0]
            assert isinstance(message, UserMessage)
            assert message.text.count("the diary") == 2
            assert message.typed is None


@pytest.mark.integration
async def test_an_undo_after_a_clear_promises_no_words_back(open_session: Open, project: Path):
    async with OpenAIServer(writes("a.py", "1")) as server:
        session, _ = open_session(server, mode="bypass")
        async with session:
            await session.send("one")
            await said(session, "/clear")
            reply = await said(session, "/undo")
            assert shown(reply).splitlines() == [
                "Took back the last turn. 1 file is as before: a.py.",
                "The conversation stays: the words of that turn are no longer in it.",
            ]
            assert (await said(session, "/restore")).is_error
    assert names_in(project) == []


@pytest.mark.integration
async def test_an_undo_in_incognito_says_that_files_are_not_kept(
    open_session: Open, project: Path, home: Path
):
    async with OpenAIServer(writes("a.py", "x")) as server:
        session, _ = open_session(server, mode="bypass", incognito=True)
        async with session:
            await session.send("write it")
            assert "+x" in (await said(session, "/diff")).diff
            offer = await said(session, "/rewind")
            assert FILES_STAY in shown(offer)
            reply = await said(session, "/undo")
            assert reply.terminal.draft == "write it"
            assert "incognito mode keeps no copies" in shown(reply)
    assert (project / "a.py").exists()
    assert names_in(home, "**/*.jsonl") == []


async def test_compacting_is_told_as_an_event_and_can_be_stopped(
    quiet: Session, monkeypatch: pytest.MonkeyPatch
):
    begun = asyncio.Event()
    asked: list[str] = []
    short = (UserMessage.of("summed up", origin="summary"),)
    done = Compacted(messages=short, reason="asked", tokens_before=9, tokens_after=1, summarised=4)

    async def compact(
        _conversation: Any, emit: Any, *, reason: str, focus: str
    ) -> Compacted | None:
        asked.append(f"{reason}: {focus}")
        quiet.agent.compaction.usage += Usage(input_tokens=7)
        if focus == "long":
            begun.set()
            await asyncio.Event().wait()
        if focus == "none":
            return None
        quiet.conversation.replace(short)
        emit(done)
        return done

    monkeypatch.setattr(quiet.agent.compaction, "compact", compact)
    async with quiet:
        talk(quiet, "one", "two")
        running = asyncio.ensure_future(quiet.handle("/compact long"))
        await begun.wait()
        assert shown(await said(quiet, "/undo")).startswith("The conversation is being compacted.")
        assert quiet.cancel()
        assert await running == Reply(text="Interrupted; nothing was changed.", is_error=True)
        assert "nothing to compact" in shown(await said(quiet, "/compact none"))
        assert (await said(quiet, "/compact the plan")) == Reply(text="")
        assert asked[-1] == "asked: the plan"
        assert quiet.usage == Usage(input_tokens=21), (
            "what a summary used counts, also a stopped one's"
        )
        assert [(turn.words, turn.usage.input_tokens) for turn in quiet.turns] == [
            ("compaction: long", 7),
            ("compaction: none", 7),
            ("compaction: the plan", 7),
        ]
        reply = await said(quiet, "/undo")
        assert shown(reply).startswith(
            "There is nothing to undo: the conversation was compacted (summarised)."
        )
        assert shown(await said(quiet, "/restore")).startswith(
            "Everything is restored: 4 messages, about"
        )
        assert [words for _, words in quiet.history.prompts()] == ["one", "two"]
        assert (await said(quiet, "/undo")).terminal.draft == "two"


async def test_what_could_not_be_done_is_said(quiet: Session, monkeypatch: pytest.MonkeyPatch):
    kept = Restored(paths=tuple("abcde"), unkept={"big.bin": WHY_LARGE}, is_done=True)
    commits = [CommitSet(name * 8, how) for name, how in (("a", "moved"), ("b", "moved"))]
    way = WayBack(files=kept, words="w", turns=2, commits=tuple(commits), was_cut=True)
    monkeypatch.setattr(type(quiet.environment.workspace.shells), "running_jobs", ["job"])
    reply = told(quiet, way, done="Took back 2 turns.", force="/undo 2 force")
    assert shown(reply).splitlines() == [
        "Took back 2 turns. 5 files are as before: a, b, c, d and 1 more. The branch is back before commits aaaaaaa, bbbbbbb; `git reflog` still lists it.",
        "Not brought back, because it is over 10 MB: big.bin.",
        STILL_RUNS,
    ]
    half = WayBack(files=Restored(problem="The disk is full."), words="w")
    reply = told(quiet, half, done="Took back the last turn.", force="/undo force")
    assert reply == Reply(text="The disk is full.", is_error=True)
    compacted = WayBack(files=Restored(paths=("a",), is_done=True), words="w", turns=1)
    reply = told(quiet, compacted, done="Took back the last turn.", force="/undo force")
    assert shown(reply).splitlines()[1].startswith("The conversation stays: the words")
    assert reply.terminal.draft == ""
