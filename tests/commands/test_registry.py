"""Slash commands: plain answers, no request to the model."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from replies import shown
from rows import every_row
from scripted import OpenAIServer
from ybs.commands.registry import (
    ALIASES,
    HINTS,
    _shown,
    first_offer,
    runs_beside_a_turn,
)
from ybs.commands.table import COMMANDS, GROUPS, LISTED
from ybs.session.injection import is_command
from ybs.session.reply import Menu, MenuItem, Reply, TerminalActions
from ybs.session.session import Session
from ybs.testing import RecordedEvents

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
    text = shown(await reply_to(open_session, "/help"))
    for command in LISTED:
        assert f"/{command.names[0]}" in text
    assert "!COMMAND" in text
    assert "!!COMMAND" in text


@pytest.mark.parametrize("line", ["/HELP", "/Help ", "/?"])
async def test_commands_ignore_case(open_session: Open, line: str):
    assert "/tools" in shown(await reply_to(open_session, line))


async def test_an_unknown_command_names_the_nearest(open_session: Open):
    reply = await reply_to(open_session, "/modle gpt")
    assert reply.is_error
    assert shown(reply).startswith("Unknown command: /modle. Did you mean ")
    assert "/model" in shown(reply).split("?")[0]


async def test_the_beginning_of_a_command_names_those_that_begin_so(open_session: Open):
    assert "Did you mean" not in shown(await reply_to(open_session, "/"))
    text = shown(await reply_to(open_session, "/CON"))
    assert text == "Unknown command: /CON. Did you mean /context or /config? /help lists them all."


async def test_a_word_like_nothing_points_to_help(open_session: Open):
    reply = await reply_to(open_session, "/xyzzy")
    assert shown(reply) == "Unknown command: /xyzzy. /help lists them all."


@pytest.mark.parametrize("line", ["/quit", "/exit", "/EXIT"])
async def test_quit_and_exit_leave(open_session: Open, line: str):
    assert (await reply_to(open_session, line)).terminal.wants_quit


async def test_tools_are_listed_with_one_line_each(open_session: Open):
    text = shown(await reply_to(open_session, "/tools"))
    for name in (
        "read_file",
        "write_file",
        "edit_file",
        "list_files",
        "search_files",
        "run_shell",
        "shell_job",
        "delete_file",
        "repo_map",
        "memorize",
        "set_thought",
    ):
        assert name in text
    *rows, count, missing = text.splitlines()
    assert count == f"{len(rows)} tools"
    assert missing.startswith("Not installed: web_search and web_fetch. `ybs tools install web`")


@every_row(
    ("typed", "line"),
    [
        ("/mod", "/model"),
        ("/MOD", "/model"),
        ("/mode", "/mode"),
        ("/mo deny", "/mo deny"),
        ("/sess", "/sessions"),
        ("/und", "/und"),  # it is understood: no other begins so
        ("/zzz", "/zzz"),
        ("/", "/"),
        ("/etc/hosts", "/etc/hosts"),
    ],
)
def test_the_beginning_of_a_name_stands_for_the_first_command_that_is_offered(
    typed: str, line: str
):
    assert first_offer(typed) == line


async def test_the_provider_in_use_is_shown(open_session: Open):
    text = shown(await reply_to(open_session, "/provider current"))
    assert re.fullmatch(r"127\.0\.0\.1:\d+ scripted", text)


async def test_provider_list_names_them_all(open_session: Open):
    text = shown(await reply_to(open_session, "/provider list"))
    for name in ("ollama", "openai", "anthropic", "llamacpp"):
        assert name in text


async def test_model_changes_the_model_only(open_session: Open):
    text = shown(await reply_to(open_session, "/model other-7b"))
    assert text.startswith("Now using 127.0.0.1:")


async def test_mode_is_shown_and_changed(open_session: Open):
    assert shown(await reply_to(open_session, "/mode")).startswith("Mode: ask")
    assert (
        shown(await reply_to(open_session, "/mode PLAN"))
        == "Mode: plan (looks at anything, with commands too; changes nothing)"
    )
    wrong = await reply_to(open_session, "/mode yolo")
    assert wrong.is_error
    assert "bypass" in wrong.text


async def test_config_shows_what_is_not_default_and_where_it_comes_from(open_session: Open):
    text = shown(await reply_to(open_session, "/config", mode="plan"))
    assert ["safety.mode", "plan", "option"] in [line.split() for line in text.splitlines()]
    assert "llm.model" in text


@pytest.mark.integration
async def test_config_of_a_name_shows_it_and_says_how_it_is_changed(open_session: Open):
    text = shown(await reply_to(open_session, "/config ui.answer_shell false"))
    assert "ui.answer_shell true default" in " ".join(text.split())
    assert "`ybs config set ui.answer_shell false` in a shell changes it" in text
    assert "ui.notify" in shown(await reply_to(open_session, "/config ui"))
    wrong = await reply_to(open_session, "/config ui.answer")
    assert wrong.is_error
    assert wrong.text.startswith("There is no setting ui.answer.")


async def test_config_masks_a_key(home: Path, open_session: Open):
    secret = "sk-" + "x" * 12 + "tail"
    (home / ".ybs.json").write_text(f'{{"llm": {{"api_key": "{secret}"}}}}')
    (home / ".ybs.json").chmod(0o600)
    text = shown(await reply_to(open_session, "/config"))
    assert "llm.api_key" in text
    assert secret not in text


async def test_config_names_the_file_and_what_kind_of_file_it_is(home: Path, open_session: Open):
    (home / ".ybs.json").write_text('{"llm": {"temperature": 1}}')
    text = shown(await reply_to(open_session, "/config"))
    assert f"  home {home / '.ybs.json'}\n" in text


async def test_clear_empties_the_conversation(open_session: Open):
    async with OpenAIServer(["hi"]) as server:
        session, _ = open_session(server)
        async with session:
            await session.send("hello")
            await session.handle("/clear")
            assert list(session.conversation.messages) == []


@every_row(
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


async def test_help_fits_a_terminal_and_ends_with_the_keys_of_the_door(open_session: Open):
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        session.frontend_help = "  Ctrl-X  does something"
        async with session:
            reply = await session.handle("/help")
    assert isinstance(reply, Reply)
    lines = shown(reply).splitlines()
    assert max(map(len, lines)) <= 76
    assert lines[-1] == "  Ctrl-X  does something"


@pytest.mark.integration
async def test_help_has_titles_and_finds_what_has_to_do_with_a_word(open_session: Open):
    lines = shown(await reply_to(open_session, "/help")).splitlines()
    for title in (*GROUPS, "Commands for the shell"):
        assert title in lines
    found = shown(await reply_to(open_session, "/help rewind"))
    assert [line.split()[0] for line in found.splitlines()] == ["Conversation", "/rewind"]
    assert (await reply_to(open_session, "/help xyzzy")).is_error


def test_names_are_told_apart_and_every_command_says_what_it_does():
    names = [name for command in LISTED for name in command.names]
    assert len(names) == len(set(names))
    assert {"exit", "ps", "?"} < set(names)
    for command in LISTED:
        assert command.summary
        assert not command.summary.endswith(".")


@every_row("name", ["model", "provider", "rewind"])
def test_a_menu_is_shown_beside_a_turn_and_its_choice_waits(name: str):
    assert runs_beside_a_turn(f"/{name}")
    assert runs_beside_a_turn(f" /{name.upper()}  ")
    assert not runs_beside_a_turn(f"/{name} 1")


def test_what_only_looks_runs_beside_a_turn():
    looking = (
        "status context cost diff copy export stream verbose help tools config jobs mode trust"
    )
    waiting = [name for name in looking.split() if not runs_beside_a_turn(f"/{name} x")]
    assert waiting == []
    assert runs_beside_a_turn("/nonsense")
    assert not any(runs_beside_a_turn(line) for line in ("/new", "/clear", "/incognito", "words"))


@pytest.mark.integration
async def test_odd_characters_reach_neither_a_reply_nor_break_a_command(open_session: Open):
    odd = ("\x1b[2J", "\u202e", "\x9b31m", "\ud800", "\0", "e\u0301" * 3, "日本語", "²", "9" * 5000)
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            for command in LISTED:
                for text in odd:
                    if command.names[0] in ("quit", "incognito", "init", "model", "provider"):
                        continue
                    reply = await session.handle(f"/{command.names[0]} {text}")
                    assert isinstance(reply, Reply), command.names
                    assert not set(shown(reply)) & set("\x1b\u202e\x9b\0\ud800"), (
                        command.names,
                        text,
                    )
    assert shown(await reply_to(open_session, "/x\x1b[2Jy")).startswith("Unknown command: /x\u241b")


async def test_words_are_parted_by_any_white_space(open_session: Open):
    assert (
        shown(await reply_to(open_session, "  /mode\u00a0\tplan "))
        == "Mode: plan (looks at anything, with commands too; changes nothing)"
    )


async def test_choices_are_what_a_command_takes(open_session: Open):
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            given = {c.names[0]: list(c.choices(session)) for c in LISTED if c.choices}
            assert given["mode"][:2] == ["ask", "accept-edits"]
            assert "mistral" in given["provider"]
            assert given["stream"] == ["on", "off"]
            assert given["model"] == given["jobs"] == []
            await session.handle("/verbose on")
            assert session.view.is_verbose
            for name in ("stream", "verbose", "mode", "diff", "trust"):
                for word in given[name]:
                    reply = await session.handle(f"/{name} {word}")
                    assert isinstance(reply, Reply)
                    assert not reply.is_error, (name, word)


async def test_streaming_and_verbosity_are_turned_on_off_and_round(open_session: Open):
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            wrong = await session.handle("/stream maybe")
            assert isinstance(wrong, Reply)
            assert wrong.is_error
            assert "/stream on" in wrong.text
            states: list[tuple[bool, bool]] = []
            for line in ("/stream", "/verbose", "/stream ON", "/verbose off", "/verbose x"):
                await session.handle(line)
                states.append((session.view.streams, session.view.is_verbose))
    assert states == [(False, False), (False, True), (True, True), (True, False), (True, False)]


@pytest.mark.integration
async def test_the_beginning_of_one_command_alone_is_that_command(open_session: Open):
    reply = await reply_to(open_session, "/STAT")
    assert shown(reply).startswith("/status\n")
    assert not reply.is_error
    assert (await reply_to(open_session, "/qui")).terminal.wants_quit
    assert not shown(await reply_to(open_session, "/p")).startswith("/jobs")  # /ps, /provider
    several = await reply_to(open_session, "/mo")
    assert several.is_error
    assert "Did you mean /model or /mode?" in several.text
    assert not runs_beside_a_turn("/clea")
    assert runs_beside_a_turn("/stat")


async def test_names_of_other_agents_lead_to_a_command_or_say_how_it_is_done(open_session: Open):
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            usage = await session.handle("/usage")
            assert isinstance(usage, Reply)
            assert usage.text.startswith("/cost\n")
            for name in HINTS:
                reply = await session.handle(f"/{name}")
                assert reply == Reply(text=HINTS[name]), name


def test_a_name_of_another_agent_hides_no_command_and_leads_to_one() -> None:
    assert not set(ALIASES) & set(COMMANDS)
    assert not set(HINTS) & (set(COMMANDS) | set(ALIASES))
    assert set(ALIASES.values()) <= set(COMMANDS)


async def test_the_reply_about_trust_shows_all_that_a_hook_runs(project, open_session: Open):
    hook = {"command": "DB_PASSWORD=Zk3q9x7Lm2" + "&&./b7 true"}
    (project / ".ybs.json").write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    reply = await reply_to(open_session, "/trust")
    assert hook["command"] in shown(reply)


async def test_a_menu_shows_no_secret_but_for_what_choosing_an_item_sends(open_session: Open):
    token = "ghp_" + "aB3dE5fG7hI9jK1l" + "M2nO4pQ6rS8tU0vWxYz1"
    item = MenuItem(f"/rewind {token}", f"ci-bot is {token}", f"of {token}")
    reply = Reply(
        menu=Menu(f"Back to before {token}", (item,)),
        notes=(token,),
        terminal=TerminalActions(draft=token),
    )
    async with OpenAIServer([]) as server:
        session, _ = open_session(server)
        async with session:
            clean = _shown(session, reply)
    assert clean.menu is not None
    assert clean.menu.items[0].line == item.line
    assert clean.terminal == reply.terminal
    assert str(clean).count(token) == 2
    assert str(clean).count("[ybs:secret:github-token#1]") == 4
