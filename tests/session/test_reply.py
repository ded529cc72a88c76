"""What a command has a terminal do, and what a frontend without one says instead."""

import pytest

from replies import shown
from rows import every_row
from ybs.session.reply import Outcome, Reply, Row, Table, TerminalActions


@every_row(
    ("line", "actions", "said"),
    [
        (
            "/doctor",
            {"program": "doctor"},
            "/doctor needs a terminal. Run `ybs doctor` in your shell.",
        ),
        ("/copy 2", {"clipboard": "x"}, "/copy needs a terminal."),
        ("/quit", {"wants_quit": True}, "/quit needs a terminal."),
    ],
)
def test_what_only_a_terminal_can_do_is_refused_in_one_sentence(line, actions, said):
    reply = Reply(text="The answer, 3 lines:", terminal=TerminalActions(**actions))
    assert reply.without_terminal(line) == Reply(text=said, is_error=True)


def test_a_draft_is_told_below_the_answer_and_the_rest_stays():
    table = Table(columns=(), rows=(Row(("a",)),))
    reply = Reply(text="Took it back.", tables=(table,), notes=("n",), diff="+a")
    asked = Reply(
        text=reply.text,
        tables=reply.tables,
        notes=reply.notes,
        diff=reply.diff,
        terminal=TerminalActions(draft="fix\x1b[2J it"),
    )
    refused = asked.without_terminal("/undo")
    assert refused.notes == ("n", "For your next prompt: fix␛[2J it")
    assert (refused.text, refused.tables, refused.diff) == (reply.text, reply.tables, reply.diff)
    assert refused.terminal == TerminalActions()
    assert not refused.is_error
    assert reply.without_terminal("/undo") is reply


@pytest.mark.integration
async def test_real_commands_that_need_a_terminal_say_so_elsewhere(playing):
    async with playing(["one answer"]) as (session, _, _):
        assert isinstance(await session.send("go"), Outcome)
        said: dict[str, str] = {}
        for line in ("/doctor", "/setup", "/copy", "/quit", "/qui", "/help", "!!ls", "/undo"):
            reply = await session.handle(line)
            assert isinstance(reply, Reply)
            there = reply.without_terminal(line)
            assert there.terminal == TerminalActions()
            said[line] = shown(there)
    assert {line for line, text in said.items() if f"{line} needs a terminal." in text} == {
        *("/doctor", "/setup", "/copy", "/quit", "/qui")
    }
    assert said["!!ls"].startswith("!! needs a terminal.")
    assert said["/undo"].splitlines()[-1] == "For your next prompt: go"
    assert "/help" in said["/help"]
