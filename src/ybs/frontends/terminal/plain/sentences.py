"""Events in whole sentences, for the plain terminal."""

from collections.abc import Callable
from typing import assert_never

from ybs.commands.advice import advised
from ybs.core import events
from ybs.core.events import Event
from ybs.frontends.terminal.drawing.folds import TypedLines
from ybs.frontends.terminal.drawing.steps import (
    NOT_RUN,
    arguments_of,
    detail_of,
    has_diff,
    output_lines,
    streams_of,
)
from ybs.frontends.terminal.session import TerminalSession
from ybs.frontends.terminal.signs import ASCII
from ybs.frontends.terminal.words import (
    compaction_words,
    cut_message,
    duration,
    fold,
    one_line,
    own_shell_hint,
    retry_words,
    routed_words,
    shorten,
    usage_line,
    verb,
    wrap,
)
from ybs.security.unicode import printable
from ybs.session.injection import FAILED, command_of, denial_of, ending_of
from ybs.tools.calls.describing import subject

#: Columns that sentences take; who reads a screen aloud does not care, and most screens have them.
WIDTH = 79
#: Columns of a thought that are told, where thoughts are.
MOST_THOUGHT = 4 * WIDTH
#: Columns that are told of why a call failed, and characters of it that are looked at.
MOST_FAILURE, MOST_MESSAGE = 2 * WIDTH, 4_000
#: Stands at the end of an error that is cut.
CUT = "... (/verbose tells errors whole)"


class Stopwatch:
    """Counts the seconds of a line of input, and apart from them those in which the person was asked."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._asked_at: float | None = None
        self.start()

    def start(self) -> None:
        """Begin at nothing."""
        self._began_at, self.asked_seconds = self._clock(), 0.0

    def pause(self) -> None:
        """Note that the person is asked."""
        self._asked_at = self._clock()

    def resume(self) -> None:
        """Note that the person has answered."""
        self.asked_seconds += self._clock() - (self._asked_at or self._clock())
        self._asked_at = None

    @property
    def is_paused(self) -> bool:
        """Whether the person is asked."""
        return self._asked_at is not None

    @property
    def worked_seconds(self) -> float:
        """What the work took so far."""
        return max(0.0, self._clock() - self._began_at - self.asked_seconds)


class Sentences:
    """Makes sentences of the events of one agent: of a sub-agent its `name` stands before each, and they are short."""

    def __init__(self, session: TerminalSession, watch: Stopwatch, *, name: str = "") -> None:
        self._session, self._watch = session, watch
        self._who = f"{name}: " if name else ""
        self._about: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        self._arguments: dict[str, str] = {}
        #: The calls that the person was asked about, and whether they have answered.
        self._answered: dict[str, bool] = {}
        self._typed = TypedLines("...")
        self._thought = ""

    def of(self, event: Event) -> str:
        """Return the sentence for an event; "" where there is nothing to tell."""
        if isinstance(event, events.ThinkingStreamed):
            self._thought += event.text if self._session.view.is_verbose else ""
            return ""
        if isinstance(event, events.ToolStarted):
            self._about[event.id] = about = subject(bytes(event.arguments))
            self._arguments[event.id] = arguments_of(bytes(event.arguments), about)
            self._calls[event.id] = f"{verb(event.name)} {about}".strip()
        if isinstance(event, events.ConfirmationAsked):
            self._answered[event.id] = False
        if isinstance(event, events.ConfirmationAnswered) and event.id in self._answered:
            self._answered[event.id] = True  # else it was a rule that decided
        if isinstance(event, events.ToolPrinted):
            if event.id in self._about:
                return ""
            is_whole = self._session.view.is_verbose
            return "\n".join(self._typed.feed(event.text, is_whole=is_whole))
        return "\n".join(filter(None, (self._end_thought(), self._sentence(event))))

    def still(self, seconds: float) -> str:
        """Return a sentence about the long-running activity."""
        time = f"{seconds:.0f} s" if seconds < 60 else duration(seconds)
        if not self._calls:
            return f"Still working, {time}."
        doing = shorten("; ".join(one_line(call) for call in self._calls.values()), WIDTH, "...")
        return fold_line(f"Still running: {doing}, {time}.")

    def end_typed(self) -> str:
        """Print what is left of the output of a command that the person typed for themselves."""
        return "\n".join(self._typed.finish())

    def _sentence(self, event: Event) -> str:
        match event:
            case events.AssistantSaid(content=said):
                return f"\n{fold_prose(printable(said).strip())}\n" if said.strip() else ""
            case events.ToolFinished():
                self._calls.pop(event.id, None)
                return self._call_sentence(event)
            case (
                events.RequestRetried()
                | events.RequestStarted()
                | events.Noticed()
                | events.Compacted()
            ):
                return self._note_sentence(event)
            case events.UserSaid():
                return self._ending_sentence(event.content) if event.origin == "shell" else ""
            case events.TurnFinished():
                self._calls.clear()
                return self._end_sentence(event)
            case (
                events.PromptRead()
                | events.TextStreamed()
                | events.ThinkingStreamed()
                | events.ToolCallStreamed()
                | events.ToolStarted()
                | events.ToolPrinted()
                | events.ConfirmationAsked()
                | events.ConfirmationAnswered()
                | events.SessionStarted()
                | events.SystemPrompted()
                | events.SessionEnded()
                | events.StateChanged()
                | events.Titled()
                | events.Rewound()
                | events.Replaced()
                | events.FilesChanged()
                | events.FilesRestored()
            ):
                return ""  # not a sentence of its own
            case _:
                assert_never(event)

    def _end_thought(self) -> str:
        thought, self._thought = one_line(self._thought), ""
        return fold_line(f"Thought: {shorten(thought, MOST_THOUGHT, '...')}") if thought else ""

    def _note_sentence(
        self,
        event: events.RequestRetried | events.RequestStarted | events.Noticed | events.Compacted,
    ) -> str:
        if isinstance(event, events.RequestStarted):
            return fold_line(self._who + _sentence(routed_words(event))) if event.decision else ""
        if isinstance(event, events.Noticed):
            said = advised(event.text, event.remedies, separator=" ")
            return fold_line(f"{self._who}{event.level.capitalize()}: {one_line(said)}")
        if isinstance(event, events.Compacted):
            return fold_line(self._who + _sentence(compaction_words(event, "to")))
        return fold_line(self._who + _sentence(retry_words(event)))

    def _call_sentence(self, event: events.ToolFinished) -> str:
        about, is_answered = self._about.pop(event.id, ""), self._answered.pop(event.id, None)
        sentence = self._whole_call_sentence(event, about, is_answered=is_answered)
        self._arguments.pop(event.id, None)
        return sentence

    def _whole_call_sentence(
        self, event: events.ToolFinished, about: str, *, is_answered: bool | None
    ) -> str:
        if not self._session.config.ui.show_tool_calls:
            return ""
        call = f"{self._who}{printable(event.name)} {about}".strip()
        if not event.success and not streams_of(event):
            return self._failure_sentence(event, call, is_answered=is_answered)
        state, said = "done" if event.success else "failed", one_line(event.summary)
        if about and said.startswith(about):
            said = said.removeprefix(about).strip(" :")
        end = f", {said}" if said and said != state else ""
        first = fold_line(f"{call}: {state}{end.removesuffix('.')}.")
        return "\n".join([first, *self._details(event)])

    def _failure_sentence(
        self, event: events.ToolFinished, call: str, *, is_answered: bool | None
    ) -> str:
        """Print why a call failed: the beginning of what the model reads, and all of it where the work is shown whole."""
        state = "refused" if event.is_refused else "failed"
        if is_answered is not None and (event.is_refused or not is_answered):
            return fold_line(f"{call}: {state if event.is_refused else NOT_RUN}.")
        if self._session.view.is_verbose:
            return "\n".join([fold_line(f"{call}: {state}."), *self._details(event)])
        said = advised(event.output[:MOST_MESSAGE], event.remedies, separator=" ")
        why = one_line(said).removesuffix(".")
        return filled(shorten(f"{call}: {state}{f', {why}' * bool(why)}.", MOST_FAILURE, "..."))

    def _details(self, event: events.ToolFinished) -> list[str]:
        is_whole, given = self._session.view.is_verbose, self._arguments.get(event.id, "")
        if self._who and not is_whole:
            return []
        lines = detail_of(event, WIDTH - 2, ASCII, is_whole=is_whole).lines
        if is_whole and given and not has_diff(event):
            lines = [*output_lines(given, WIDTH - 2), *lines]
        return [f"  {line}" for line in lines]

    def _ending_sentence(self, content: str) -> str:
        ending, _ = ending_of(content)
        if ending and not content.startswith(FAILED):
            ending = f"{ending}, after {duration(self._watch.worked_seconds)}"
        denial = denial_of(content)
        hint = fold_line(own_shell_hint(denial, command_of(content)) + ".") if denial else ""
        return "\n".join(filter(None, [*self._typed.finish(), fold_line(_sentence(ending)), hint]))

    def _end_sentence(self, event: events.TurnFinished) -> str:
        message = advised(event.message, event.remedies)
        ends = {"done": "", "interrupted": "Stopped.", "error": f"Error: {message}"}
        sentences = [*self._typed.finish()]
        if event.reason == "error" and not self._session.view.is_verbose:
            sentences.append(failure_sentence(message))
        else:
            sentences.append(fold_line(printable(ends.get(event.reason, message))))
        if self._session.config.ui.show_token_usage and event.usage.input_tokens:
            seconds = max(0.0, event.duration_seconds - self._watch.asked_seconds)
            used = usage_line(event.usage, seconds, "").replace("  ", ", ")
            sentences.append(f"({used})")
        return "\n".join(filter(None, sentences))


def fold_line(text: str) -> str:
    """Break prose at the width of the plain screen."""
    return "\n".join(fold(text, WIDTH))


def failure_sentence(message: str) -> str:
    """Return the words for an error: of what a provider said at length the beginning, then what to do."""
    return fold_line(f"Error: {cut_message(printable(message), CUT)}")


def filled(text: str) -> str:
    """Break prose as `fold_line` does, but within a word where a line would stay half empty."""
    lines = fold(text, WIDTH)
    is_full = all(len(line) > WIDTH * 2 // 3 for line in lines[:-1])
    return "\n".join(lines if is_full else wrap(text, WIDTH))


def fold_prose(markup: str) -> str:
    """Break the prose in Markdown; code stays as it is."""
    lines: list[str] = []
    is_code = False
    for line in markup.split("\n"):
        is_fence = line.lstrip().startswith(("```", "~~~"))
        is_code = is_code != is_fence
        lines.append(line if is_fence or is_code or line.startswith("    ") else fold_line(line))
    return "\n".join(lines)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].removesuffix('.')}." if words else ""
