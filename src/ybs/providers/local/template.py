"""What a model file says of itself (the head of a GGUF file, without its weights), and the chat templates that it may be served with."""

import json
import mmap
from collections.abc import Iterator
from contextlib import aclosing
from functools import cache
from pathlib import Path
from struct import Struct as Layout
from struct import error as StructError
from typing import Any, Final

from msgspec import Raw, Struct

from ybs.config.tree import is_list
from ybs.core.errors import ConfigError
from ybs.core.events import AssistantSaid, ToolCallStreamed
from ybs.core.messages import UserMessage
from ybs.core.ports import Model, Request, ToolSpec
from ybs.providers.local.choice import Shape

_HEAD: Final = Layout("<4sIQQ")
_LENGTH: Final = Layout("<Q")
_KIND: Final = Layout("<I")
#: Kinds of values with a fixed size; 8 is a text and 9 a list.
_PLAIN: Final = {kind: Layout(f"<{code}") for kind, code in enumerate("BbHhIif?")} | {
    10: Layout("<Q"),
    11: Layout("<q"),
    12: Layout("<d"),
}
_TEXT, _LIST = 8, 9
_MOST_ENTRIES: Final = 10_000
#: Lists longer than this are the vocabulary, which nobody here needs.
_LONGEST_LIST: Final = 1024
#: Of a file that says nothing: as a model of its size mostly has it.
_LAYERS, _BYTES_PER_TOKEN, _LONGEST = 32, 60_000, 32_768
_HALF_BYTES: Final = 2


class ModelHead(Struct, frozen=True, kw_only=True):
    """What matters of a model file's head."""

    family: str = ""
    title: str = ""
    template: str = ""
    shape: Shape


def read_head(path: Path) -> ModelHead:
    """Read the head; of a file that has none, a guess by its size. Raises ConfigError for one that cannot be read."""
    values: dict[str, Any] = {}
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ConfigError(f"The model file {path} cannot be read: {error.strerror}") from error
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            values = _Reader(data).entries()
    except OSError as error:
        raise ConfigError(f"The model file {path} cannot be read: {error.strerror}") from error
    except (
        ValueError,
        StructError,
        OverflowError,
        RecursionError,
    ):  # empty, cut off, or not of this format: the server will say so
        pass
    family = str(values.get("general.architecture", ""))
    return ModelHead(
        family=family,
        title=str(values.get("general.name", "")),
        template=str(values.get("tokenizer.chat_template", "")),
        shape=_shape(size, values, family),
    )


def _shape(size: int, values: dict[str, Any], family: str) -> Shape:
    def count(name: str, default: int = 0) -> int:
        value = values.get(f"{family}.{name}", default)
        if is_list(value):  # one number for each layer
            value = max((each for each in value if isinstance(each, int)), default=0)
        return value if isinstance(value, int) and 0 < value < 1 << 31 else default

    layers = count("block_count", _LAYERS)
    heads = count("attention.head_count", 1)
    key_size = count("attention.key_length", count("embedding_length") // heads)
    kept = count("attention.head_count_kv", heads) * (
        key_size + count("attention.value_length", key_size)
    )
    experts, used = count("expert_count"), count("expert_used_count")
    return Shape(
        file_bytes=size,
        layers=layers,
        token_bytes=layers * kept * _HALF_BYTES or _BYTES_PER_TOKEN,
        longest=count("context_length", _LONGEST),
        active_share=min(1.0, used / experts + 0.05) if experts and used else 1.0,
    )


class _Reader:
    """Reads one value after the other. Raises ValueError or struct.error where the file makes no sense."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._place = data, 0

    def entries(self) -> dict[str, Any]:
        magic, _version, _tensors, count = self._take(_HEAD)
        if magic != b"GGUF" or count > _MOST_ENTRIES:
            raise ValueError("not a GGUF file")
        return {self._text(): self._value(self._take(_KIND)[0]) for _ in range(count)}

    def _take(self, layout: Layout) -> tuple[Any, ...]:
        values = layout.unpack_from(self._data, self._place)
        self._place += layout.size
        return values

    def _text(self) -> str:
        (length,) = self._take(_LENGTH)
        start, end = self._place, self._place + length
        if end > len(self._data):
            raise ValueError("a text beyond the end of the file")
        self._place = end
        return self._data[start:end].decode("utf-8", "replace")

    def _value(self, kind: int) -> Any:
        if layout := _PLAIN.get(kind):
            return self._take(layout)[0]
        if kind == _TEXT:
            return self._text()
        if kind == _LIST:
            return self._list()
        raise ValueError("an unknown kind of value")

    def _list(self) -> list[Any]:
        (kind,), (length,) = self._take(_KIND), self._take(_LENGTH)
        if length <= _LONGEST_LIST:
            return [self._value(kind) for _ in range(length)]
        if layout := _PLAIN.get(kind):
            self._place += layout.size * length
        elif kind == _TEXT:
            self._skip_texts(length)
        else:
            raise ValueError("a long list of lists")
        return []

    def _skip_texts(self, count: int) -> None:
        place, data = self._place, self._data
        for _ in range(count):
            place += _LENGTH.size + _LENGTH.unpack_from(data, place)[0]
        self._place = place


_FILE: Final = "notes.txt"
_TRIAL: Final = Request(
    "You work in a folder with the tools. Call a tool at once.",
    (UserMessage.of(f"Read the file {_FILE}."),),
    (
        ToolSpec(
            name="read_file",
            description="Read a file.",
            parameters=Raw(
                b'{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}'
            ),
        ),
    ),
)


class ChatTemplate(Struct, frozen=True):
    """A template. `text` is empty for the model's own."""

    name: str
    text: str = ""


class _Turns(Struct, frozen=True):
    """How a family's turns begin and end, for the roles system, user and assistant; an empty system: there is none."""

    sign: str
    system: tuple[str, str]
    user: tuple[str, str]
    assistant: tuple[str, str]


_END: Final = "<|im_end|>\n"
_LLAMA_HEAD, _EOT = "<|start_header_id|>{}<|end_header_id|>\n\n", "<|eot_id|>"
#: By family; the sign is what stands in the templates of its models.
_FAMILIES: Final = {
    "chatml": _Turns(
        "<|im_start|>",
        ("<|im_start|>system\n", _END),
        ("<|im_start|>user\n", _END),
        ("<|im_start|>assistant\n", _END),
    ),
    "llama": _Turns(
        "<|start_header_id|>",
        (_LLAMA_HEAD.format("system"), _EOT),
        (_LLAMA_HEAD.format("user"), _EOT),
        (_LLAMA_HEAD.format("assistant"), _EOT),
    ),
    "gemma": _Turns(
        "<start_of_turn>",
        ("", ""),
        ("<start_of_turn>user\n", "<end_of_turn>\n"),
        ("<start_of_turn>model\n", "<end_of_turn>\n"),
    ),
    "mistral": _Turns("[INST]", ("", ""), ("[INST] ", " [/INST]"), ("", "</s>")),
    "phi": _Turns(
        "<|end|>",
        ("<|system|>\n", "<|end|>\n"),
        ("<|user|>\n", "<|end|>\n"),
        ("<|assistant|>\n", "<|end|>\n"),
    ),
}
_STARTER: Final = "qwen2.5-coder"


def templates_of(model: Path, head: ModelHead) -> Iterator[ChatTemplate]:
    """Yield the templates that may suit a model, the most likely first.

    They are texts and not names of files, so that a server of an older ybs is not taken for a fitting one. A model of no known
    family is tried with its own, of which llama.cpp makes what it can.
    """
    if is_measured(model):
        yield ChatTemplate("qwen2.5-coder", _text("template.jinja"))
    family = next((name for name, turns in _FAMILIES.items() if turns.sign in head.template), "")
    if "tools" in head.template or not family:
        yield ChatTemplate("own")
    if family:
        text = _head_of(_FAMILIES[family]) + _text("calls.jinja")
        yield ChatTemplate(f"calls in {family}", text)


def is_measured(model: Path) -> bool:
    """Return whether ybs has a template that was made for this model, and measured with it."""
    return model.name.lower().startswith(_STARTER)


async def makes_calls(model: Model) -> bool:
    """Ask the model for one tool call; return whether a real one came, with the right argument.

    A call that stands only in the text of the answer does not count: it comes without pieces of its own. Raises ModelError.
    """
    is_real, calls = False, ()
    async with aclosing(model.stream(_TRIAL)) as events:
        async for event in events:
            is_real = is_real or isinstance(event, ToolCallStreamed)
            if isinstance(event, AssistantSaid):
                calls = event.message.calls
    return is_real and any(
        call.name == "read_file" and _FILE.encode() in bytes(call.arguments) for call in calls
    )


def _head_of(turns: _Turns) -> str:
    """Set what `calls.jinja` reads, as Jinja's own words; JSON's texts are Jinja's too."""
    roles = {"system": turns.system, "user": turns.user, "assistant": turns.assistant}
    begin = json.dumps({role: pair[0] for role, pair in roles.items()})
    end = json.dumps({role: pair[1] for role, pair in roles.items()})
    has_system = json.dumps(bool(turns.system[0]))
    return (
        f"{{%- set begin = {begin} -%}}{{%- set end = {end} -%}}"
        f"{{%- set has_system = {has_system} -%}}"
    )


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")
