"""Answers of a server, repaired part by part before the SDK validates them.

The SDK validates a page of tools, a result or a message as one, and loses all of it for one bad part. A transport is wrapped
here: what does not validate is taken apart, a bad field or part is left out by name, and the rest is passed on.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    PROTOCOL_VERSION_META_KEY,
    REQUEST_TIMEOUT,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
    methods,
)
from pydantic import ValidationError

from ybs.config.parameters import fitting
from ybs.config.tree import is_list, is_object
from ybs.tools.mcp.listed import cleaned

#: Where the parts of a result stand.
_PARTS: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "tools/call": "content",
    "resources/read": "contents",
    "prompts/get": "messages",
}
#: Fields without which a part says nothing; any other one is left out if it does not validate.
_ESSENTIAL: Final = frozenset(
    {"name", "inputSchema", "uri", "uriTemplate", "type", "text", "data", "mimeType", "blob", "resource"}
    | {"role", "content", "capabilities", "serverInfo", "protocolVersion", "isError"}
)  # fmt: skip
_KINDS: Final = ("text", "image", "audio", "resource", "resource_link")
#: A result that is not an object is passed on in one.
_BARE: Final = "ybs/bare"
_CANCELLED: Final = "notifications/cancelled"
#: What the newest version of the protocol requires of every result, and older ones pass over.
_REQUIRED: Final[Mapping[str, Any]] = {
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
}
_OLDEST: Final = "2025-11-25"  # what the SDK assumes before a version is agreed on
_MOST_SHOWN: Final = 2_000
#: How the SDK begins what it says in place of an answer that never came.
_OF_THE_SDK: Final = "SSE stream"

_Fits = Callable[[dict[str, Any]], bool]


def messages_of(data: bytes | str) -> list[JSONRPCMessage]:
    """Return the messages in a line or a body: none for what is not a message, several for a batch."""
    try:
        return [jsonrpc_message_adapter.validate_json(data, by_name=False)]
    except ValueError:
        pass
    text = data.decode("utf-8-sig", errors="replace") if isinstance(data, bytes) else data
    try:
        found: Any = without_halves(json.loads(text.removeprefix("\ufeff")))
    except (ValueError, RecursionError):
        return []
    several: list[Any] = found if is_list(found) else [found]
    repaired = (_message(each) for each in several if is_object(each))
    return [each for each in repaired if each is not None]


def without_halves(value: Any) -> Any:
    """Return JSON data with U+FFFD in place of halves of surrogate pairs, which no encoder takes."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return json.loads(whole)
    return value


def _message(found: Mapping[str, Any]) -> JSONRPCMessage | None:
    """Return an object as a message; None where it is not one."""
    number = found.get("id")
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    fixed: dict[str, Any] = {**found, "jsonrpc": "2.0", "id": number}
    if "method" not in found:
        error, result = found.get("error"), found.get("result")
        if error is not None:
            fixed = {"jsonrpc": "2.0", "id": number, "error": _error(error)}
        elif "result" in found:
            bare = {} if result == [] else {_BARE: result}  # PHP writes [] for {}
            fixed["result"] = result if is_object(result) else bare
    elif number is None:
        del fixed["id"]
    try:
        return jsonrpc_message_adapter.validate_python(fixed, by_name=False)
    except ValidationError:
        return None


def _error(error: Any) -> dict[str, Any]:
    if not is_object(error):
        return {"code": INTERNAL_ERROR, "message": _shown(error)}
    code, message = error.get("code"), error.get("message")
    return {
        "code": code if isinstance(code, int) else INTERNAL_ERROR,
        "message": message if isinstance(message, str) else _shown(message or error),
        "data": error.get("data"),
    }


class TolerantTransport:
    """A transport of the SDK whose answers are repaired. `left_out` names the parts of lists that cannot be used."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.left_out: list[str] = []
        self._asked: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._version = _OLDEST

    async def __aenter__(self) -> tuple[Any, Any]:
        read, write = await self._inner.__aenter__()
        return _Looked(read, self.repaired), _Looked(write, self.noted)

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)

    def noted(self, item: Any) -> Any:
        """Return what is sent. What a request asks for is remembered until it is answered or cancelled."""
        message = item.message
        if isinstance(message, JSONRPCRequest):
            self._asked[str(message.id)] = message.method, message.params or {}
        elif isinstance(message, JSONRPCNotification) and message.method == _CANCELLED:
            self._asked.pop(str((message.params or {}).get("requestId")), None)
        return item

    def repaired(self, item: Any) -> Any:
        """Return the message, with an answer as the SDK takes it."""
        if not isinstance(item, SessionMessage):
            return item
        message = item.message
        if isinstance(message, JSONRPCError):
            message = self._refusal(message)
        elif isinstance(message, JSONRPCResponse):
            method, params = self._asked.pop(str(message.id), ("", {}))
            result = self._result(method, params, message.result)
            message = message.model_copy(update={"result": result})
        return SessionMessage(message, item.metadata)

    def _refusal(self, message: JSONRPCError) -> JSONRPCError:
        """Return an error with its request, and with a code that is not one of those that the SDK uses for its own."""
        number, error = message.id, message.error
        if number is None and len(self._asked) == 1:  # it could not read the only request there is
            name = next(iter(self._asked))
            number = int(name) if name.isdecimal() else name
        self._asked.pop(str(number), None)
        is_theirs = not error.message.startswith(_OF_THE_SDK)
        if error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT) and is_theirs:
            error = ErrorData(code=INTERNAL_ERROR, message=error.message, data=error.data)
        return JSONRPCError(jsonrpc="2.0", id=number, error=error)

    def _result(
        self, method: str, params: Mapping[str, Any], result: dict[str, Any]
    ) -> dict[str, Any]:
        meta: Any = params.get("_meta")
        asked = meta.get(PROTOCOL_VERSION_META_KEY) if is_object(meta) else None
        check = _Check(method, asked or self._version)
        if method == "initialize":
            result = _greeting(result, check.fits)
            self._version = str(result.get("protocolVersion"))
            return result
        if method == "tools/list":  # the SDK refuses a whole result for its output schema
            result = _without_output_schemas(result)
        key = _PARTS.get(method)
        if key is None or check.fits(result) or "inputRequests" in result:
            return result
        return self._parted(check, key, params, result)

    def _parted(
        self, check: "_Check", key: str, params: Mapping[str, Any], result: dict[str, Any]
    ) -> dict[str, Any]:
        """Return a result with the parts that validate, and words in place of content that does not."""
        parts: Any = result.get(key, result.get(_BARE))
        rest = {name: value for name, value in result.items() if name not in (key, _BARE)}
        whole = (
            _trimmed(each, lambda some: check.fits({**some, key: []}))
            for each in (rest, {**rest, **_REQUIRED})
        )
        head = next((each for each in whole if each is not None), {**_REQUIRED})

        def fits(part: dict[str, Any]) -> bool:
            return check.fits({**head, key: [part]})

        kept: list[dict[str, Any]] = []
        several: list[Any] = parts if is_list(parts) else [parts] * (parts is not None)
        for part in several:
            for each in _drafts(check.method, part, params):
                found = _trimmed(each, fits)
                if found is None and not check.method.endswith("/list"):
                    found = _trimmed(_in_words(check.method, each, params), fits)
                if found is not None:
                    kept.append(found)
                else:
                    self.left_out.append(f"{_name_of(each)}: {check.why}")
        unused = rest.get("structuredContent")
        if unused is not None and "structuredContent" not in head and not kept:
            kept.append({"type": "text", "text": _shown(unused, most=None)})
        return {**head, key: kept}


class _Check:
    """Validates results as the SDK does. `why` says what was wrong with the last one that did not validate."""

    def __init__(self, method: str, version: str) -> None:
        self.method, self._version = method, version
        self.why = ""

    def fits(self, result: dict[str, Any]) -> bool:
        """Return whether a result validates."""
        try:
            methods.parse_server_result(self.method, self._version, result)
        except ValidationError as error:
            self.why = _why(error)
            return False
        except (KeyError, ValueError):
            return True  # of a version or a method that the SDK does not check
        except RecursionError:
            self.why = "it is nested too deeply"
            return False
        return True


def _why(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    place = [str(each) for each in first["loc"]]
    index = next((at for at, each in enumerate(first["loc"]) if isinstance(each, int)), -1)
    return cleaned(f"{'.'.join(place[index + 1 :])}: {first['msg']}".removeprefix(": "), 200)


def _trimmed(part: dict[str, Any], fits: _Fits) -> dict[str, Any] | None:
    """Return a part without the fields that keep it from validating; None where it does not without any of them either."""
    if fits(part):
        return part
    part = {name: value for name, value in part.items() if value is not None}
    spare = [name for name in part if name not in _ESSENTIAL]
    drafts = ({k: v for k, v in part.items() if k != name} for name in spare)
    least = {name: value for name, value in part.items() if name in _ESSENTIAL}
    return next((draft for draft in (part, *drafts, least) if fits(draft)), None)


def _drafts(method: str, part: Any, params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a part with what servers often leave out; a message with several blocks as several messages."""
    if not is_object(part):
        return [{"name": _shown(part, most=60)} if method.endswith("/list") else _words(part)]
    draft = dict(part)
    schema: Any = draft.get("inputSchema")
    if method == "tools/list" and is_object(schema):
        kind = schema.get("type")
        is_open = kind is None or (is_list(kind) and "object" in kind)
        draft["inputSchema"] = fitting({**schema, "type": "object"} if is_open else schema)
    if method == "resources/read":
        draft.setdefault("uri", params.get("uri", ""))
    if method != "prompts/get":
        return [draft]
    role = draft.get("role") if draft.get("role") in ("user", "assistant") else "user"
    content: Any = draft.get("content")
    blocks: list[Any] = content if is_list(content) else [content]
    return [{"role": role, "content": each if is_object(each) else _words(each)} for each in blocks]


def _in_words(method: str, part: dict[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return text that stands for content which does not validate."""
    if method == "prompts/get":
        return {"role": part["role"], "content": _described(part["content"])}
    if method == "resources/read":
        return {"uri": str(params.get("uri", "")), "text": _described(part)["text"]}
    return _described(part)


def _described(block: Mapping[str, Any]) -> dict[str, Any]:
    kind, text = block.get("type"), block.get("text")
    if isinstance(text, str) and kind in ("text", None):
        return {"type": "text", "text": text}
    if kind == "text" and text is not None:
        return _words(text)
    fault = "is not valid" if kind in _KINDS else "is not one of MCP's"
    return _words(f"[content of the kind {_shown(kind, most=60)}, which {fault}: {_shown(block)}]")


def _words(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value if isinstance(value, str) else _shown(value, most=None)}


def _shown(value: Any, *, most: int | None = _MOST_SHOWN) -> str:
    """Return data as text: JSON, cut at so many characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if most is None or len(text) <= most else text[: most - 1] + "…"


def _name_of(part: Mapping[str, Any]) -> str:
    named = (part.get(name) for name in ("name", "uri", "uriTemplate", "title"))
    return cleaned(
        next((each for each in named if isinstance(each, str) and each), "(no name)"), 100
    )


def _greeting(result: dict[str, Any], fits: _Fits) -> dict[str, Any]:
    """Return the answer to `initialize`, with a name for a server that does not say its own."""
    if fits(result):
        return result
    info: Any = result.get("serverInfo")
    capabilities: Any = result.get("capabilities")
    said: dict[str, Any] = dict(info) if is_object(info) else {}
    can: dict[str, Any] = dict(capabilities) if is_object(capabilities) else {}
    fixed = {
        **result,
        "serverInfo": {name: str(said.get(name) or "") for name in ("name", "version")},
        "capabilities": {
            name: value if is_object(value) else {}
            for name, value in can.items()
            if value not in (None, False)
        },
    }
    bare = {name: dict[str, Any]() for name in fixed["capabilities"]}
    return _trimmed(fixed, fits) or _trimmed({**fixed, "capabilities": bare}, fits) or result


def _without_output_schemas(result: dict[str, Any]) -> dict[str, Any]:
    tools: Any = result.get("tools")
    if not is_list(tools):
        return result
    return {
        **result,
        "tools": [
            {name: value for name, value in each.items() if name != "outputSchema"}
            if is_object(each)
            else each
            for each in tools
        ],
    }


class _Looked:
    """One of the two streams of the SDK, each item of which passes through a function."""

    def __init__(self, inner: Any, look: Callable[[Any], Any]) -> None:
        self._inner, self._look = inner, look

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def receive(self) -> Any:
        """Return the next item."""
        return self._look(await self._inner.receive())

    async def send(self, item: Any) -> None:
        """Send an item."""
        await self._inner.send(self._look(item))

    def __aiter__(self) -> "_Looked":
        return self

    async def __anext__(self) -> Any:
        return self._look(await self._inner.__anext__())

    async def __aenter__(self) -> "_Looked":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._inner.aclose()
