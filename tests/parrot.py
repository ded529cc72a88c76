"""The server of examples/provider, scripted; and that example installed for this process."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from installing import install
from scripted import ScriptedServer
from ybs.core.messages import AssistantMessage, StopReason, Text, Thinking, ToolCall
from ybs.testing import ScriptedAnswer

EXAMPLE = Path(__file__).parents[1] / "examples" / "provider"
_DONE: dict[StopReason, str] = {
    "end": "end",
    "tool_calls": "end",
    "length": "full",
    "refusal": "no",
    "cut_off": "end",
}


class ParrotWire:
    """JSON lines at `/birds/NAME/talk`."""

    name = "parrot"
    chat_path = "/talk"
    base_path = ""
    content_type = "application/x-ndjson"
    end_mark = b""

    def said_by_path(self, path: str) -> Mapping[str, Any]:
        """Return the model."""
        return {"model": path.split("/")[-2]}

    def is_streamed(self, body: Mapping[str, Any]) -> bool:
        """Return whether `stream` is true."""
        return body.get("stream") is True

    def frames(
        self, answer: ScriptedAnswer, message: AssistantMessage, body: Mapping[str, Any]
    ) -> Sequence[Mapping[str, Any]]:
        """Make a line for each piece, and the last one."""
        lines: list[Mapping[str, Any]] = []
        for part in message.content:
            match part:
                case Text():
                    lines += [{"says": piece} for piece in answer.chunks(part.text)]
                case Thinking():
                    lines += [{"thinks": piece} for piece in answer.chunks(part.text)]
                case ToolCall():
                    taken = part.invalid or msgspec.json.decode(part.arguments)
                    lines.append({"asks": {"id": part.id, "tool": part.name, "with": taken}})
        usage = message.usage
        done = {"done": _DONE[message.stop_reason], "read": usage.input_tokens}
        return [*lines, {**done, "written": usage.output_tokens}]

    def whole(
        self, answer: ScriptedAnswer, message: AssistantMessage, body: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Make one line of all."""
        made: dict[str, Any] = {}
        for line in self.frames(answer, message, body):
            made = {**made, **line, "says": made.get("says", "") + line.get("says", "")}
        return made

    def frame(self, *values: bytes) -> bytes:
        """Make one line."""
        return b" ".join(values) + b"\n"

    def error(self, status: int, kind: str, message: str) -> Mapping[str, Any]:
        """Make the error object."""
        return {"error": {"message": message, "type": kind, "code": status}}

    def facts(self, path: str, models: Sequence[str]) -> Mapping[str, Any] | None:
        """Answer the list of models."""
        if not path.endswith("/birds"):
            return None
        return {"birds": [{"name": name} for name in models]}


class ParrotServer(ScriptedServer):
    """A scripted server of the example."""

    wire = ParrotWire()


def install_parrot(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process find the example as if it were installed."""
    install(EXAMPLE, folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr("ybs.config.installed.site_folders", lambda: [str(folder)])
