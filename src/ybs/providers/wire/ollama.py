"""Ollama, by its own interface, which says how large the window is: https://docs.ollama.com/api."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from ybs.config.presets import CREDENTIALS
from ybs.core.errors import ConfigError, ProviderDown
from ybs.core.events import Event, Noticed
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Request
from ybs.core.remedies import Remedy
from ybs.providers.http.client import HttpClient, Patience, host_of
from ybs.providers.http.failures import NotServed
from ybs.providers.registry import Provider
from ybs.providers.wire.adapter import (
    Adapter,
    EncodedHistory,
    Frame,
    Framing,
    ModelListing,
    RequestOptions,
    Said,
    function_tool,
    with_extra,
    without,
)
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.effort import OSS_LEVELS, asked_level, nearest
from ybs.providers.wire.loose_json import as_list, as_object, as_text, count_at, thought_in
from ybs.providers.wire.needed_window import cut_notice
from ybs.providers.wire.pictures import base64_of, caption_of, pictures_before, without_pictures
from ybs.providers.wire.quirks import Quirks


class OllamaAdapter(Adapter):
    """Ollama's native chat, streamed as JSON lines."""

    name = "ollama"
    framing: Framing = "ndjson"
    messages_field = "messages"
    listing = ModelListing("/api/tags", "models", "name")
    quirks = Quirks(
        reasoning_fields=("thinking",),
        reasoning_sent_as="thinking",
        takes_window=True,
        # What does not fit is refused, with its size, instead of being cut; older servers do not know these fields.
        extra_body={"truncate": False, "shift": False},
    )

    def __init__(self) -> None:
        self._history = EncodedHistory()
        self._has_warned = False

    @staticmethod
    def base(endpoint: str) -> str:
        """Return the address without what follows the port."""
        return without(endpoint, "/api/chat", "/v1", "/api")

    def path(self, _options: RequestOptions) -> str:
        """Return the path of the call."""
        return "/api/chat"

    def encode(self, request: Request, options: RequestOptions) -> dict[str, Any]:
        """Make the request body.

        `num_ctx` is always sent: without it Ollama takes a small window and silently drops the beginning of what does not fit.
        """
        quirks = options.quirks
        settings: dict[str, Any] = {"num_ctx": options.window, "num_predict": options.max_tokens}
        if options.temperature is not None and quirks.accepts_temperature:
            settings["temperature"] = options.temperature
        body: dict[str, Any] = {
            "model": options.model,
            "messages": self._encode_messages(request, quirks),
        }
        if request.tools:
            body["tools"] = [function_tool(tool) for tool in request.tools]
        if level := asked_level(options):
            has_levels = options.model.startswith("gpt-oss")
            body["think"] = nearest(level, OSS_LEVELS) if has_levels else level != "none"
        if options.answer_schema is not None:
            body["format"] = options.answer_schema
        if options.keep_minutes is not None:
            body["keep_alive"] = f"{60 * options.keep_minutes:.0f}s"
        body |= {"stream": options.stream, "options": settings}
        return with_extra(body, quirks.extra_body)

    def decode(self, frame: Frame, draft: Assembly) -> tuple[Event, ...]:
        """Put one line of the stream, or a whole answer, into the draft."""
        message = as_object(frame.get("message"))
        thought = thought_in(message, draft.quirks.reasoning_fields)
        events = draft.add_thinking(thought) if thought else ()
        events += draft.add_text(as_text(message.get("content")))
        for call in as_list(message["tool_calls"]) if "tool_calls" in message else ():
            events += _decode_call(as_object(call), draft)
        if frame.get("done") is True:
            read = count_at(frame, "prompt_eval_count")
            if not self._has_warned and (notice := cut_notice(read or 0, draft.messages)):
                self._has_warned = True
                events += (Noticed(level="warning", text=notice),)
            draft.set_usage(input_tokens=read, output_tokens=count_at(frame, "eval_count"))
            draft.stop(as_text(frame.get("done_reason")) or "stop")
            draft.end()
        return events

    def _encode_messages(self, request: Request, quirks: Quirks) -> Said:
        system, add = request.system, partial(_add, quirks=quirks)
        first = [{"role": quirks.system_role, "content": system}] if system else []
        said = self._history.said(request.messages, add, first=first, terms=(system, quirks))
        _show(said, request.messages, len(request.messages), quirks)
        return said


def _decode_call(call: dict[str, Any], draft: Assembly) -> tuple[Event, ...]:
    """Read a tool call; Ollama never sends one in pieces."""
    function = as_object(call.get("function")) or call
    arguments = function.get("arguments")
    return draft.add_call(
        id=as_text(call.get("id")),
        name=as_text(function.get("name")),
        arguments=arguments if isinstance(arguments, str) else as_object(arguments),
    )


def _add(said: Said, messages: Sequence[Message], place: int, quirks: Quirks) -> None:
    message = messages[place]
    if not isinstance(message, ToolResult):
        _show(said, messages, place, quirks)
    match message:
        case UserMessage():
            said.append(_encode_user(message.content, quirks))
        case AssistantMessage():
            said.extend(_encode_assistant(message, quirks))
        case ToolResult():
            said.append({"role": "tool", "content": message.output, "tool_name": message.name})


def _show(said: Said, messages: Sequence[Message], place: int, quirks: Quirks) -> None:
    """Add the pictures of the results before that place: templates show pictures in user messages only."""
    if images := pictures_before(messages, place):
        said.append(_encode_user((Text(text=caption_of(images)), *images), quirks))


def _encode_user(content: tuple[Text | Image, ...], quirks: Quirks) -> dict[str, Any]:
    if not quirks.sees_images:
        content = without_pictures(content)
    text = "".join(part.text for part in content if isinstance(part, Text))
    said: dict[str, Any] = {"role": "user", "content": text}
    if pictures := [base64_of(part) for part in content if isinstance(part, Image)]:
        said["images"] = pictures
    return said


def _encode_assistant(message: AssistantMessage, quirks: Quirks) -> Iterator[dict[str, Any]]:
    """Make the message; nothing at all where only thinking is left of it."""
    said: dict[str, Any] = {"role": "assistant", "content": message.text}
    thoughts = (part for part in message.content if isinstance(part, Thinking))
    thought = "".join(part.text for part in thoughts if part.provider == OllamaAdapter.name)
    if thought and quirks.reasoning_sent_as:
        said[quirks.reasoning_sent_as] = thought
    if calls := message.calls:
        functions = [{"name": call.name, "arguments": call.arguments} for call in calls]
        said["tool_calls"] = [{"function": function} for function in functions]
    if calls or message.text:
        yield said


#: The port that Ollama listens on where nobody says another.
PORT: Final = 11434


def endpoint_in(environ: Mapping[str, str]) -> str:
    """Return the address that OLLAMA_HOST names; empty where it names none.

    Raises ConfigError for one that cannot be read: words must not go to another server instead.
    https://github.com/ollama/ollama/blob/main/envconfig/config.go
    """
    named = environ.get("OLLAMA_HOST", "").strip().strip("'\"").rstrip("/")
    if not named:
        return ""
    scheme, _, rest = named.rpartition("://")
    host, colon, port = rest.rpartition(":")
    if not colon or rest.endswith("]"):
        host, port = rest, {"http": "80", "https": "443"}.get(scheme, str(PORT))
    host = "127.0.0.1" if host in ("", "0.0.0.0") else host  # noqa: S104 - what it listens on, not where it is
    endpoint = f"{scheme or 'http'}://{host}:{port}"
    try:
        host_of(endpoint)
    except ConfigError as error:
        raise ConfigError(
            f"The variable OLLAMA_HOST is not an address: {named!r}. Set it like 127.0.0.1:{PORT}, or unset it."
        ) from error
    return endpoint


#: Ollama on this machine, or where OLLAMA_HOST says.
PROVIDER = Provider(
    name="ollama",
    wire="ollama",
    endpoint=f"http://localhost:{PORT}",
    locate=endpoint_in,
    model="qwen3:14b",
    key_variables=CREDENTIALS["ollama"],
    needs_key=False,
    quirks=OllamaAdapter.quirks,
    start_advice="start it with `ollama serve`",
    model_advice="fetch it with `ollama pull {model}`",
)


#: What Ollama's registry answers to a name that it does not have.
_UNKNOWN: Final = "file does not exist"
#: Between two lines a layer may be checked, which takes long for a large one.
PATIENCE: Final = Patience(connect=5.0, first=120.0, later=600.0)


async def pull(client: HttpClient, model: str, progress: Callable[[int, int, str], None]) -> None:
    """Have Ollama download a model, and close the client; `progress` takes the bytes that are there, those that there will be, and what is done.

    https://github.com/ollama/ollama/blob/main/docs/api.md#pull-a-model

    Raises ModelError: the server is not there, does not know the model, or broke off. It keeps what has come.
    """
    provider = client.site.provider
    layers: dict[str, tuple[int, int]] = {}
    status = ""
    try:
        frames = client.stream("/api/pull", {"model": model, "stream": True}, framing="ndjson")
        async with aclosing(frames) as lines:
            async for line in lines:
                status = as_text(line.get("status"))
                if total := count_at(line, "total"):
                    layers[as_text(line.get("digest"))] = (count_at(line, "completed") or 0, total)
                done, whole = (
                    sum(column) for column in zip(*layers.values() or ((0, 0),), strict=True)
                )
                is_layer = bool(line.get("digest")) and status.startswith("pulling")
                progress(done, whole, "fetching" if is_layer else status)
    except ProviderDown as error:
        if _UNKNOWN not in str(error):
            raise
        raise NotServed(
            f"{provider} knows no model {model!r} to download.",
            remedies=(Remedy("do", "check its name, which is like qwen3:8b"),),
        ) from error
    finally:
        await client.aclose()
    if status != "success":
        raise ProviderDown(
            f"{provider} ended the download of {model} without saying that it succeeded (last: {status or 'nothing'})."
        )
