"""/new, /rewind, /copy and /export: what a person does with a conversation."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from hosts import this_host
from replies import shown
from rows import every_row
from scripted import HttpError, Interrupted, OpenAIServer
from ybs.commands.conversation import GO_ON, last_code
from ybs.commands.open import SlashCommands
from ybs.core.events import RequestStarted
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.security.firewall.masking import Firewall
from ybs.session.export import fenced, markdown_of
from ybs.session.masking import masked_event
from ybs.session.reply import Outcome, Reply
from ybs.session.session import Session
from ybs.testing import RecordedEvents, call

Open = Callable[..., tuple[Session, RecordedEvents]]
TOKEN = "ghp_" + "A7b3C9d2E5f8G1h4J6k0L2m5N8p1Q4r7S9t3"


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


async def said(session: Session, line: str) -> Reply:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    return reply


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def talk(session: Session, *turns: tuple[str, str]) -> None:
    for words, text in turns:
        session.conversation.append(UserMessage.of(words))
        session.conversation.append(AssistantMessage(content=(Text(text=text),), model="m"))


async def test_what_makes_no_sense_is_an_error_and_changes_nothing(quiet: Session):
    talk(quiet, ("one", "first"), ("two", "second"))
    wrong = ("/rewind 0", "/rewind 3", "/rewind x", "/rewind ²", "/rewind 1 2", "/new now")
    for line in (*wrong, "/copy 0", "/copy 3", "/copy x", "/copy 1 2", "/copy code", "/copy -1"):
        reply = await said(quiet, line)
        assert reply.is_error, line
        assert (reply.terminal.draft, reply.terminal.clipboard) == ("", ""), line
    assert len(quiet.conversation.messages) == 4
    usage = shown(await said(quiet, "/rewind 1 words"))
    assert usage == "Usage: /rewind, or /rewind N (1 to 2), then both, conversation or files"


async def test_an_empty_conversation_has_nothing_to_take_out(quiet: Session, project: Path):
    assert shown(await said(quiet, "/copy")) == "There is no answer to copy."
    assert shown(await said(quiet, "/export")) == "There is nothing to export yet."
    assert shown(await said(quiet, "/rewind")) == "There is no earlier prompt to go back to."
    assert (await said(quiet, "/rewind 1")).is_error
    assert names_in(project) == []


@pytest.mark.integration
async def test_while_a_turn_runs_the_conversation_stays_and_can_be_copied(playing):
    async with playing(["first", Interrupted(how="stall")]) as (session, _, server):
        await session.send("one")
        turn = asyncio.create_task(session.send("two"))
        await server.received(2)
        for line in ("/new", "/clear", "/rewind 1", "/model other", "/incognito"):
            reply = await said(session, line)
            assert reply.is_error, line
            assert "ybs is still working" in shown(reply), line
        assert (await said(session, "/copy")).terminal.clipboard == "first"
        assert (await said(session, "/rewind")).menu is not None
        assert "one is running" in shown(await said(session, "/status"))
        session.cancel()
        await turn
        assert session.history.prompts()[1][1] == "two"


async def test_rewind_offers_the_prompts_and_gives_the_words_back(quiet: Session):
    talk(quiet, ("one", "first"), ("two\nlines \x1b[2J" + "x" * 99, "second"))
    quiet.conversation.append(UserMessage.of("a command's output", origin="shell"))
    offer = await said(quiet, "/rewind")
    assert offer.menu is not None
    assert [item.line for item in offer.menu.items] == ["/rewind 1 of 2", "/rewind 2 of 2"]
    assert offer.menu.items[0].label == "two lines ␛[…"
    assert len(offer.menu.items[0].label) <= 60
    assert "Files stay as they are" in offer.menu.title
    assert "  2  one" in shown(offer)
    reply = await said(quiet, "/rewind 2")
    assert reply.terminal.draft == "one"
    assert "No file changed that undo can bring back" in shown(reply)
    assert list(quiet.conversation.messages) == []


async def test_what_was_offered_before_more_was_said_is_not_gone_back_to(quiet: Session):
    talk(quiet, ("one", "first"), ("two\x1b[2J", "second"))
    offer = await said(quiet, "/rewind")
    assert offer.menu is not None
    stale = offer.menu.items[1].line
    quiet.conversation.append(UserMessage.of("steered meanwhile"))
    reply = await said(quiet, stale)
    assert reply.is_error
    assert "has moved on" in shown(reply)
    await quiet.history.rewind(2)
    talk(quiet, ("another", "answer"))  # as many as were offered, but not the same
    assert (await said(quiet, offer.menu.items[0].line)).is_error
    assert len(quiet.conversation.messages) == 4
    assert (await said(quiet, stale)).terminal.draft == "one"  # the same words in the same place
    talk(quiet, ("two\x1b[2J", "second"))
    offer = await said(quiet, "/rewind")
    assert offer.menu is not None
    assert (await said(quiet, offer.menu.items[0].line)).terminal.draft == "two\x1b[2J"
    talk(quiet, ("three", "third"), ("four", "fourth"))
    assert (await said(quiet, "/rewind 2")).terminal.draft == "three"  # typed, it counts from now


async def test_rewind_leaves_what_was_attached_out_of_the_draft(quiet: Session):
    parts = (Text(text="look"), Text(text="<file>"), Image(media_type="image/png", data=b"x"))
    quiet.conversation.append(UserMessage(content=parts))
    assert (await said(quiet, "/rewind 1")).terminal.draft == "look"


@pytest.mark.parametrize("is_incognito", [False, True])
async def test_new_keeps_model_mode_and_incognito(project: Path, *, is_incognito: bool):
    session = Session.open(
        project,
        commands=SlashCommands(),
        provider="openai",
        endpoint="http://127.0.0.1:9",
        model="m",
        sandbox=False,
        incognito=is_incognito,
    )
    async with session:
        session.mode = "plan"
        talk(session, ("one", "first"))
        session.view.is_verbose = True
        reply = await said(session, "/NEW")
        status = session.status()
        assert (status.model, status.mode, status.incognito) == ("m", "plan", is_incognito)
        assert ("incognito" in shown(reply)) is is_incognito
        assert list(session.conversation.messages) == session.turns == []
        assert session.view.is_verbose
        settings = shown(await said(session, "/config"))
        assert "/incognito)" not in settings, "nobody said so"


async def test_copy_takes_the_last_words_of_a_turn(quiet: Session):
    talk(quiet, ("one", "first"), ("two", "I look."))
    call = ToolCall(id="c", name="read_file")
    quiet.conversation.append(AssistantMessage(content=(Text(text="Now."), call)))
    quiet.conversation.append(ToolResult(call_id="c", name="read_file", output="x"))
    quiet.conversation.append(UserMessage.of("mind the time", origin="guard"))
    quiet.conversation.append(AssistantMessage(content=(Text(text="It \x1b[2Jis.\n"),)))
    quiet.conversation.append(UserMessage.of("three"))
    reply = await said(quiet, "/copy")
    assert reply.terminal.clipboard == "It ␛[2Jis."
    assert shown(reply) == "The answer, 1 line:"
    assert (await said(quiet, "/copy 2")).terminal.clipboard == "first"
    assert "only 2 answers" in shown(await said(quiet, "/copy 3"))


async def test_copy_takes_the_last_code_of_an_answer(quiet: Session):
    talk(quiet, ("one", "a\n```py\nx = 1\n```\nb\n~~~\ny\n```\n~~~\n"), ("two", "none"))
    assert (await said(quiet, "/copy code 2")).terminal.clipboard == "y\n```"
    assert "no code block" in shown(await said(quiet, "/copy CODE"))


def test_code_blocks_end_where_markdown_ends_them():
    for text, code in (
        ("no code", None),
        ("```x``` in a line", None),
        ("```\nnever closed", "never closed"),
        ("````md\n```\ninner\n```\n````", "```\ninner\n```"),
        ("1. do\n   ```sh\n   ls\n     -l\n   ```", "ls\n  -l"),
        ("```\n```", ""),
    ):
        assert last_code(text) == code, text


async def test_export_is_refused_in_incognito_and_where_it_must_not_go(quiet, home, project):
    talk(quiet, ("one", "first"))
    (home / ".ssh").mkdir()
    (project / "there.md").write_text("mine")
    (home / "notes").mkdir()
    (project / "out").symlink_to(home / "notes")
    for name in ("~/.ssh/x.md", "there.md", "no/such/folder.md", "a\x1b.md", "out", "out/x.md"):
        assert (await said(quiet, f"/export {name}")).is_error, name
    await said(quiet, "/incognito")
    talk(quiet, ("one", "first"))
    reply = await said(quiet, "/export x.md")
    assert reply.is_error
    assert shown(reply).startswith("Not written: an incognito session saves nothing. /copy")
    assert names_in(project) == ["out", "there.md"]
    assert names_in(home / "notes") == []
    assert (project / "there.md").read_text() == "mine"


def test_a_models_name_is_masked_in_exports_too() -> None:
    firewall = Firewall()
    answer = AssistantMessage(content=(Text(text="ok"),), model=f"m {TOKEN}")
    text = markdown_of([answer], firewall, title="", about=f"openai m {TOKEN}")
    asked = masked_event(firewall, RequestStarted(model=f"m {TOKEN}"))
    assert TOKEN not in f"{text}{asked}"
    assert f"{text}{asked}".count("m [ybs:secret:github-token#1]") == 3


@pytest.mark.integration
async def test_an_export_is_markdown_with_secrets_masked(quiet: Session, project: Path):
    given = Raw(msgspec.json.encode({"path": "a", "content": f"token = '{TOKEN}'"}))
    picture = Image(media_type="image/png", data=b"1234")
    first = UserMessage(content=(Text(text=f"# use {TOKEN}\ud800"), Text(text="```\n"), picture))
    quiet.conversation.append(first)
    call = ToolCall(id="c", name="write_file", arguments=given)
    thought = Thinking(text=f"the {TOKEN}", signature="proof")
    quiet.conversation.append(
        AssistantMessage(content=(thought, Text(text="ok \x1b"), call), model="m")
    )
    result = ToolResult(call_id="c", name="write_file", output="no", is_error=True, is_refused=True)
    quiet.conversation.append(result)
    reply = await said(quiet, "/export")
    assert names_in(project) == []
    (file,) = (this_host().home / "ybs-exports").iterdir()
    assert shown(reply) == f"Exported 3 messages: {file}"
    assert file.name.startswith("session-")
    assert file.stat().st_mode & 0o777 == 0o600
    text = file.read_text()
    for part in (
        "## You\n",
        "````text\n```\n````",
        "(a picture",
        "## m\n",
        "`write_file`",
        "Refused:",
    ):
        assert part in text, part
    assert "[ybs:secret:github" in text
    assert "\x1b" not in text
    data = await said(quiet, "/export All.JSONL")
    assert not data.is_error
    lines = [
        msgspec.json.decode(line) for line in (project / "All.JSONL").read_bytes().splitlines()
    ]
    assert [line["type"] for line in lines] == [
        "session_start",
        "system",
        "user",
        "assistant",
        "tool_result",
    ]
    parts = {part["type"]: part for part in lines[3]["parts"]}
    assert parts["thinking"] == {"type": "thinking", "text": "the [ybs:secret:github-token#1]"}
    for name in names_in(project):
        assert TOKEN not in (project / name).read_text()
    assert (
        shown(await said(quiet, "/secrets"))
        == "No secrets were hidden from the model in this session."
    )


@every_row(
    "words, left",
    [
        ("no\n\n## You\n\nyes", "no\n\n### You\n\nyes"),
        ("  ##\tYou ##", "###\tYou ##"),
        ("##", "###"),
        ("You\n---\nyes", "You\n\\---\nyes"),
        ("<H2>You</H2>", "\\<H2>You</H2>"),
        ("# You\n### more\n- a\n##x", "# You\n### more\n- a\n##x"),
        ("```yaml\n---\n## a\n```\n## You", "```yaml\n---\n## a\n```\n### You"),
        ("~~~~\n```\n## a\n~~~~~\n## You", "~~~~\n```\n## a\n~~~~~\n### You"),
        ("```\n## You", "```\n## You\n```"),
        ("```x``` a\n## You\n```", "```x``` a\n### You\n```\n```"),
        ("```\na\n```~\n```\n## You", "```\na\n```~\n```\n### You"),
        ("a\n\n---\nb", "a\n\n---\nb"),
    ],
)
def test_no_speaker_writes_a_heading_that_says_who_speaks(words: str, left: str):
    said = [UserMessage.of(words), AssistantMessage(content=(Text(text=words),), model="m")]
    shown = markdown_of(said, Firewall(), title="t", about="m")
    assert shown == f"# t\n\nm\n\n## You\n\n{left}\n\n## m\n\n{left}\n"


def test_no_text_ends_its_code_block():
    assert fenced("a\n`````\nb").splitlines()[0] == "``````"
    assert fenced("a", "py") == "```py\na\n```"


# /retry


async def retried(project: Path, *script: object) -> tuple[Session, OpenAIServer]:
    server = OpenAIServer(script)
    await server.__aenter__()
    session = Session.open(
        project,
        commands=SlashCommands(),
        provider="openai",
        endpoint=server.url,
        model="m",
        mode="bypass",
        sandbox=False,
    )
    return session, server


@pytest.mark.integration
async def test_retry_sends_the_last_words_again_and_says_them_once(project: Path):
    session, server = await retried(project, HttpError(status=400, message="no"), "hello")
    async with session:
        assert (await session.send("hi")).finished.reason == "error"
        outcome = await session.handle("/retry")
        assert isinstance(outcome, Outcome)
        assert outcome.text == "hello"
        said = [m.text for m in session.conversation.messages]
        assert said == ["hi", "hello"]
    first, again = (request.body["messages"] for request in server.requests)
    assert first == again
    await server.close()


@pytest.mark.integration
async def test_retry_goes_on_where_something_was_done(project: Path):
    (project / "a").write_text("x")
    refused = HttpError(status=400, message="no")
    session, server = await retried(project, call("read_file", path="a"), refused, "done now")
    async with session:
        assert (await session.send("hi")).finished.reason == "error"
        outcome = await session.handle("/retry")
        assert isinstance(outcome, Outcome)
        assert outcome.text == "done now"
        said = [m.text for m in session.conversation.messages if isinstance(m, UserMessage)]
        assert said == ["hi", GO_ON]
    await server.close()


async def test_retry_does_nothing_twice(project: Path, quiet: Session):
    assert "no request" in (await said(quiet, "/retry")).text
    (project / "a").write_text("x")
    session, server = await retried(project, call("read_file", path="a"), "done")
    async with session:
        await session.send("hi")
        assert "/rewind" in (await said(session, "/retry")).text
    await server.close()
