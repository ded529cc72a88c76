"""Opening the terminal door."""

import errno
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from fake_session import FakeSession
from hosts import this_host
from rows import every_row
from trusting import is_trusted, wanting
from ybs.agent.model_choice import NothingConfigured
from ybs.config.host import Host
from ybs.config.schema import Config, UiSettings
from ybs.frontends.terminal import app
from ybs.frontends.terminal.app import chat, open_or_set_up
from ybs.frontends.terminal.questions.late import ask_trust
from ybs.providers.local import models
from ybs.session.options import Options
from ybs.session.settings import load_settings

NO_OPTIONS = cast("Any", None)


class FakeTerminal:
    """A terminal that ends at once, with a code or an error."""

    end: int | BaseException = 0

    def __init__(self, session: object, history: object = None) -> None:
        self.session, self.history = session, history

    async def run(self, prompt: str, command: str) -> int:
        if isinstance(self.end, BaseException):
            raise self.end
        return self.end


class SmartTerminal(FakeTerminal):
    end = 3


class DumbTerminal(FakeTerminal):
    end = 4


@pytest.fixture(autouse=True)
def terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ybs.frontends.terminal.terminal.Terminal", SmartTerminal)
    monkeypatch.setattr("ybs.frontends.terminal.plain.plain.PlainTerminal", DumbTerminal)
    monkeypatch.setattr("ybs.frontends.terminal.prompt.history.open_history", lambda _session: None)


@every_row(("term", "code"), [("xterm", 3), ("dumb", 4)])
def test_the_terminal_or_the_person_decides_how_it_is_drawn(
    monkeypatch: pytest.MonkeyPatch, term: str, code: int
) -> None:
    monkeypatch.setenv("TERM", term)
    session = FakeSession()
    assert chat(NO_OPTIONS, opener=lambda _: session.as_session) == code
    assert session.is_closed
    assert not session.view.is_verbose
    wanted = FakeSession(config=Config(ui=UiSettings(plain=True)))
    assert chat(NO_OPTIONS, opener=lambda _: wanted.as_session, is_verbose=True) == 4
    assert wanted.view.is_verbose


@every_row("error", [EOFError(), OSError(errno.EIO, "Input/output error")])
def test_a_terminal_that_was_closed_is_a_quiet_end(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(SmartTerminal, "end", error)
    session = FakeSession()
    assert chat(NO_OPTIONS, opener=lambda _: session.as_session) == app.HANGUP
    assert session.is_closed


def test_another_error_of_the_system_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SmartTerminal, "end", OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(OSError, match="No space left"):
        chat(NO_OPTIONS, opener=lambda _: FakeSession().as_session)


CHOICE = {"llm.provider": "ollama", "llm.model": "qwen3:14b"}
LOCAL_ONLY = {"incognito": True, "overrides": {"incognito.local_only": True}}


def choosing(
    monkeypatch: pytest.MonkeyPatch, choice: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """Answer the question which model; return what it was asked with."""
    asked: list[dict[str, Any]] = []

    def choose(_host: Host, **options: Any) -> dict[str, Any] | None:
        asked.append(options)
        return choice

    monkeypatch.setattr("ybs.frontends.terminal.start.setup.choose", choose)
    return asked


def test_nothing_configured_leads_to_a_choice_and_then_on(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choosing(monkeypatch, CHOICE)
    session = open_or_set_up(Options.of(project, {"model": "meant-for-no-provider"}))
    assert session.status().model == "qwen3:14b"
    assert "qwen3:14b" in (home / ".config" / "ybs" / "config.json").read_text()


def test_choosing_nothing_ends_with_what_is_missing(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choosing(monkeypatch, None)
    with pytest.raises(NothingConfigured):
        open_or_set_up(Options(host=this_host(), folder=project))
    assert list(home.iterdir()) == []


@pytest.mark.integration
@every_row(("mode", "is_said"), [("ask", True), ("plan", False)])
def test_who_has_chosen_nothing_reads_what_the_mode_ask_does(
    mode: str,
    is_said: bool,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(models, "STARTER_BYTES", 4)
    models.models_folder(this_host()).mkdir(parents=True, exist_ok=True)
    models.starter_path(this_host()).write_bytes(b"GGUF")
    open_or_set_up(Options.of(project, {"mode": mode}))
    assert ("Unasked: any command" in capsys.readouterr().out) is is_said
    open_or_set_up(Options.of(project, {"provider": "ollama", "model": "m"}))
    assert capsys.readouterr().out == ""


@pytest.mark.integration
def test_in_incognito_the_choice_is_for_this_run_and_nothing_is_written(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = choosing(monkeypatch, CHOICE)
    session = open_or_set_up(Options.of(project, {"incognito": True}))
    assert session.status().model == "qwen3:14b"
    assert session.status().incognito
    open_or_set_up(Options.of(project, LOCAL_ONLY))
    assert list(home.iterdir()) == []
    assert "qwen3:14b, ollama, for this run only; nothing was saved." in capsys.readouterr().out
    assert asked == [
        {"is_incognito": True, "only_here": False},
        {"is_incognito": True, "only_here": True},
    ]


@pytest.mark.integration
def test_a_choice_that_cannot_be_kept_counts_for_this_run(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".config").write_text("no folder")
    choosing(monkeypatch, CHOICE)
    assert open_or_set_up(Options(host=this_host(), folder=project)).status().model == "qwen3:14b"
    assert "The choice is used for this run only." in capsys.readouterr().out


def test_incognito_asks_nothing_whose_answer_would_be_written_down(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanting(project)
    seen = opened_with(monkeypatch)
    monkeypatch.setattr("builtins.input", unexpected)
    open_or_set_up(Options.of(project, {"incognito": True}))
    assert not load_settings(seen[0]).config.hooks
    assert not is_trusted(project)


def unexpected(prompt: str) -> str:
    pytest.fail(f"a question: {prompt}")


def opened_with(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    seen: list[Options] = []
    monkeypatch.setattr("ybs.commands.open.open_session", seen.append)
    monkeypatch.setattr("ybs.agent.model_choice.lacks_model", lambda *_: False)
    return seen


def test_a_project_that_wants_something_is_asked_about_before_anything_is_opened(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanting(project)
    seen = opened_with(monkeypatch)
    monkeypatch.setattr(
        "ybs.frontends.terminal.questions.late.ask_trust", partial(ask_trust, read=lambda _: "yes")
    )
    open_or_set_up(Options(host=this_host(), folder=project))
    assert load_settings(seen[0]).config.hooks
    assert "chooses the model small" in capsys.readouterr().out


@pytest.mark.parametrize("answer", ["", "n", "yess", EOFError(), KeyboardInterrupt()])
def test_what_is_no_clear_yes_trusts_nothing(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str | BaseException,
) -> None:
    answers = iter((answer, "n"))

    def read(_: str) -> str:
        given = next(answers)
        if isinstance(given, BaseException):
            raise given
        return given

    wanting(project)
    seen = opened_with(monkeypatch)
    monkeypatch.setattr(
        "ybs.frontends.terminal.questions.late.ask_trust", partial(ask_trust, read=read)
    )
    open_or_set_up(Options(host=this_host(), folder=project))
    assert not load_settings(seen[0]).config.hooks
    assert not is_trusted(project)
    said = capsys.readouterr().out
    assert ("Please type y or n; Enter alone is a no." in said) == (answer == "yess")


def test_a_project_that_wants_nothing_is_not_asked_about(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = opened_with(monkeypatch)
    monkeypatch.setattr("builtins.input", unexpected)
    open_or_set_up(Options(host=this_host(), folder=project))
    assert seen[0].loaded is not None


def test_a_no_is_remembered_until_the_files_change(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def no(prompt: str) -> str:
        asked.append(prompt)
        return "n"

    wanting(project)
    opened_with(monkeypatch)
    monkeypatch.setattr(
        "ybs.frontends.terminal.questions.late.ask_trust", partial(ask_trust, read=no)
    )
    options = Options(host=this_host(), folder=project)
    open_or_set_up(options)
    open_or_set_up(options)
    assert len(asked) == 1
    settings = project / ".ybs.json"
    settings.write_text(settings.read_text() + "\n")
    open_or_set_up(options)
    assert len(asked) == 2
    assert not is_trusted(project)


def test_the_model_is_chosen_before_the_project_is_asked_about(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanting(project)
    monkeypatch.setattr("ybs.frontends.terminal.questions.late.ask_trust", unexpected_trust)
    choosing(monkeypatch, None)
    with pytest.raises(NothingConfigured):
        open_or_set_up(Options(host=this_host(), folder=project))
    assert "asks for the following" not in capsys.readouterr().out
    assert list(home.iterdir()) == []


def test_a_router_with_too_few_models_leads_to_the_choice(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Options] = []
    monkeypatch.setattr(app, "with_choice", asked.append)  # nothing is chosen
    with pytest.raises(NothingConfigured):
        open_or_set_up(Options.of(project, {"overrides": {"router.enabled": True}}))
    assert len(asked) == 1


def unexpected_trust(*_: object) -> bool:
    pytest.fail("the question about trust came before a model was chosen")


def test_trust_for_one_run_asks_nothing_and_stores_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanting(project)
    seen = opened_with(monkeypatch)
    monkeypatch.setattr("builtins.input", unexpected)
    open_or_set_up(Options.of(project, {"host": this_host(), "trust": True}))
    assert load_settings(seen[0]).config.hooks
    assert not is_trusted(project)
