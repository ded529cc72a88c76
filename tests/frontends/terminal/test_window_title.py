"""What the title of the window shows, and where there is none."""

from pathlib import Path

import pytest
from prompt_toolkit.output import DummyOutput

from rows import every_row
from ybs.commands.open import SlashCommands
from ybs.config.schema import Config, UiSettings
from ybs.core.events import Titled
from ybs.core.ports import Answer, Question
from ybs.frontends.terminal.output import KEEP, RESTORE, window_title
from ybs.session.session import Session
from ybs.testing import ScriptedModel, call

XTERM = {"TERM": "xterm-256color"}


class Recorded(DummyOutput):
    def __init__(self) -> None:
        self.written: list[str] = []

    def write_raw(self, data: str) -> None:
        self.written.append(data)

    def encoding(self) -> str:
        return "utf-8"


def opened(project: Path, *script: object, **options: object) -> Session:
    model = ScriptedModel(script)  # type: ignore[arg-type] - answers and calls
    return Session.open(project, commands=SlashCommands(), model=model, sandbox=False, **options)


def shown(output: Recorded) -> list[str]:
    assert (output.written[0], output.written[-1]) == (KEEP, RESTORE)
    titles = output.written[1:-1]
    assert all(each.startswith("\x1b]2;") and each.endswith("\x1b\\") for each in titles)
    return [each.removeprefix("\x1b]2;").removesuffix("\x1b\\") for each in titles]


@pytest.mark.integration
async def test_the_title_follows_the_session(project: Path):
    output = Recorded()

    async def yes(_question: Question) -> Answer:
        return Answer(is_allowed=True)

    ask = call("run_shell", command="true")
    async with opened(project, ask, "done", confirm=yes) as session:
        with window_title(session, output, XTERM):
            session.emit(Titled(title="The \x1b]2;cart\x07"))
            await session.send("go")
            await session.handle("/new")
            await session.handle("/rename \u202eOther")
    folder = project.name
    assert shown(output) == [
        f"{each} - {folder}"
        for each in (
            "ybs",
            "The ␛]2;cart␇",
            "* The ␛]2;cart␇",
            "? The ␛]2;cart␇",
            "* The ␛]2;cart␇",
            "The ␛]2;cart␇",
            "<U+202E>Other",
        )
    ]


async def test_incognito_names_the_folder_alone(project: Path):
    output = Recorded()
    async with opened(project, incognito=True) as session:
        with window_title(session, output, XTERM):
            session.emit(Titled(title="a secret"))
    assert shown(output) == [f"ybs - {project.name}"]


@every_row(
    ("environ", "is_wanted"),
    [({"TERM": "linux"}, True), ({"TERM": "vt100"}, True), ({}, True), (XTERM, False)],
)
async def test_where_there_is_no_title_nothing_is_written(
    project: Path, environ: dict[str, str], *, is_wanted: bool
):
    output = Recorded()
    config = {"overrides": {"ui.terminal_title": is_wanted}}
    async with opened(project, **config) as session:
        assert session.config.ui == Config(ui=UiSettings(terminal_title=is_wanted)).ui
        with window_title(session, output, environ):
            session.emit(Titled(title="cart"))
    assert output.written == []
