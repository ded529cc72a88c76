"""Run one prompt without a terminal and end with the exit code that says how it went."""

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from ybs.core.decoding import from_json
from ybs.core.envelope import Envelope
from ybs.core.errors import ConfigError, ModelError, YbsError
from ybs.core.events import Event, Noticed, SessionStarted, ToolFinished, ToolStarted, TurnFinished
from ybs.core.remedies import Remedy
from ybs.frontends.headless.advice import advised, refuse, told
from ybs.frontends.headless.output import (
    Format,
    Pipe,
    Result,
    RunOutput,
    UsageError,
    counts,
    make_output,
    noticed,
    read_piped,
    tell,
    whole_prompt,
)

if TYPE_CHECKING:
    from ybs.session.options import Options
    from ybs.session.reply import Outcome
    from ybs.session.session import Session

    Opener: TypeAlias = Callable[[Options], Session]
    from ybs.config.schema import SafetySettings


INTERRUPTED = 130
#: Signals that end a run, and the exit code each leads to.
SIGNALS = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: 143, signal.SIGHUP: 129}


def run_once(
    options: "Options",
    *,
    prompt: str | None,
    output_format: Format = "text",
    is_verbose: bool = False,
    is_command: bool = False,
    opener: "Opener | None" = None,
) -> int:
    """Take one turn and return the exit code. `opener` opens the session (another one in tests).

    `is_command`: the prompt is a command of the person's own, whose words are sent.
    """
    pipe = Pipe()
    output = make_output(output_format, pipe, is_verbose=is_verbose)
    try:
        piped = read_piped()
        words = whole_prompt(prompt, piped)
        session = opener(options) if opener else _open(options, is_piped=bool(piped))
    except UsageError as error:
        tell(f"ybs: {error}")
        return 2
    except YbsError as error:
        return fail(error, output)
    run = _Run(session, pipe, output, is_formed=options.output_schema is not None)
    code = asyncio.run(run.go(words, typed=prompt or "", is_command=is_command))
    if pipe.is_closed:
        forget_stdout()
    return code


def fail(error: YbsError, output: RunOutput) -> int:
    """Report an error that came before the turn, and return its exit code."""
    code = code_of(error)
    output.result(
        Result(result="", reason="error", is_error=True, exit_code=code, message=told(error))
    )
    return code


def code_of(error: YbsError) -> int:
    """Map an error to an exit code (design section 4)."""
    from ybs.agent.model_choice import NothingConfigured
    from ybs.session.options import BadOption
    from ybs.session.reply import NotAllowed, NotSent

    match error:
        case NothingConfigured():
            return 4
        case NotAllowed():
            return 5
        case BadOption() | NotSent():
            return 2
        case ConfigError():
            return 3
        case ModelError():
            return 75 if error.temporary else 4
        case _:
            return 1


def exit_code(finished: TurnFinished, *, is_blocked: bool) -> int:
    """Map the end of a turn to an exit code; `is_blocked`: it came to its end, but a refusal stood in the way (ADR 0019)."""
    match finished.reason:
        case "interrupted":
            return INTERRUPTED
        case "limit":
            return 6
        case "loop":
            return 7
        case "dry_run":
            return 0
        case "error":
            return 75 if finished.is_temporary else 4
        case "done":
            return 5 if is_blocked else 0


class _Run:
    """One turn of one session, with the signals that may end it."""

    def __init__(
        self, session: "Session", pipe: Pipe, output: RunOutput, *, is_formed: bool = False
    ) -> None:
        self._session, self._pipe, self._output = session, pipe, output
        self._is_formed = is_formed
        self._signal_code = 0
        self._begun = SessionStarted()
        self._refusals = Refusals()
        self._warnings: list[str] = []

    async def go(self, words: str, *, typed: str, is_command: bool = False) -> int:
        """Take the turn, write the result, and return the exit code. What was piped in names no files."""
        task = asyncio.current_task()
        self._pipe.when_closed(lambda: self._session.cancel() or (task and task.cancel()))
        from ybs.security.policy.confirm import Unattended  # the session has loaded both
        from ybs.session.reply import Reply

        self._session.attach(Unattended(refuse))
        self._session.subscribe(self._on_event)
        self._catch_signals()
        try:
            async with self._session as session:
                for warning in session.warnings:
                    tell(f"ybs: {warning}")
                outcome = await session.inbox.result_of(
                    words, typed=None if is_command else typed, is_for_model=not is_command
                )
        except YbsError as error:
            return fail(error, self._output)
        except asyncio.CancelledError:  # a second signal, or one before the turn began
            return self._signal_code or (1 if self._pipe.is_closed else INTERRUPTED)
        self._pipe.when_closed(lambda: None)  # nothing is left to be stopped
        if isinstance(outcome, Reply):  # the command has no words for the model
            return fail(YbsError(outcome.without_terminal(words).text), self._output)
        code = self._code(outcome)
        self._output.result(self._result(outcome, code))
        return 1 if self._pipe.is_closed and not self._signal_code else code

    def _code(self, outcome: "Outcome") -> int:
        if outcome.finished.reason == "interrupted" and self._signal_code:
            return self._signal_code
        blocked = outcome.refusals and self._refusals.blocked(self._session.config.safety)
        return exit_code(outcome.finished, is_blocked=bool(blocked))

    def _result(self, outcome: "Outcome", code: int) -> Result:
        finished = outcome.finished
        used = finished.usage + outcome.others
        # An answer that was to fit a schema and does not is not printed: who reads it wants JSON.
        text = outcome.json.decode() if self._is_formed else outcome.text
        return Result(
            result=text,
            reason=finished.reason,
            is_error=code != 0,
            exit_code=code,
            message=advised(finished.message, finished.remedies) or _refusal_note(outcome),
            steps=finished.steps,
            usage=counts(used),
            cost_usd=used.cost_usd,
            cost_is_partial=used.cost_is_partial,
            duration_seconds=round(finished.duration_seconds, 3),
            refusals=outcome.refusals,
            model=self._begun.config.get("model", ""),
            provider=self._begun.config.get("provider", ""),
            session=self._begun.session,
            warnings=tuple(self._warnings),
            structured_output=Raw(outcome.json) if outcome.json else UNSET,
        )

    def _on_event(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, SessionStarted):
            self._begun = event
        self._refusals.add(event)
        if isinstance(event, Noticed) and event.level != "info":
            self._warnings.append(noticed(event))
        self._output.event(envelope)

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        for number, code in SIGNALS.items():
            loop.add_signal_handler(number, self._stop, code, task)

    def _stop(self, code: int, task: asyncio.Task[int] | None) -> None:
        is_first, self._signal_code = not self._signal_code, code
        if not (is_first and self._session.cancel()) and task is not None:
            task.cancel()


def _refusal_note(outcome: "Outcome") -> str:
    if not outcome.refusals:
        return ""
    calls = "1 call was" if outcome.refusals == 1 else f"{outcome.refusals} calls were"
    return f"{calls} refused (see --allow, --add-dir and --mode)"


def _open(options: "Options", *, is_piped: bool) -> "Session":
    from ybs.commands.open import open_session

    session = open_session(replace(options, is_one_shot=True, is_piped=is_piped))
    review = session.loaded.review
    if review is not None and review.needs_question:
        tell(f"ybs: {advised('', (Remedy('trust_project'),))}.")
    return session


def forget_stdout() -> None:
    """Point standard output at nothing, so that Python's own flush at the end does not complain."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


_SHELL = "run_shell"


class _Ended(Struct):
    """What the result of run_shell says of a command that was run."""

    exit_code: int | None = None


class _Command(Struct):
    """The command among the arguments of run_shell."""

    command: str = ""


class Refusals:
    """Counts the calls of a turn by tool: the refused ones, and those that were carried out."""

    def __init__(self) -> None:
        self._refused: set[str] = set()
        self._done: set[str] = set()
        self._arguments: dict[str, Raw] = {}
        self._commands: list[str] = []

    def add(self, event: Event) -> None:
        """Take an event."""
        match event:
            case ToolStarted(name="run_shell"):
                self._arguments[event.id] = event.arguments
            case ToolFinished(is_refused=True):
                self._refused.add(event.name)
            case ToolFinished(name="run_shell") if _has_run(event):
                arguments = self._arguments.get(event.id, Raw(b"{}"))
                self._commands.append(_read(arguments, _Command).command)
            case ToolFinished(success=True):
                self._done.add(event.name)
            case _:
                pass

    def blocked(self, safety: "SafetySettings") -> list[str]:
        """Name the tools of which every call was refused. A command that only reads needs no leave, so it shows nothing."""
        blocked = self._refused - self._done
        if _SHELL in blocked and not all(_only_reads(text, safety) for text in self._commands):
            blocked.discard(_SHELL)
        return sorted(blocked)


def _has_run(event: ToolFinished) -> bool:
    return event.success or _read(event.display, _Ended).exit_code is not None


def _only_reads(command: str, safety: "SafetySettings") -> bool:
    from ybs.security.policy.command_case import CommandCase  # only after a refusal

    return not CommandCase(command, safety).unlisted


def _read(data: Raw, kind: type[Any]) -> Any:
    try:
        return from_json(data, kind)
    except msgspec.MsgspecError:  # what a model wrote may be anything
        return kind()
