"""Whether what was not allowed stood in the way of a turn, as far as its calls show it (ADR 0019)."""

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from ybs.core.events import Event, ToolFinished, ToolStarted

if TYPE_CHECKING:
    from ybs.config.schema import Safety

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

    def blocked(self, safety: "Safety") -> list[str]:
        """Name the tools of which every call was refused. A command that only reads needs no leave, so it shows nothing."""
        blocked = self._refused - self._done
        if _SHELL in blocked and not all(_only_reads(text, safety) for text in self._commands):
            blocked.discard(_SHELL)
        return sorted(blocked)


def _has_run(event: ToolFinished) -> bool:
    return event.success or _read(event.display, _Ended).exit_code is not None


def _only_reads(command: str, safety: "Safety") -> bool:
    from ybs.security.policy.command_case import CommandCase  # only after a refusal

    return not CommandCase(command, safety).unlisted


def _read(data: Raw, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError:  # what a model wrote may be anything
        return kind()
