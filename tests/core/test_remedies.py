"""Remedies are values, and every frontend words each of them."""

from typing import get_args

import msgspec

from rows import every_row
from ybs.commands import advice as chat
from ybs.commands.table import COMMANDS
from ybs.core.errors import Failure, ProviderDown, StopTurn, YbsError
from ybs.core.events import Event, Noticed, ToolFinished, TurnFinished
from ybs.core.remedies import Remedy, RemedyKind, advice, with_advice
from ybs.frontends.headless import advice as headless

KINDS = get_args(RemedyKind)


def plain(remedy: Remedy) -> str:
    return remedy.value


@every_row(
    ("remedies", "said"),
    [
        ((), ""),
        ((Remedy("do", "ask again"),), "Ask again"),
        ((Remedy("do", "a"), Remedy("do", "b"), Remedy("do", "a")), "A, or b"),
        ((Remedy("do", "a"), Remedy("list_secrets"), Remedy("do", "b")), "A, or b"),
    ],
)
def test_advice_is_one_sentence_and_names_each_way_once(remedies, said):
    assert advice(remedies, plain) == said


def test_advice_follows_the_message_on_its_own_line_or_in_the_same_one() -> None:
    ways = (Remedy("do", "wait"),)
    assert with_advice("It broke", ways, plain) == "It broke\nWait"
    assert with_advice("It broke", ways, plain, separator=" ") == "It broke. Wait."
    assert with_advice("It broke.", ways, plain, separator=" ") == "It broke. Wait."
    assert with_advice("It broke", (), plain, separator=" ") == "It broke"
    assert with_advice("", ways, plain) == "Wait"


@every_row("kind", KINDS)
def test_every_remedy_has_words_in_a_chat_and_on_a_command_line(kind: RemedyKind) -> None:
    for value in ("VALUE", ""):
        remedy = Remedy(kind, value)
        assert "{}" not in chat.word(remedy) + headless.word(remedy)
    said = chat.word(Remedy(kind, "VALUE"))
    assert said
    assert not said.endswith((".", " "))


@every_row("kind", KINDS)
def test_the_commands_that_a_chat_names_exist(kind: RemedyKind) -> None:
    named = [word for word in chat.word(Remedy(kind)).split() if word.startswith("/")]
    assert [word for word in named if word[1:] not in COMMANDS] == []


def test_what_is_typed_into_a_shell_is_quoted() -> None:
    assert headless.word(Remedy("allow_call", "run_shell:a; b")) == "--allow 'run_shell:a; b'"
    assert headless.word(Remedy("add_folder", "/a b")).endswith("--add-dir '/a b'")


def test_an_error_carries_its_remedies_into_the_end_of_its_turn() -> None:
    remedies = (Remedy("change_model"), Remedy("set_key", "KEY"))
    error = ProviderDown("gone", remedies=remedies)
    assert (str(error), error.remedies) == ("gone", remedies)
    failure = Failure.of(error)
    assert (failure.message, failure.remedies, failure.is_temporary) == ("gone", remedies, True)
    assert Failure.of(StopTurn("loop", "x")).remedies == YbsError("x").remedies == ()
    assert chat.told(error) == "gone\nChoose another model: /model, or set KEY to a valid key"
    assert headless.told(error).startswith("gone\nChoose another model with --model NAME")


@every_row(
    "event",
    [
        Noticed(level="info", text="x", remedies=(Remedy("list_secrets"),)),
        TurnFinished(reason="error", remedies=(Remedy("set_key", "KEY"),)),
        ToolFinished(id="1", success=False, output="x", remedies=(Remedy("add_folder", "/a"),)),
    ],
)
def test_an_event_keeps_its_remedies_on_disk_and_old_lines_have_none(event: Event) -> None:
    line = msgspec.json.encode(event)
    assert msgspec.json.decode(line, type=type(event)) == event
    old = msgspec.json.decode(line)
    assert old.pop("remedies")
    assert msgspec.json.decode(msgspec.json.encode(old), type=type(event)).remedies == ()
