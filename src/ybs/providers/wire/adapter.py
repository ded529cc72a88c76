"""The interface of a wire format: two pure functions and the few facts that the transport needs.

A new format is one class with these members and one entry point (`ybs.wires`), checked by `tests/contracts`; it does no
I/O, and what it remembers of the last request (`History`) only saves work. `RemoteModel` joins it with the HTTP client.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, cast

import msgspec
from msgspec import Raw, Struct

from ybs.config.schema import Effort
from ybs.core.events import Event
from ybs.core.memo import alike
from ybs.core.messages import Message
from ybs.core.ports import Request, ToolSpec
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.quirks import Quirks

#: One decoded JSON object of a stream, or a whole answer that was not streamed.
Frame: TypeAlias = dict[str, Any]
#: How frames are separated. `sse`: `data:` lines; `ndjson`: one JSON object per line.
Framing: TypeAlias = Literal["sse", "ndjson"]


class RequestOptions(Struct, frozen=True, kw_only=True):
    """What a request asks for beside the conversation.

    `max_tokens` is already fitted to `window` (both in tokens). `temperature` is None where it was not set
    or the model takes none. `stream` is false when the server gives its answers in one piece. `keep_minutes` is how long a
    local server is to keep the model in memory; None leaves it to the server. `effort` is how hard the model is to think; None
    leaves that to the model. `grammar` is llama.cpp's: what the answer may be; empty: anything. The answer is to be JSON of `answer_schema` where that is given. `account` marks address and key where
    thinking is sealed for them.
    """

    model: str
    max_tokens: int = 4096
    temperature: float | None = None
    stream: bool = True
    window: int = 32_768
    keep_minutes: float | None = None
    effort: Effort | None = None
    answer_schema: Raw | None = None
    grammar: str = ""
    account: str = ""
    quirks: Quirks = Quirks()


class ModelListing(Struct, frozen=True):
    """Where a server lists its models: the path, the field that holds the list, and that of a model's name."""

    path: str = "/models"
    field: str = "data"
    name: str = "id"


class Adapter(Protocol):
    """One wire format. Nothing that an instance remembers changes an answer, so one serves every request."""

    #: The format's name, as in `providers.NAME.wire`; it marks the thinking it makes.
    name: str
    #: How the frames of a stream are separated.
    framing: Framing
    #: The field of the body that holds the conversation, one item after the other.
    messages_field: str
    #: Where a server of this format lists its models.
    listing: ModelListing
    #: What a server of this format wants of which nothing else is known.
    quirks: Quirks

    @staticmethod
    def base(endpoint: str) -> str:
        """Return the base address for the paths; it may be given with or without a version and the path of the call."""
        ...

    def path(self, options: RequestOptions, /) -> str:
        """Return the path of the chat call below the base, such as `/chat/completions`."""
        ...

    def encode(self, request: Request, options: RequestOptions) -> dict[str, Any]:
        """Make the JSON body of a request: plain data and `msgspec.Raw`, encodable by msgspec.

        A message that is the same object as in the last body is taken to be unchanged. `quirks.extra_body` lies over it (`with_extra`).
        """
        ...

    def decode(self, frame: Frame, draft: Assembly) -> Iterable[Event]:
        """Put one frame into the draft and give what is worth showing.

        A frame is a piece of a stream or a whole answer; both go through here. Frames that say `error` do
        not come here: the HTTP client turns them into a ModelError. Unknown frames are passed over.
        """
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """Make the headers of the format, with the key where there is one: a bearer token, as most have it."""
        return {"authorization": f"Bearer {key}"} if key else {}


def with_extra(body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body with the person's fields over it: objects are joined, all else is replaced."""
    joined = body | dict(extra)
    for name in body.keys() & extra.keys():
        own, more = body[name], extra[name]
        if isinstance(own, dict) and isinstance(more, dict):
            joined[name] = with_extra(cast("dict[str, Any]", own), cast("dict[str, Any]", more))
    return joined


def without(endpoint: str, *endings: str) -> str:
    """Return an address without these endings, each taken away where it stands at the end then."""
    for ending in endings:
        endpoint = endpoint.removesuffix(ending)
    return endpoint


def with_path(endpoint: str, path: str) -> str:
    """Return an address as it is where it has a path, else with this one."""
    return endpoint if "/" in endpoint.split("://", 1)[1] else f"{endpoint}{path}"


def function_tool(tool: ToolSpec) -> dict[str, Any]:
    """Return a tool as chat completions and Ollama describe it."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def named_schema(schema: Raw) -> dict[str, Any]:
    """Return the schema of an answer as OpenAI names one; it is enforced where it is as strict as that needs."""
    return {"name": "answer", "schema": schema, "strict": _is_strict(msgspec.json.decode(schema))}


def _is_strict(schema: Any) -> bool:
    """Return whether every object of a schema has all its properties and no other."""
    if isinstance(schema, list):
        return all(map(_is_strict, cast("list[Any]", schema)))
    if not isinstance(schema, dict):
        return True
    rules = cast("dict[str, Any]", schema)
    if rules.get("type") == "object":
        has_all = set(rules.get("required", ())) == set(rules.get("properties", ()))
        if rules.get("additionalProperties") is not False or not has_all:
            return False
    return all(map(_is_strict, rules.values()))


#: Messages as a wire format writes them.
Said: TypeAlias = list[dict[str, Any]]
#: Writes one of the messages, by its place. What is said already may be replaced at the end; no part of it may change.
Add: TypeAlias = Callable[[Said, Sequence[Message], int], None]


class EncodedHistory:
    """Remembers the last conversation, whose messages never change and are known by their identity."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._said: Said = []
        self._terms: object = None

    def said(
        self, messages: Sequence[Message], add: Add, *, first: Said, terms: object = None
    ) -> Said:
        """Return what `add` writes behind `first`. With other `terms`, on which that depends, all is written anew."""
        messages = list(messages)
        known = alike(self._messages, messages)
        if known < len(self._messages) or terms != self._terms:
            known = 0  # compacted, cleared, or for another server
        said = [*(self._said if known else first)]
        for place in range(known, len(messages)):
            add(said, messages, place)
        self._messages, self._said, self._terms = messages, said, terms
        return [*said]
