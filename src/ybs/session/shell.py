"""The `!command`: run what the person typed and put its output before the model."""

from itertools import count
from typing import TYPE_CHECKING

from ybs.core.errors import ToolError
from ybs.core.events import Emit, ToolPrinted

if TYPE_CHECKING:
    from ybs.session.wiring import Rooms

USAGE = "Usage: !COMMAND   runs COMMAND in the project's folder and shows its output to the model"
_ids = count(1)


async def injected(rooms: "Rooms", command: str, emit: Emit) -> str:
    """Run the command and return the words to send to the model (design section 6)."""
    call_id = f"typed_{next(_ids)}"
    try:
        result = await rooms.run_typed(
            command, lambda text: emit(ToolPrinted(id=call_id, text=text))
        )
    except ToolError as error:
        return f"[Shell command failed]\nCommand: {command}\nError: {error}"
    return f"[Shell command output]\nCommand: {command}\n{result}"
