"""A renderer whose lines are collected, and the events that it draws."""

import re
from typing import Any

import msgspec
from msgspec import Raw
from stage import FakeClock

from ybs.config.schema import UiSettings
from ybs.core.changes import FileChange
from ybs.core.envelope import MAIN, Envelope
from ybs.core.events import Event, ToolFinished, ToolStarted
from ybs.frontends.terminal.drawing.live import LiveArea
from ybs.frontends.terminal.drawing.page import Canvas
from ybs.frontends.terminal.drawing.render import Renderer
from ybs.frontends.terminal.signs import UNICODE, Paint
from ybs.session.status import View


class Page:
    """A renderer whose lines are collected."""

    def __init__(self, *, width: int = 60, is_verbose: bool = False, **settings: Any) -> None:
        self.pieces: list[str] = []
        self.clock = FakeClock()
        paint = Paint(has_colour=False)
        self.live = LiveArea(paint, UNICODE, self.clock)
        canvas = Canvas(self.pieces.append, lambda: width, paint, UNICODE)
        ui = UiSettings(**settings)
        self.view = View(streams=ui.stream_responses, is_verbose=is_verbose)
        self.renderer = Renderer(canvas, self.live, ui, view=self.view)

    def draw(self, *events: Event, agent: str = MAIN) -> str:
        for event in events:
            self.renderer(Envelope("session-1", agent, event))
        return self.text

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;]*m", "", "".join(self.pieces))

    def passing(self, width: int = 60) -> list[str]:
        lines = (re.sub(r"\x1b\[[0-9;]*m", "", line) for line in self.live.lines(width, 20))
        return [re.sub(f"^[{UNICODE.spinner}]", "⠋", line) for line in lines]


def ran(
    name: str = "run_shell", *, display: Any = None, success: bool = True, **rest: Any
) -> ToolFinished:
    shown = Raw(msgspec.json.encode(display))
    given: dict[str, Any] = {"output": "out", **rest}
    return ToolFinished(id="1", name=name, success=success, display=shown, **given)


def changed(before: str = "old\n", after: str = "new\n") -> FileChange:
    return FileChange(path="a", before=before, after=after)


def started(name: str = "run_shell", **arguments: Any) -> ToolStarted:
    return ToolStarted(id="1", name=name, arguments=Raw(msgspec.json.encode(arguments)))
