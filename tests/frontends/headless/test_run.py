"""One prompt without a terminal: the answer, the exit code, and signals."""

import asyncio
import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from fake_session import FakeSession, asks, ends, fails, hangs, question_of, says
from rows import every_row
from ybs.agent.model_choice import NothingConfigured
from ybs.core.errors import AuthError, ConfigError, ModelError, ProviderDown, YbsError
from ybs.core.events import Noticed, TurnFinished
from ybs.core.remedies import Remedy
from ybs.frontends.headless import run as run_module
from ybs.frontends.headless.advice import refuse, told
from ybs.frontends.headless.run import code_of, exit_code, run_once
from ybs.security.policy.confirm import is_attended

NO_OPTIONS = cast("Any", SimpleNamespace(output_schema=None))


@pytest.fixture(autouse=True)
def nothing_piped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)


class Written:
    """What went to the two outputs, as often as one looks."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._out = self._err = ""

    @property
    def text(self) -> str:
        self._read()
        return self._out

    @property
    def err(self) -> str:
        self._read()
        return self._err

    def _read(self) -> None:
        out, err = self._capsys.readouterr()
        self._out += out
        self._err += err


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str]) -> Written:
    return Written(capsys)


def run(session: FakeSession, **options: Any) -> int:
    return run_once(
        NO_OPTIONS, **{"prompt": "go", "opener": lambda _: session.as_session, **options}
    )


def test_the_answer_is_written_and_the_session_closed(out: Written) -> None:
    session = FakeSession(says("All good."))
    assert run(session) == 0
    assert out.text == "All good.\n"
    assert session.lines == ["go"]
    assert session.is_closed


def test_a_prompt_that_looks_like_a_command_goes_to_the_model(out: Written) -> None:
    session = FakeSession(says("ok"))
    assert run(session, prompt="!rm -rf x") == 0
    assert session.lines == ["!rm -rf x"]


def test_no_prompt_is_bad_usage(out: Written) -> None:
    assert run(FakeSession(), prompt=None) == 2
    assert out.err.startswith("ybs: there is no prompt")


def test_a_call_that_needs_a_confirmation_is_refused_with_advice(out: Written) -> None:
    session = FakeSession(asks(question_of()))
    assert run(session) == 5
    (answer,) = session.answers
    assert not answer.is_allowed
    assert not is_attended(session.confirm)
    err = out.err
    assert "refused: run_shell: it needs a confirmation" in err
    assert "1 call was refused" in err


async def test_a_refusal_names_what_was_tried_and_nothing_else() -> None:
    question = replace(
        question_of(),
        remedies=(Remedy("allow_call", "run_shell:ls"), Remedy("choose_mode", "auto")),
    )
    reason = (await refuse(question)).reason
    assert reason.endswith("allow it with --allow run_shell:ls or --mode auto")
    assert (
        await refuse(question_of())
    ).reason == "it needs a confirmation, and there is no terminal to ask on"


async def test_a_refusal_by_a_rule_that_asks_names_the_rule() -> None:
    warning = "the rule run_shell in safety.ask says to ask"
    question = replace(
        question_of(warnings=(warning,)), remedies=(Remedy("choose_mode", "bypass"),)
    )
    reason = (await refuse(question)).reason
    assert f"{warning}; you can remove it from the settings, or start ybs with" in reason


def test_what_to_do_about_an_error_is_told_with_options(out: Written) -> None:
    remedies = (Remedy("do", "start it"), Remedy("change_provider"))
    assert run(FakeSession(fails(ProviderDown("x does not answer.", remedies=remedies)))) == 75
    assert (
        "x does not answer.\nStart it, or choose another provider with --provider NAME\n" in out.err
    )


@every_row(
    ("reason", "is_temporary", "is_blocked", "code"),
    [
        ("done", False, False, 0),
        ("done", False, True, 5),
        ("dry_run", False, False, 0),
        ("error", False, False, 4),
        ("error", True, False, 75),
        ("error", True, True, 75),
        ("error", False, True, 4),
        ("limit", False, True, 6),
        ("loop", False, True, 7),
        ("interrupted", False, True, 130),
    ],
)
def test_every_end_has_its_exit_code(reason, is_temporary, is_blocked, code):
    finished = TurnFinished(reason=reason, is_temporary=is_temporary)
    assert exit_code(finished, is_blocked=is_blocked) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NothingConfigured(), 4),
        (ConfigError("bad"), 3),
        (AuthError("no key"), 4),
        (ProviderDown("down"), 75),
        (ModelError("wrong"), 4),
        (YbsError("other"), 1),
    ],
)
def test_an_error_before_the_turn_has_its_exit_code(error, code, out):
    def opener(_options: object) -> Any:
        raise error

    assert code_of(error) == code
    assert run_once(NO_OPTIONS, prompt="go", opener=opener) == code
    assert out.err == f"ybs: {told(error)}\n"
    assert out.text == ""


def test_an_error_before_the_turn_is_json_where_json_was_asked_for(out: Written) -> None:
    def opener(_options: object) -> Any:
        raise ConfigError("bad")

    assert run_once(NO_OPTIONS, prompt="go", opener=opener, output_format="json") == 3
    result = msgspec.json.decode(out.text)
    assert (result["reason"], result["is_error"], result["message"]) == ("error", True, "bad")


@pytest.mark.parametrize(
    ("cue", "code"),
    [(fails(ProviderDown("down")), 75), (ends("limit", "200 steps"), 6), (ends("loop"), 7)],
)
def test_a_turn_that_fails_says_why(cue: Any, code: int, out: Written) -> None:
    assert run(FakeSession(cue)) == code
    assert "Traceback" not in out.err


def test_an_error_of_the_session_itself_is_reported(out: Written) -> None:
    async def broken(_session: FakeSession) -> None:
        raise YbsError("a turn is running")

    assert run(FakeSession(broken)) == 1
    assert out.err == "ybs: a turn is running\n"


def test_warnings_of_the_configuration_are_told(out: Written) -> None:
    run(FakeSession(says("x"), warnings=("unknown key",)))
    assert "ybs: unknown key\n" in out.err


def test_stream_json_begins_with_the_session_and_ends_with_the_result(out: Written) -> None:
    assert run(FakeSession(says("All good.")), output_format="stream-json") == 0
    lines = [msgspec.json.decode(line) for line in out.text.splitlines()]
    assert lines[0]["type"] == "session_start"
    assert [line["type"] for line in lines[-3:]] == ["turn_end", "session_end", "result"]
    assert lines[-1]["result"] == "All good."
    assert lines[-1]["session"] == "session-1"
    assert lines[-1]["usage"]["input_tokens"] == 1200


def send_signal(number: int, times: int = 1) -> Any:
    async def cue(session: FakeSession) -> None:
        for _ in range(times):
            os.kill(os.getpid(), number)
        await hangs(session)

    return cue


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stops_the_turn_and_the_result_is_still_written(number, code, out):
    session = FakeSession(send_signal(number))
    assert run(session, output_format="json") == code
    assert session.is_closed
    result = msgspec.json.decode(out.text)
    assert (result["reason"], result["exit_code"]) == ("interrupted", code)


def test_a_second_signal_leaves_a_turn_that_does_not_end(out: Written) -> None:
    async def stubborn(session: FakeSession) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()

    session = FakeSession(stubborn)
    assert run(session) == 130
    assert session.is_closed


def test_a_reader_that_goes_away_stops_the_turn_quietly(monkeypatch, capfd):
    class Broken:
        buffer = property(lambda self: self)

        def write(self, _data: bytes) -> int:
            raise BrokenPipeError

        def flush(self) -> None: ...

    monkeypatch.setattr(sys, "stdout", Broken())
    forgotten: list[int] = []
    monkeypatch.setattr(run_module, "forget_stdout", lambda: forgotten.append(1))
    session = FakeSession(hangs)
    assert run(session, output_format="stream-json") == 1
    assert forgotten == [1]
    assert "Traceback" not in capfd.readouterr().err


def test_a_dry_run_shows_its_calls(out: Written) -> None:
    async def dry(session: FakeSession) -> None:
        session.emit(Noticed(level="warning", text="not executed: run_shell pytest"))
        await ends("dry_run", "Dry run: nothing was executed.")(session)

    assert run(FakeSession(dry)) == 0
    assert "not executed: run_shell pytest" in out.err


@pytest.mark.integration
def test_a_run_without_a_terminal_loads_nothing_of_the_terminal() -> None:
    code = "import sys; from ybs.cli import main; main(['-P', 'hi']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ybs.frontends.headless.run" in done.stdout
    assert not set(done.stdout.split()) & {
        "rich",
        "prompt_toolkit",
        "httpx2",
        "ybs.frontends.terminal.app",
    }
