"""The terminal of whole sentences."""

import os
import pty
import signal
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from fake_session import FakeSession, asks, fails, hangs, question_of, says
from rows import every_row
from ybs.config.schema import Config, UiSettings
from ybs.core.errors import ProviderDown, YbsError
from ybs.core.events import (
    ConfirmationAnswered,
    ConfirmationAsked,
    Noticed,
    RequestRetried,
    ToolFinished,
    ToolPrinted,
    ToolStarted,
    UserSaid,
)
from ybs.core.ports import Answer, Preview
from ybs.frontends.terminal.plain.line_input import as_answer, forget_typed
from ybs.security.gate import put
from ybs.session.questions import NO_REASON

Open = Callable[..., Any]


async def test_the_first_prompt_comes_with_the_greeting_so_that_quick_words_stand_behind_it(
    talking: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[str] = []

    def note(text: str, stream: Any, **options: Any) -> None:
        pieces.append(text)
        put(text, stream, **options)

    monkeypatch.setattr("ybs.frontends.terminal.plain.plain.put", note)
    async with talking(FakeSession()) as talk:
        await talk.sees("You: ")
        talk.types("/quit\n")
    assert pieces[0].startswith("ybs ")
    assert pieces[0].endswith("/help for more.\n\nYou: ")


async def test_a_command_that_it_begins_with_is_taken_at_once(talking: Open) -> None:
    session = FakeSession()
    async with talking(session, command="/resume") as talk:
        await talk.sees("answer to /resume")
    assert (session.lines, session.sent) == (["/resume"], [])


async def test_a_turn_is_told_in_sentences(talking: Open) -> None:
    async def work(session: FakeSession) -> None:
        arguments = Raw(msgspec.json.encode({"command": "pytest -q"}))
        session.emit(ToolStarted(id="1", name="run_shell", arguments=arguments))
        session.emit(
            ToolFinished(id="1", name="run_shell", success=True, output="", summary="15 passed")
        )
        session.emit(ToolStarted(id="2", name="read_file", arguments=Raw(b'{"path":"a"}')))
        session.emit(
            ToolFinished(id="2", name="read_file", success=True, output="", summary="a: 4 lines")
        )
        session.emit(ToolStarted(id="2", name="edit_file", arguments=Raw(b'{"path":"a"}')))
        session.emit(
            ToolFinished(id="2", name="edit_file", success=False, output="No match. Near:\n   3  b")
        )
        session.emit(ToolStarted(id="3", name="write_file", arguments=Raw(b'{"path":"a"}')))
        session.emit(ConfirmationAsked(id="3", name="write_file", title="", preview=""))
        session.emit(ConfirmationAnswered(id="3", is_allowed=False))
        session.emit(
            ToolFinished(
                id="3",
                name="write_file",
                success=False,
                is_refused=True,
                output="the person said no",
                summary="refused",
            )
        )
        session.emit(
            ToolFinished(
                id="4",
                name="run_shell",
                success=False,
                output="x",
                summary="exit code 1",
                display=Raw(b'{"exit_code":1,"stdout":"one","stderr":"two"}'),
            )
        )
        session.emit(ToolPrinted(id="typed_1", text="listing\x1b[2J\n"))
        session.emit(
            UserSaid(content="[Shell command output]\nCommand: ls\nExit code: 1\n", origin="shell")
        )
        session.emit(RequestRetried(attempt=2, wait_seconds=4, message="down (busy).\nAdvice"))
        session.emit(Noticed(level="warning", text="careful\x1b[2J"))
        await says("It is **done**.")(session)

    session = FakeSession(work, warnings=("unknown key",))
    async with talking(session) as talk:
        talk.types("fix it\n")
        await talk.sees("1.2k in")
    assert talk.code == 0
    assert "\x1b" not in talk.text
    assert talk.text.split("\n")[1:] == [
        "no sandbox, in /proj/shop. /help for more.",
        "Warning: unknown key",
        "",
        "You: run_shell pytest -q: done, 15 passed.",
        "read_file a: done, 4 lines.",
        "edit_file a: failed, No match. Near: 3 b.",
        "write_file a: refused.",
        "run_shell: failed, exit code 1.",
        "  one",
        "  two",
        "listing␛[2J",
        "Exit code 1, after 1 ms.",
        "Down (busy), trying again in 4.0 s.",
        "Warning: careful␛[2J",
        "",
        "It is **done**.",
        "",
        "(1.2k in, 34 out, 1.5 s)",
        "",
        "You: ",
        "",
    ]


async def test_a_call_that_failed_is_told_once_and_one_never_answered_was_not_run(talking):
    long = (
        'The arguments of list_files do not fit: {"path":["' + "src/a," * 20 + '"]}. Send others.'
    )
    failed = ToolFinished(id="1", name="list_files", success=False, output=long, summary=long[:200])

    async def work(session: FakeSession) -> None:
        session.emit(ToolStarted(id="1", name="list_files", arguments=Raw(b'{"path":"src"}')))
        session.emit(failed)
        session.emit(ConfirmationAnswered(id="2", is_allowed=False, reason="forbidden"))
        refused = replace(failed, id="2", is_refused=True, output="The rule forbids it.")
        session.emit(replace(refused, summary="refused"))
        session.emit(ConfirmationAsked(id="3", name="run_shell", title="", preview=""))
        session.emit(replace(failed, id="3", output="Cancelled before it finished."))
        await says("Done.")(session)

    async with talking(FakeSession(work), "go") as talk:
        await talk.sees("1.2k in")
    lines = talk.text.split("\n")
    start = next(n for n, line in enumerate(lines) if line.startswith("list_files src: failed,"))
    assert len(lines[start]) == 79, "the line is filled"
    assert lines[start + 1].endswith("...")
    assert lines[start + 2 : start + 4] == [
        "list_files: refused, The rule forbids it.",
        "list_files: not run.",
    ]


async def test_incognito_is_said_at_the_start(talking: Open) -> None:
    session = FakeSession()
    session.is_incognito = True
    async with talking(session) as talk:
        await talk.sees("/help for more")
    assert "\nincognito, no sandbox, in /proj/shop. /help for more." in talk.text


async def test_words_are_folded_at_one_width_and_code_is_not(talking: Open) -> None:
    text = "word " * 40 + "\n\n```\n" + "x " * 70 + "\n```"

    async def work(session: FakeSession) -> None:
        session.emit(Noticed(level="warning", text="careful " * 20))
        await says(text)(session)

    async with talking(FakeSession(work), "go") as talk:
        await talk.sees("1.2k in")
    lines = talk.text.split("\n")
    assert "x " * 69 + "x" in [line.strip() for line in lines]
    assert max(len(line) for line in lines if not line.startswith("x ")) <= 79


@pytest.mark.integration
async def test_the_time_of_a_turn_leaves_the_question_out(talking: Open) -> None:
    async with talking(FakeSession(asks(question_of())), "go") as talk:
        await talk.sees("no because ...: ")
        talk.clock.now += 1
        talk.types("no\n")
        await talk.sees("1.2k in")
    assert "34 out, 500 ms" in talk.text


async def test_settings_of_the_screen_are_honoured(talking: Open) -> None:
    async def work(session: FakeSession) -> None:
        session.emit(ToolFinished(id="1", name="run_shell", success=True, output=""))
        await says("Done.")(session)

    config = Config(ui=UiSettings(show_token_usage=False, show_tool_calls=False))
    async with talking(FakeSession(work, config=config), "go") as talk:
        await talk.sees("Done.")
    assert "run_shell" not in talk.text
    assert "1.2k in" not in talk.text


async def test_commands_are_answered_and_quit_leaves(talking: Open) -> None:
    async with talking(FakeSession()) as talk:
        talk.types("/help\n/wrong\n\n/quit\n")
        await talk.until(lambda: talk.task.done())
    assert talk.code == 0
    assert "answer to /help\n" in talk.text
    assert "Error: answer to /wrong\n" in talk.text


async def test_a_provider_that_is_down_is_a_sentence(talking: Open) -> None:
    async def broken(_session: FakeSession) -> None:
        raise YbsError("a turn is running")

    async with talking(FakeSession(fails(ProviderDown("nobody answers")), broken)) as talk:
        talk.types("a\n")
        await talk.sees("Error: nobody answers")
        talk.types("b\n")
        await talk.sees("Error: a turn is running")


async def test_a_long_error_is_cut_and_told_whole_where_the_work_is(talking: Open) -> None:
    error = ProviderDown("it said " + "much " * 100 + "at last")
    session = FakeSession(fails(error), fails(error))
    async with talking(session) as talk:
        talk.types("a\n")
        await talk.sees("... (/verbose tells")
        assert "at last" not in talk.text
        session.view.is_verbose = True
        talk.types("b\n")
        await talk.sees("at last")


@pytest.mark.integration
@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("yes\n", Answer(is_allowed=True)),
        ("always\n", Answer(is_allowed=True, is_for_session=True)),
        ("no because use make\n", Answer(is_allowed=False, reason="use make")),
        ("\n", Answer(is_allowed=False, reason=NO_REASON)),
    ],
)
async def test_a_question_is_answered_by_a_word(talking: Open, typed: str, answer: Answer) -> None:
    session = FakeSession(asks(question_of(warnings=("deletes files: build/",))))
    async with talking(session, "go") as talk:
        await talk.sees("no because ...: ")
        assert "run_shell wants to run, in /proj/shop, no sandbox:\npytest -q\n" in talk.text
        assert "Warning: deletes files: build/\n" in talk.text
        assert '"always" would allow, for this session: run_shell(pytest -q)\n' in talk.text
        talk.clock.now += 1
        talk.types(typed)
        await talk.until(lambda: session.answers)
    assert session.answers == [answer]


async def test_no_line_of_what_is_asked_about_passes_for_one_of_ybs(talking: Open) -> None:
    body = "rm -rf src\nAsked because it changes nothing.\nAnswer yes, no: no\n\nQuestion: ls wants to run:\nls"
    session = FakeSession(asks(replace(question_of(), preview=Preview(title="x", body=body))))
    async with talking(session, "go") as talk:
        await talk.sees("no because ...: ")
        asked = talk.text.partition("Question: ")[2]
    for line in body.split("\n"):
        assert f"\n> {line}".rstrip() + "\n" in asked
    assert asked.count("\nAnswer yes") == 1
    assert "\nQuestion: " not in asked
    assert "\nAsked because it changes" not in asked


@pytest.mark.integration
async def test_a_question_can_be_answered_for_the_project(talking: Open) -> None:
    session = FakeSession(asks(replace(question_of(), can_be_kept=True)))
    async with talking(session, "go") as talk:
        await talk.sees("Answer yes, no, always, project or no because ...: ")
        assert (
            '"project" would allow the same in this project, in later sessions too\n' in talk.text
        )
        talk.clock.now += 1
        talk.types("project\n")
        await talk.until(lambda: session.answers)
    assert session.answers == [Answer(is_allowed=True, is_for_project=True)]


async def test_a_question_without_always_says_why(talking: Open) -> None:
    session = FakeSession(asks(replace(question_of(grant=""), withheld="it may destroy something")))
    async with talking(session, "go") as talk:
        await talk.sees("no because ...: ")
        assert '"Always" is not offered: it may destroy something.\n' in talk.text


@pytest.mark.integration
async def test_the_models_own_question_takes_a_number_or_words(talking: Open) -> None:
    question = replace(question_of("ask_user", "read", "Which one?"), choices=("a", "b"), grant="")
    session = FakeSession(asks(question))
    async with talking(session, "go") as talk:
        await talk.sees("press Enter for no answer: ")
        assert (
            "Question: the model asks:\nWhich one?\n1: a\n2: b\nAnswer with a number" in talk.text
        )
        talk.clock.now += 1
        talk.types("2\n")
        await talk.until(lambda: session.answers)
    assert session.answers == [Answer(is_allowed=True, reason="b")]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("yes with network\n", Answer(is_allowed=True, with_network=True)),
        ("always with network\n", Answer(is_allowed=True, is_for_session=True, with_network=True)),
        ("yes\n", Answer(is_allowed=True)),
    ],
)
async def test_a_word_gives_the_network(talking: Open, typed: str, answer: Answer) -> None:
    rule = "run_shell(psql -h db) with network"
    session = FakeSession(asks(replace(question_of(), offers_network=True, network_grant=rule)))
    async with talking(session, "go") as talk:
        await talk.sees("no because ...: ")
        assert "with network: the command could send away any file that it can read.\n" in talk.text
        assert f'"always with network" would allow, for this session: {rule}\n' in talk.text
        talk.clock.now += 1
        talk.types(typed)
        await talk.until(lambda: session.answers)
    assert session.answers == [answer]


@pytest.mark.integration
async def test_a_word_lets_it_run_outside_once(talking: Open) -> None:
    session = FakeSession(asks(replace(question_of(), outside="offered")))
    async with talking(session, "go") as talk:
        await talk.sees("Answer yes, outside, no, always")
        assert "outside: it runs outside the sandbox, once, as in your own shell" in talk.text
        talk.clock.now += 1
        talk.types("outside\n")
        await talk.until(lambda: session.answers)
    assert session.answers == [Answer(is_allowed=True, is_outside=True)]


async def test_the_end_of_input_at_a_question_is_a_no_and_leaves(talking: Open) -> None:
    session = FakeSession(asks(question_of()))
    async with talking(session, "go") as talk:
        await talk.sees("no because ...: ")
    assert session.answers == [Answer(is_allowed=False, reason=NO_REASON)]
    assert talk.code == 0


async def test_an_interrupt_stops_the_turn_and_a_second_one_leaves(talking: Open) -> None:
    session = FakeSession(hangs, hangs)
    async with talking(session) as talk:
        talk.types("go\n")
        await talk.until(lambda: session.is_busy)
        os.kill(os.getpid(), signal.SIGINT)
        await talk.sees("Stopped.")
        talk.clock.now += 3
        os.kill(os.getpid(), signal.SIGINT)
        await talk.sees("Press Ctrl-C again to leave.")
        os.kill(os.getpid(), signal.SIGINT)
        await talk.until(lambda: talk.task.done())
    assert talk.code == 0


async def test_a_signal_to_end_is_obeyed(talking: Open) -> None:
    async with talking(FakeSession(hangs), "go") as talk:
        os.kill(os.getpid(), signal.SIGTERM)
        await talk.until(lambda: talk.task.done())
    assert talk.code == 143


@every_row("text", ["", "n", "no", "yes please", "yy", "sure", "always"])
def test_everything_that_is_not_clearly_a_yes_is_a_no(text: str) -> None:
    assert not as_answer(text, question_of(grant="")).is_allowed
    assert not as_answer(f"{text} with network", question_of(grant="")).is_allowed
    networked = replace(question_of(), offers_network=True)
    assert not as_answer("outside", networked).is_allowed


def test_what_was_typed_ahead_is_dropped_from_a_real_terminal() -> None:
    controller, terminal = pty.openpty()
    os.write(controller, b"yes\n")
    forget_typed(terminal)
    os.set_blocking(terminal, False)
    with pytest.raises(BlockingIOError):
        os.read(terminal, 10)
    os.close(controller)
    os.close(terminal)


@pytest.mark.parametrize("prompt", ["!rm -rf x", "/quit"])
async def test_a_prompt_given_on_the_command_line_is_never_a_command(talking, prompt):
    session = FakeSession(says("hello"))
    async with talking(session, prompt) as talk:
        await talk.sees("hello")
        assert session.sent == [prompt]
