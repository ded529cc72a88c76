"""A provider that ybs does not know, and the wire format of its server: JSON lines, at a path with the model's name.

The server takes `{"rules", "talk": [{"who", "says"}], "tools"}` and answers with lines such as `{"thinks": "hm"}`,
`{"says": "hello"}`, `{"asks": {"id", "tool", "with"}}` and at last `{"done": "end", "read": 12, "written": 3}`.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from ybs.core.events import Event
from ybs.core.messages import AssistantMessage, Message, StopReason, ToolResult, UserMessage
from ybs.core.ports import Request
from ybs.providers.registry import Provider
from ybs.providers.wire.adapter import (
    EncodedHistory,
    Frame,
    Framing,
    ModelListing,
    RequestOptions,
    Said,
    without,
)
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.loose_json import as_object, as_text, count_at
from ybs.providers.wire.quirks import Quirks

STOP_REASONS: dict[str, StopReason] = {"end": "end", "full": "length", "no": "refusal"}


class ParrotAdapter:
    """One wire format: a body of a request, events of the lines that come back, and a few facts. No I/O."""

    name = "parrot"
    framing: Framing = "ndjson"
    messages_field = "talk"
    listing = ModelListing("/birds", "birds", "name")
    quirks = Quirks()

    def __init__(self) -> None:
        self._history = (
            EncodedHistory()
        )  # of a conversation that has grown, only what is new is encoded

    @staticmethod
    def base(endpoint: str) -> str:
        return without(endpoint, "/birds")

    def path(self, options: RequestOptions) -> str:
        return f"/birds/{quote(options.model)}/talk"

    def headers(self, key: str | None) -> dict[str, str]:
        return {"x-seed": key} if key else {}

    def encode(self, request: Request, options: RequestOptions) -> dict[str, Any]:
        tools = [
            {"tool": each.name, "about": each.description, "takes": each.parameters}
            for each in request.tools
        ]
        return {
            "rules": request.system,
            "talk": self._history.said(request.messages, add, first=[]),
            "tools": tools,
            "most": options.max_tokens,
            "stream": options.stream,
        }

    def decode(self, frame: Frame, draft: Assembly) -> Iterator[Event]:
        yield from draft.add_thinking(as_text(frame.get("thinks")))
        yield from draft.add_text(as_text(frame.get("says")))
        if asked := as_object(frame.get("asks")):
            taken = asked.get("with")
            yield from draft.add_call(
                id=as_text(asked.get("id")),
                name=as_text(asked.get("tool")),
                arguments=as_text(taken) or as_object(taken),
            )
        if done := as_text(frame.get("done")):
            draft.set_usage(
                input_tokens=count_at(frame, "read"), output_tokens=count_at(frame, "written")
            )
            draft.stop(STOP_REASONS.get(done, "end"))
            draft.end()


def add(said: Said, messages: Sequence[Message], place: int) -> None:
    match message := messages[place]:
        case UserMessage():
            said.append({"who": "person", "says": message.text})
        case AssistantMessage():
            asks = [
                {"id": call.id, "tool": call.name, "with": call.arguments} for call in message.calls
            ]
            said.append({"who": "parrot", "says": message.text, "asks": asks})
        case ToolResult():
            said.append({"who": message.name, "says": message.output, "for": message.call_id})


PROVIDER = Provider(
    name="parrot",
    wire="parrot",
    endpoint="https://parrot.example",
    model="ara",
    key_variables=("PARROT_SEED",),
)
