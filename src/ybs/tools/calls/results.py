"""The result of a call: what a tool returned, checked, marked, cut to size, with notes for the model."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from ybs.core.changes import FileChange
from ybs.core.cutting import shortened, whole_words
from ybs.core.errors import ToolError
from ybs.core.messages import Image, ToolCall, ToolResult
from ybs.core.ports import ToolOutput
from ybs.security.marks import marked, note_of
from ybs.tools.calls.cut import cut
from ybs.tools.calls.supervise import checked

_HINT = "Ask for less: a part, or a narrower pattern"
_MOST_SUMMARY, _MOST_TITLE = 1_000, 200  # characters
_MOST_DISPLAY = 8_000_000  # bytes


def result_of(
    call: ToolCall, output: ToolOutput, notes: Sequence[str], *, most_chars: int
) -> ToolResult:
    """Return the result of a call that ended with this output. Raises ToolError where it is not what a tool returns."""
    if problem := _fault_of(output):
        raise ToolError(f"{call.name} failed by a mistake of its own: {problem}")
    display, note = _encoded(output, call.name)
    said, hidden = marked(output.output)
    notes = [*notes, *filter(None, (note, note_of(hidden)))]
    remarks = cut("".join(f"\n[note: {note}]" for note in notes), most_chars // 2)
    text = cut(said, max(most_chars - len(remarks), 0), _HINT) + remarks
    return ToolResult(
        call_id=call.id,
        name=call.name,
        output=_sound(text),
        is_error=output.is_error,
        summary=_sound(whole_words(output.summary, _MOST_SUMMARY)),
        display=display,
        images=output.images,
        changes=output.changes,
    )


def failed(call: ToolCall, message: str, summary: str, *, most_chars: int) -> ToolResult:
    """Return the result of a call that failed, or was not made, for a reason."""
    message = _sound(message)
    display = {"success": False, "error": message}
    summary = summary or shortened(message.partition("\n")[0], _MOST_TITLE)
    output = ToolOutput(output=message, summary=summary, display=display, is_error=True)
    return result_of(call, output, (), most_chars=most_chars)


def _fault_of(output: Any) -> str:
    """Return the problem of a tool's output; empty for a sound one."""
    if not isinstance(output, ToolOutput):
        return f"it returned {type(output).__name__}, not ToolOutput"
    texts: tuple[Any, ...] = (output.output, output.summary)
    if not all(isinstance(text, str) for text in texts):
        return "its output or summary is not text"
    images: Any = output.images
    if not (isinstance(images, tuple) and all(isinstance(each, Image) for each in images)):  # pyright: ignore[reportUnknownVariableType] - anybody's tool
        return "its images are no tuple of Image"
    changes: Any = output.changes
    if not (isinstance(changes, tuple) and all(isinstance(each, FileChange) for each in changes)):  # pyright: ignore[reportUnknownVariableType] - anybody's tool
        return "its changes are not a tuple of FileChange"
    return ""


def _encoded(output: ToolOutput, name: str) -> tuple[Raw, str]:
    """Return the result object as JSON, or in its place whether the call succeeded, and a note that says why."""
    try:
        display = checked(lambda: msgspec.json.encode(output.display), name)
    except ToolError as error:
        note = f"its result object is lost: {error}"
    else:
        if len(display) <= _MOST_DISPLAY:
            return Raw(display), ""
        note = f"its result object is lost: {len(display):,} bytes are too many"
    return Raw(msgspec.json.encode({"success": not output.is_error})), note


def _sound(text: str) -> str:
    """Return the text without half characters, which no file and no provider takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
