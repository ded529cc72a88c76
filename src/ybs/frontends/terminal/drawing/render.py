"""Draws the events of a session: each finished thing once, as lines that scroll away; the rest in `LiveArea`."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from msgspec.structs import replace

from ybs.commands.advice import advised
from ybs.config.schema import UiSettings
from ybs.core import events
from ybs.core.envelope import Envelope
from ybs.core.events import Event
from ybs.core.wording import plural
from ybs.frontends.terminal.drawing.answer import AnswerDrawing
from ybs.frontends.terminal.drawing.diffs import diff_lines, short_diff
from ybs.frontends.terminal.drawing.folds import Fold, Folds, TypedLines
from ybs.frontends.terminal.drawing.live import MAX_OUTPUT, LiveArea, RunningCall
from ybs.frontends.terminal.drawing.page import Canvas, Kind, Page
from ybs.frontends.terminal.drawing.steps import (
    NOT_RUN,
    UNFOLD_KEY,
    arguments_of,
    detail_margin,
    detail_of,
    diff_of,
    draw_detail,
    file_of,
    has_diff,
    hidden_text,
    hint_of,
    output_lines,
    quiet_output_of,
    step_line,
    steps_of,
    todo_lines,
)
from ybs.frontends.terminal.sub_agents import SubAgentView, end_words
from ybs.frontends.terminal.words import (
    cells,
    compaction_words,
    cut_message,
    dim_lines,
    duration,
    one_line,
    own_shell_hint,
    reading_words,
    reason_of,
    retry_words,
    routed_words,
    shorten,
    usage_line,
    verb,
    wrap_words,
)
from ybs.session.injection import FAILED, command_of, denial_of, ending_of
from ybs.session.status import View
from ybs.tools.calls.describing import subject

#: Rows of it that are drawn at first: the screen's own memory has an end too. The key once more draws all.
MOST_ROWS = 500


class Renderer(Page):
    """A sink of events. `view` says what the person wants to see of them."""

    def __init__(
        self, canvas: Canvas, live: LiveArea, settings: UiSettings, *, view: View | None = None
    ) -> None:
        super().__init__(canvas, live)
        self._settings = settings
        self._retry_reason = ""
        self._asked: set[str] = set()
        self._unanswered: set[str] = set()
        self._typed = TypedLines(canvas.signs.more)
        self._view = view or View(streams=settings.stream_responses)
        self._folds = Folds()
        self._answer = AnswerDrawing(self, self._folds, self._view)
        self._has_told_key = self._has_told_undo = False
        self._cut_short: Fold | None = None

    def __call__(self, envelope: Envelope) -> None:
        """Draw what an agent tells; of a sub-agent one line, when it is done."""
        if envelope.is_main:
            self.draw(envelope.event)
        else:
            self._draw_sub_agent(envelope.agent, envelope.event)

    def draw(self, event: Event) -> None:
        """Draw an event of the main agent."""
        match event:
            case (
                events.TextStreamed()
                | events.ThinkingStreamed()
                | events.ToolCallStreamed()
                | events.AssistantSaid()
            ):
                self._answer.draw(event)
            case events.ToolStarted() | events.ToolPrinted() | events.ToolFinished():
                self._draw_call(event)
            case (
                events.RequestStarted()
                | events.RequestRetried()
                | events.PromptRead()
                | events.Noticed()
                | events.Compacted()
            ):
                self._draw_progress(event)
            case events.TurnFinished() | events.FilesChanged():
                self._draw_end(event)
            case events.UserSaid():
                self._end_typed(event)
            case events.ConfirmationAsked() | events.ConfirmationAnswered():
                self._pause_call(event)
            case (
                events.SessionStarted()
                | events.SystemPrompted()
                | events.SessionEnded()
                | events.Titled()
                | events.Rewound()
                | events.Replaced()
                | events.FilesRestored()
                | events.StateChanged()
            ):
                pass  # whoever asked for it says so
            case _:
                assert_never(event)

    def draw_again(self, earlier: Iterable[Event | Envelope]) -> None:
        """Draw what was said and done before this session went on."""
        for event in earlier:
            if isinstance(event, Envelope):
                self(event)
            elif isinstance(event, events.UserSaid):
                self.echo(event.content)
            else:
                self.draw(event)
        self.flush()

    def flush(self) -> None:
        """Draw what is left of the open block."""
        self._answer.flush()

    def unfold(self) -> bool:
        """Draw whole what was drawn shortened last, then what was before it; False if there is no more."""
        whole = None if self._folds.is_new else self._cut_short
        self._cut_short = None
        fold = whole or self._answer.thought_so_far or self._folds.next()
        if fold is None:
            return False
        title = self.canvas.paint.bold(shorten(one_line(fold.title), self.canvas.width() - 3))
        lines = self._whole(fold)
        if whole is None and (hidden := len(lines) - MOST_ROWS) > 0:
            before = f"{hidden_text(hidden, self.canvas.signs)} before these"
            lines[:hidden] = [self.canvas.paint.dim(f"  {before}   {UNFOLD_KEY} again shows all")]
            self._cut_short = fold
        text = "\n".join(["  " + self.canvas.paint.dim(title), *lines])
        self.put("question" if self._held is not None else "text", text)
        return True

    def keep_whole(self, title: str, diff: str) -> None:
        """Keep a diff that a question shows shortened: it is the next to be drawn whole."""
        self._folds.add(title, diff, "diff")

    def _whole(self, fold: Fold) -> list[str]:
        paint, width = self.canvas.paint, self.canvas.width() - 1
        match fold.kind:
            case "words":
                return dim_lines(fold.text, width - 2, paint)
            case "diff":
                return diff_lines(fold.text, width, paint, self.canvas.signs)
            case "output":
                lines = output_lines(fold.whole(), width - len(detail_margin(width)))
                return [paint.dim(detail_margin(width) + line).rstrip() for line in lines]

    def _draw_call(
        self, event: events.ToolStarted | events.ToolPrinted | events.ToolFinished
    ) -> None:
        match event:
            case events.ToolStarted():
                about = subject(bytes(event.arguments))
                now = self.live.clock()
                call = RunningCall(event.name, about, now, arguments=bytes(event.arguments))
                self.live.calls[event.id] = call
            case events.ToolPrinted() if event.id in self.live.calls:
                self.live.add_output(event.id, event.text)
            case events.ToolPrinted():
                self._print_typed(self._typed.feed(event.text, is_whole=self._view.is_verbose))
            case events.ToolFinished():
                self._end_call(event)

    def _print_typed(self, lines: list[str]) -> None:
        """Draw lines of a command that the person typed; its last ones pass by until it has ended."""
        if lines:
            self.put("step", "\n".join(f"  {line}".rstrip() for line in lines))
        self.live.pass_by(self._typed.passing(MAX_OUTPUT))

    def end_typed(self) -> None:
        """Draw what is left of the output of a command that the person typed for themselves."""
        self._finish_typed()

    def _finish_typed(self, content: str = "") -> None:
        self._print_typed(self._typed.finish())
        if whole := self._typed.whole:
            self._folds.add(f"! {command_of(content)}".rstrip(), whole)

    def _end_typed(self, event: events.UserSaid) -> None:
        self._finish_typed(event.content if event.origin == "shell" else "")
        if event.origin == "guard":
            self._tell_reminder(event.content)
        elif event.origin == "shell":
            self._say_ending(event.content)
        elif event.origin == "context":
            self._folds.add("told the model", event.content, "words")

    def _tell_reminder(self, content: str) -> None:
        """Say in a line what the model was reminded of; the rest of the words is for the model."""
        room = self.canvas.width() - 3
        line = f"reminded the model: {one_line(content)}"
        if cells(line) > room:
            self._folds.add("reminded the model", content, "words")
        self.note(shorten(line, room, self.canvas.signs.more))

    def _say_ending(self, content: str) -> None:
        ending, is_good = ending_of(content)
        if ending and not content.startswith(FAILED):
            took = duration(self.live.worked_seconds)
            ending = f"{ending} {self.canvas.signs.dot} {took}"
        if ending:
            self.note(ending, "info" if is_good else "error")
        if denial := denial_of(content):
            self.note(own_shell_hint(denial, command_of(content)), "info")

    def _pause_call(self, event: events.ConfirmationAsked | events.ConfirmationAnswered) -> None:
        if isinstance(event, events.ConfirmationAsked):
            self._asked.add(event.id)
            self._unanswered.add(event.id)
            self.live.pause(event.id)
        else:
            self._unanswered.discard(event.id)
            self.live.resume(event.id)

    def _end_call(self, event: events.ToolFinished) -> None:
        call = self.live.calls.pop(event.id, None)
        was_asked = event.id in self._asked
        self._asked.discard(event.id)
        if event.id in self._unanswered and not event.is_refused:
            event = replace(event, is_refused=True, summary=NOT_RUN)
        self._unanswered.discard(event.id)
        if not self._settings.show_tool_calls:
            return
        if (steps := steps_of(event)) is not None and not was_asked:
            self.live.plan(steps)  # above the prompt, once; it is drawn when the turn ends
            return
        now = self.live.clock()
        call = call or RunningCall(event.name, "", now)
        took = event.duration_seconds or now - call.started_at  # what was stopped does not say
        seconds = max(0.0, took - call.waited_seconds)
        output = advised(event.output, event.remedies, separator=" ")
        event = replace(event, duration_seconds=seconds, output=output)
        self.put("step", "\n".join(self._call_lines(event, call, was_asked=was_asked)))

    def _call_lines(
        self, event: events.ToolFinished, call: RunningCall, *, was_asked: bool
    ) -> Iterator[str]:
        width, paint, signs = self.canvas.width() - 1, self.canvas.paint, self.canvas.signs
        yield step_line(event, call.about, width, paint, signs)
        if not (event.is_refused and was_asked):
            yield from self._detail(event, call, width)
        if hint := hint_of(event):
            room = width - len(detail_margin(width))
            yield draw_detail(wrap_words(hint[:1].upper() + hint[1:], room), width, paint)
        if event.success and not was_asked and (changed := diff_of(event)):
            yield from self._diff(f"{verb(event.name)} {call.about}", changed, width)

    def _detail(self, event: events.ToolFinished, call: RunningCall, width: int) -> Iterator[str]:
        signs, room = self.canvas.signs, width - len(detail_margin(width))
        is_whole = self._view.is_verbose
        shown = detail_of(event, room, signs, call.tail, is_whole=is_whole)
        if is_whole and not has_diff(event) and (given := arguments_of(call.arguments, call.about)):
            yield draw_detail(output_lines(given, room), width, self.canvas.paint)
        if shown.whole:
            title = f"{verb(event.name)} {call.about}"
            self._folds.add(title, shown.whole, file=file_of(event))
            self._name_key(shown.lines, room)
        elif not is_whole and (quiet := quiet_output_of(event, call.tail)):
            self._folds.add(f"{verb(event.name)} {call.about}", quiet)
        if shown.lines:
            yield draw_detail(shown.lines, width, self.canvas.paint)

    def _name_key(self, lines: list[str], room: int) -> None:
        """Name the key at the sign for what is left out."""
        more = self.canvas.signs.more
        if lines[0].startswith(more):
            lines[0] += self._key_hint(room - cells(lines[0]))
        elif lines[-1].endswith(more) and (hint := self._key_hint(room // 2)):
            lines[-1] = shorten(lines[-1], room - len(hint), more) + hint

    def _diff(self, title: str, text: str, width: int) -> Iterator[str]:
        paint, signs = self.canvas.paint, self.canvas.signs
        lines = diff_lines(text, width, paint, signs)
        above, hidden, below = (lines, 0, []) if self._view.is_verbose else short_diff(lines, text)
        yield from above
        if hidden:
            self._folds.add(title, text, "diff")
            left_out = f"    {hidden_text(hidden, signs)}"
            yield paint.dim(left_out + self._key_hint(width - cells(left_out)))
        yield from below

    def _key_hint(self, room: int) -> str:
        """Name the key that draws things whole, the first time that there is room for it."""
        hint = f"   {UNFOLD_KEY} shows all"
        if self._has_told_key or room < len(hint):
            return ""
        self._has_told_key = True
        return hint

    def _draw_progress(
        self,
        event: events.RequestStarted
        | events.RequestRetried
        | events.PromptRead
        | events.Noticed
        | events.Compacted,
    ) -> None:
        match event:
            case events.RequestStarted():
                self._retry_reason = ""
                self._answer.begin()
                if event.decision:
                    self.note(routed_words(event))
                self.live.wait(f"waiting for {one_line(event.model)}")
            case events.RequestRetried():
                self._tell_retry(event)
            case events.PromptRead():
                self.live.wait(reading_words(event))
            case events.Noticed():
                self.note(advised(event.text, event.remedies, separator=" "), event.level)
            case events.Compacted():
                self.note(compaction_words(event, "→"))

    def fail(self, message: str, kind: Kind = "text") -> None:
        """Draw an error: of what a provider said at length the beginning, and which key shows the rest."""
        shown = cut_message(message, f"{self.canvas.signs.more} ({UNFOLD_KEY} shows all)")
        if shown != message.strip():
            self._folds.add("error", message, "words")
        self.note(shown, "error", kind)

    def _draw_sub_agent(self, name: str, event: Event) -> None:
        agent = self.live.sub_agents.add(name, event)
        match event:
            case events.Noticed(level="warning" | "error"):
                said = advised(event.text, event.remedies, separator=" ")
                self.note(f"{name}: {said}", event.level)
            case events.ConfirmationAsked():
                self.live.pause(f"{name} {event.id}")
            case events.ConfirmationAnswered():
                self.live.resume(f"{name} {event.id}")
            case events.TurnFinished() if agent is not None:
                self._end_sub_agent(agent, event)
            case _:
                pass

    def _end_sub_agent(self, agent: SubAgentView, event: events.TurnFinished) -> None:
        """Draw a sub-agent that is done as if it were a call."""
        figures = agent.figures(f" {self.canvas.signs.dot} ")
        is_done = event.reason == "done"
        finished = events.ToolFinished(
            id="",
            name=agent.name,
            success=is_done,
            output=figures if is_done else end_words(event),
            summary=figures,
            duration_seconds=agent.took_seconds(event, self.live.clock()),
        )
        if self._settings.show_tool_calls:
            call = RunningCall(agent.name, agent.task, agent.started_at)
            self.put("step", "\n".join(self._call_lines(finished, call, was_asked=False)))
        if agent.told:
            self._folds.add(f"{agent.name} {agent.task}", agent.told.text)

    def _tell_retry(self, event: events.RequestRetried) -> None:
        """Say why a request is sent again, once for each reason; how often is told in passing."""
        self._answer.break_off()
        reason = reason_of(event.message)
        self.live.wait(f"trying again in {duration(event.wait_seconds)}")  # the reason stands above
        if reason != self._retry_reason:
            self._retry_reason = reason
            self.note(retry_words(event))

    def _draw_end(self, event: events.TurnFinished | events.FilesChanged) -> None:
        if isinstance(event, events.TurnFinished):
            self._end_turn(event)
        elif event.paths and not self._has_told_undo:
            self._has_told_undo = True
            count = plural(len(event.paths), "file")
            self.note(f"{count} changed: /diff shows it, /undo takes it back")

    def _end_turn(self, event: events.TurnFinished) -> None:
        self._answer.end_thinking()
        self.flush()
        self._finish_typed()
        seconds = max(0.0, event.duration_seconds - self.live.waited_seconds)
        if steps := self.live.steps:
            canvas = self.canvas
            lines = todo_lines(steps, canvas.width() - 1, MOST_ROWS, canvas.paint, canvas.signs)
            self.put("text", "\n".join(lines))
        self.live.end()
        message = advised(event.message, event.remedies)
        match event.reason:
            case "done":
                pass
            case "interrupted":
                self.note(message or "interrupted", "warning", "text")
            case "error":
                self.fail(message)
            case "limit" | "loop" | "dry_run":
                self.note(message or event.reason, "warning", "text")
        if self._settings.show_token_usage and event.usage.input_tokens:
            used = usage_line(event.usage, seconds, self.canvas.signs.dot)
            self.put("text", f"  {self.canvas.paint.dim(used)}")
