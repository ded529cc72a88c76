"""The live area above the prompt while a turn runs: the spinner, running calls, the open block."""

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import islice
from time import monotonic

from msgspec import Struct

from ybs.commands.figures import amount
from ybs.frontends.terminal.drawing.blocks import Blocks
from ybs.frontends.terminal.drawing.prose import Growing
from ybs.frontends.terminal.drawing.steps import (
    VERB_WIDTH,
    call_text,
    running_line,
    step_body,
    todo_lines,
)
from ybs.frontends.terminal.signs import Paint, Signs
from ybs.frontends.terminal.sub_agents import SubAgents, SubAgentView
from ybs.frontends.terminal.words import NARROW, cells, fold, one_line, shorten, shown_line

FRAMES_PER_SECOND = 8
#: Characters of a running call's output that are kept.
KEPT = 8_000
#: Running calls, and last lines of their output, that are shown.
MAX_CALLS, MAX_OUTPUT = 6, 3
#: Lines of the list of steps.
MAX_STEPS = 10
#: Characters of thinking that are kept for its last lines.
MAX_THINKING = 1_000
CHARACTERS_PER_TOKEN = 4
#: An open block has at least this many lines, else half of the room: a narrower screen can still hold it.
MIN_OPEN = 4


class RunningCall(Struct):
    """A tool call that has not ended."""

    name: str
    about: str
    started_at: float
    asked_at: float | None = None
    waited_seconds: float = 0.0
    tail: str = ""
    arguments: bytes = b""


class LiveArea:
    """The passing part of the screen; `clock` counts seconds."""

    def __init__(self, paint: Paint, signs: Signs, clock: Callable[[], float] = monotonic) -> None:
        self._paint, self._signs, self.clock = paint, signs, clock
        self.calls: dict[str, RunningCall] = {}
        #: They may go on when the turn has ended.
        self.sub_agents = SubAgents(clock)
        self.blocks = Blocks()
        self.thinking = ""
        self.activity = ""
        #: The steps that the model has noted in this turn.
        self.steps = ""
        self.streamed_characters = 0
        self.steering: list[str] = []
        self.queued: list[str] = []
        self.printed: list[str] = []
        self._growing = Growing(paint, clock)
        self._todo = lru_cache(1)(
            partial(todo_lines, paint=paint, signs=signs)
        )  # drawn in each frame
        self._since: float | None = None
        self._questions: set[str] = set()
        self._asked_at = self._waited_seconds = 0.0

    @property
    def is_running(self) -> bool:
        """Whether a turn runs."""
        return self._since is not None

    def begin(self) -> None:
        """Start the clock of a turn."""
        self._since = self.clock()
        self._questions.clear()
        self._waited_seconds = 0.0
        self.wait("waiting")

    def end(self) -> None:
        """Show nothing any more."""
        self._since = None
        self.calls.clear()
        self.printed = []
        self.thinking = self.activity = self.steps = ""
        self.streamed_characters = 0

    def wait(self, activity: str) -> None:
        """Say what is being waited for."""
        self.activity = activity
        self.streamed_characters = 0

    def count_delta(self, activity: str, text: str) -> None:
        """Count a piece of what the model writes."""
        self.activity = activity
        self.streamed_characters += len(text)

    def think(self, text: str) -> None:
        """Show the end of what the model thinks."""
        self.count_delta("thinking", text)
        self.thinking = (self.thinking + text)[-MAX_THINKING:]

    def end_thinking(self) -> None:
        """Show no thoughts any more."""
        self.thinking = ""

    def pass_by(self, printed: list[str]) -> None:
        """Show the last lines of a command that the person typed."""
        self.printed = printed

    def plan(self, steps: str) -> None:
        """Show the steps of what is being done."""
        self.steps = steps

    def queue(self, steering: list[str], queued: list[str]) -> None:
        """Show the words that wait: for the next step, and for the end of the turn."""
        self.steering, self.queued = steering, queued

    def add_output(self, call_id: str, text: str) -> None:
        """Keep the end of a running call's output."""
        if call := self.calls.get(call_id):
            call.tail = (call.tail + text)[-KEPT:]

    def pause(self, call_id: str) -> None:
        """Stop counting the time of a call, and of the turn, while the person is asked."""
        now = self.clock()
        if not self._questions:
            self._asked_at = now
        self._questions.add(call_id)
        if call := self.calls.get(call_id):
            call.asked_at = now

    def resume(self, call_id: str) -> None:
        """Go on counting. What was printed is of an attempt that was stopped: the call begins anew."""
        now = self.clock()
        if call_id in self._questions:
            self._questions.remove(call_id)
            self._waited_seconds += 0.0 if self._questions else now - self._asked_at
        if (call := self.calls.get(call_id)) and call.asked_at is not None:
            call.waited_seconds += now - call.asked_at
            call.asked_at, call.tail = None, ""

    @property
    def waited_seconds(self) -> float:
        """How long this turn has waited for the person."""
        open_seconds = self.clock() - self._asked_at if self._questions else 0.0
        return self._waited_seconds + open_seconds

    @property
    def worked_seconds(self) -> float:
        """How long this turn has taken without the time of its questions."""
        if self._since is None:
            return 0.0
        return max(0.0, self.clock() - self._since - self.waited_seconds)

    def lines(self, width: int, height: int) -> list[str]:
        """Draw at most `height` lines."""
        lines = [*self._open_lines(width, height), *self._call_lines(width)]
        lines += self._sub_agent_lines(width)
        if self.is_running and not self.calls:
            lines.append(self._waiting_line(width))
        if self.steps and self.is_running:
            room = max(1, min(MAX_STEPS, height - len(lines) - 1))
            lines += self._todo(self.steps, width, room)
        lines += self._tail(self.printed, width)
        lines += [
            self._waiting_words(text, "read before the next step", width) for text in self.steering
        ]
        lines += [
            self._waiting_words(text, "sent when this is done", width) for text in self.queued
        ]
        return lines[-height:] if height > 0 else []

    def _open_lines(self, width: int, height: int) -> list[str]:
        if block := self.blocks.open:
            room = max(MIN_OPEN, height // 2)
            return [*self._growing.lines(block, width, room), ""]
        if self.thinking:
            lines = fold(one_line(self.thinking[-4 * width :]), width - 2)
            return [*(self._paint.dim("  " + line) for line in lines[-2:]), ""]
        return []

    def _call_lines(self, width: int) -> list[str]:
        lines: list[str] = []
        now = self.clock()
        hint = self._stop_hint(width)
        for call in [*self.calls.values()][:MAX_CALLS]:
            seconds = now - call.started_at - call.waited_seconds
            text = call_text(call.name, call.about, width)
            room = width - cells(hint)
            lines.append(running_line(text, seconds, room, self._paint, self._frame()) + hint)
            lines += self._tail(call.tail.split("\n"), width)
            hint = ""
        if (more := len(self.calls) - MAX_CALLS) > 0:
            lines.append(self._paint.dim(f"  {self._signs.more} {more} more"))
        return lines

    def _sub_agent_lines(self, width: int) -> list[str]:
        working, now = [*self.sub_agents.working.values()], self.clock()
        lines = [self._sub_agent_line(agent, now, width) for agent in working[:MAX_CALLS]]
        if (more := len(working) - MAX_CALLS) > 0:
            lines.append(self._paint.dim(f"  {self._signs.more} {more} more"))
        return lines

    def _sub_agent_line(self, agent: SubAgentView, now: float, width: int) -> str:
        is_narrow = width < NARROW
        name = shorten(one_line(agent.name), width // 3, self._signs.more)
        name = name if is_narrow else name.ljust(VERB_WIDTH - 1)
        figures = [] if is_narrow or not agent.steps else [agent.figures(f" {self._signs.dot} ")]
        said = f" {self._signs.dot} ".join([agent.doing, *figures])
        room = width - cells(name) - 2 * len("  ") - len("99m 59s") - 1
        task = "" if is_narrow else agent.task
        text = f"{name} {step_body(task, said, room, self._paint, self._signs)}"
        return running_line(text, agent.worked_seconds(now), width, self._paint, self._frame())

    def _stop_hint(self, width: int) -> str:
        is_shown = width >= NARROW and self.worked_seconds >= 1
        return self._paint.dim("   esc to stop") if is_shown else ""

    def _tail(self, output: list[str], width: int) -> list[str]:
        lines = (text for line in reversed(output) if (text := shown_line(line)))
        shown = [*islice(lines, MAX_OUTPUT)][::-1]
        return [self._paint.dim(shorten("    " + line, width, self._signs.more)) for line in shown]

    def _waiting_words(self, text: str, when: str, width: int) -> str:
        end = f"  ({when})"
        line = shorten(f"{self._signs.prompt} {one_line(text)}", width - cells(end))
        return self._paint.dim(line + end)

    def _waiting_line(self, width: int) -> str:
        seconds = self.worked_seconds
        tokens = self.streamed_characters // CHARACTERS_PER_TOKEN
        size = f"  ~{amount(tokens)} tokens" if tokens else ""
        hint = self._stop_hint(width)
        text = self.activity + size
        return running_line(text, seconds, width - cells(hint), self._paint, self._frame()) + hint

    def _frame(self) -> str:
        frames = self._signs.spinner
        return frames[int(self.clock() * FRAMES_PER_SECOND) % len(frames)]
