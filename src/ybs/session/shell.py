"""The `!command`: run what the person typed and put its output before the model."""

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from ybs.core.errors import ToolError
from ybs.core.events import Emit, ToolPrinted
from ybs.tools.calls.cut import cut

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


def spoken(result: Mapping[str, Any], most_chars: int) -> str:
    """Write down how a command ended, in the specification's form (section 6.4)."""
    if result.get("running"):
        lines = [f"Still running, in the background as {result['id']}"]
    elif not result["timed_out"]:
        lines = [f"Exit code: {result['exit_code']}"]
    else:
        lines = ["Stopped: it took longer than its time limit."]
    room = most_chars // 2
    lines += ["", "Output:", cut(result["stdout"].strip("\n"), room)]
    if errors := result.get("stderr", "").strip("\n"):
        lines += ["", "Stderr:", cut(errors, room)]
    if file := result.get("output_file"):
        lines += ["", f"The whole output is in {file}"]
    return "\n".join(lines)
