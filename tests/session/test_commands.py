"""Slash commands: plain answers, no request to the model."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ybs.core.messages import Usage
from ybs.session.commands import LISTED, is_command
from ybs.session.session import Reply, Session
from ybs.testing import OpenAIServer, RecordedEvents

Open = Callable[..., tuple[Session, RecordedEvents]]


async def reply_to(open_session: Open, line: str, **options: object) -> Reply:
    async with OpenAIServer([]) as server:
        session, _ = open_session(server, **options)
        async with session:
            reply = await session.handle(line)
        assert not server.requests
    assert isinstance(reply, Reply)
    return reply


async def test_help_lists_every_command(open_session: Open):
    text = (await reply_to(open_session, "/help")).text
    for command in LISTED:
        assert f"/{command.names[0]}" in text
    assert "!COMMAND" in text


@pytest.mark.parametrize("line", ["/HELP", "/Help ", "/?"])
async def test_commands_ignore_case(open_session: Open, line: str):
    assert "/tools" in (await reply_to(open_session, line)).text


async def test_an_unknown_command_names_the_nearest(open_session: Open):
    reply = await reply_to(open_session, "/modle gpt")
    assert reply.is_error
    assert reply.text.startswith("Unknown command: /modle. Did you mean ")
    assert "/model" in reply.text.split("?")[0]


async def test_a_word_like_nothing_points_to_help(open_session: Open):
    reply = await reply_to(open_session, "/xyzzy")
    assert reply.text == "Unknown command: /xyzzy. /help lists them all."


@pytest.mark.parametrize("line", ["/quit", "/exit", "/EXIT"])
async def test_quit_and_exit_leave(open_session: Open, line: str):
    assert (await reply_to(open_session, line)).wants_quit


async def test_tools_are_listed_with_one_line_each(open_session: Open):
    text = (await reply_to(open_session, "/tools")).text
    for name in (
        "read_file",
        "write_file",
        "edit_file",
        "list_files",
        "search_files",
        "run_shell",
        "shell_job",
        "delete_file",
    ):
        assert name in text
    assert text.endswith("8 tools")


@pytest.mark.parametrize("line", ["/provider", "/provider current", "/model"])
async def test_provider_and_model_show_what_is_in_use(open_session: Open, line: str):
    assert (await reply_to(open_session, line)).text == "openai scripted"


async def test_provider_list_names_them_all(open_session: Open):
    text = (await reply_to(open_session, "/provider list")).text
    for name in ("ollama", "openai", "anthropic", "llamacpp"):
        assert name in text


async def test_model_changes_the_model_only(open_session: Open):
    assert (await reply_to(open_session, "/model other-7b")).text == "Now using openai other-7b."


async def test_mode_is_shown_and_changed(open_session: Open):
    assert (await reply_to(open_session, "/mode")).text.startswith("Mode: ask")
    assert (await reply_to(open_session, "/mode plan")).text == "Mode: plan"
    wrong = await reply_to(open_session, "/mode yolo")
    assert wrong.is_error
    assert "bypass" in wrong.text


async def test_config_shows_what_is_not_default_and_where_it_comes_from(open_session: Open):
    text = (await reply_to(open_session, "/config", mode="plan")).text
    assert "  safety.mode = plan   (option)\n" in text.replace('"', "")
    assert "llm.model" in text


async def test_config_masks_a_key(home: Path, open_session: Open):
    secret = "sk-" + "x" * 12 + "tail"
    (home / ".ybs.json").write_text(f'{{"llm": {{"api_key": "{secret}"}}}}')
    (home / ".ybs.json").chmod(0o600)
    text = (await reply_to(open_session, "/config")).text
    assert "llm.api_key" in text
    assert secret not in text


async def test_config_names_the_file_and_what_kind_of_file_it_is(home: Path, open_session: Open):
    (home / ".ybs.json").write_text('{"llm": {"temperature": 1}}')
    text = (await reply_to(open_session, "/config")).text
    assert f"(home {home / '.ybs.json'})" in text


async def test_status_says_nothing_of_a_cost_of_zero(open_session: Open):
    async with OpenAIServer(["hi"]) as server:
        session, _ = open_session(server)
        async with session:
            session.usage = Usage(input_tokens=5, cost_usd=0.0)
            reply = await session.handle("/status")
            assert isinstance(reply, Reply)
            assert "$" not in reply.text


async def test_status_shows_model_mode_sandbox_and_context(open_session: Open):
    text = (await reply_to(open_session, "/status")).text
    assert "openai scripted" in text
    assert "ask, no sandbox" in text


async def test_clear_empties_the_conversation(open_session: Open):
    async with OpenAIServer(["hi"]) as server:
        session, _ = open_session(server)
        async with session:
            await session.send("hello")
            await session.handle("/clear")
            assert list(session.conversation.messages) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/help", True),
        ("/x y/z", True),
        ("/etc/hosts is odd", False),
        ("", False),
        ("help", False),
        (" /", True),
    ],
)
def test_a_path_at_the_start_is_no_command(line: str, expected: bool):
    assert is_command(line) is expected
