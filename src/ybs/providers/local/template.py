"""The chat templates that a model may be served with: its own, and those that make real tool calls of what it writes.

llama.cpp derives its parser of tool calls from the template. Many models come with one that they do not answer as it says, so
each model is tried once: the first template that it answers with a real call is kept.
"""

import json
from collections.abc import Iterator
from contextlib import aclosing
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Raw, Struct

from ybs.core.events import AssistantSaid, ToolCallStreamed
from ybs.core.messages import UserMessage
from ybs.core.ports import Model, Request, ToolSpec
from ybs.providers.local.gguf import ModelHead

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
_HEAD, _EOT = "<|start_header_id|>{}<|end_header_id|>\n\n", "<|eot_id|>"
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
        (_HEAD.format("system"), _EOT),
        (_HEAD.format("user"), _EOT),
        (_HEAD.format("assistant"), _EOT),
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
