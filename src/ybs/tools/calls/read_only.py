"""A run that may only read: what nobody was asked about is run so first, and again when the person says yes."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from ybs.core.ports import ToolOutput
from ybs.security.sandbox.launch import Need

#: Why a tool is asked about that has no such way to run.
UNHELD = Need("the tool cannot be kept from writing")


class ReadOnlyRun(Struct, frozen=True, kw_only=True):
    """What came of it. `need` says why reading was not enough; None where it was."""

    output: ToolOutput
    need: Need | None = None


@runtime_checkable
class ReadOnlyFirst(Protocol):
    """A tool that can run a call so that it changes nothing, whatever the call is."""

    async def run_read_only(self, arguments: Any, print_live: Callable[[str], None]) -> ReadOnlyRun:
        """Run the call so. Raises ToolError as `run` does."""
        ...


def held_back(ran: ReadOnlyRun, need: Need, reason: str) -> ToolOutput:
    """Return the output of a run that was not repeated, with the reason for the model."""
    said = f"{ran.output.output}\n" if ran.output.output else ""
    text = f"{said}[nothing was changed: {need.reason}. It was not run with more rights: {reason}]"
    return replace(ran.output, output=text, is_error=True)
