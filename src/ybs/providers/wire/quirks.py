"""Deviations of a server from its wire format, as one record instead of if-chains.

Each provider declares its own record; `providers.NAME.quirks` in the configuration overrides single fields.
What decoding can forgive without being told (missing ids, empty choices, arguments as an object) is not
listed here: every adapter forgives it always.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ybs.core.decoding import decodable
from ybs.core.errors import ConfigError
from ybs.core.lazy import lazy


class Quirks(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one server wants and gives. The defaults suit an unknown OpenAI-compatible server.

    Fields that a wire format has no use for are ignored by its adapter.
    """

    #: The name of the field for the most tokens of the answer; empty: not sent.
    max_tokens_field: str = "max_tokens"
    #: The role of the system prompt. `user` is for models that know no system role.
    system_role: Literal["system", "developer", "user"] = "system"
    #: Sends `stream_options: {"include_usage": true}`; some servers refuse what they do not know.
    sends_stream_options: bool = True
    #: Streams at all; when false every answer comes in one piece.
    streams: bool = True
    #: Takes a temperature. Reasoning models mostly refuse one.
    accepts_temperature: bool = True
    #: Sees pictures; when false a line of text stands in a picture's place.
    sees_images: bool = True
    #: Takes tools; when false none are sent, and the model writes its calls as text.
    takes_tools: bool = True
    #: Takes a grammar of llama.cpp's for the answer, where no tools are sent.
    takes_grammar: bool = False
    #: Is told with each request how large a window to take, and takes memory for all of it: as much as is needed is asked for.
    takes_window: bool = False
    #: The value of `parallel_tool_calls` to send; null: not sent.
    parallel_tool_calls: bool | None = None
    #: The names under which thinking arrives, first match wins.
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning", "thinking")
    #: The name under which thinking is sent back; empty: it is not sent back.
    reasoning_sent_as: str = ""
    #: Where usage stands in a frame, dotted, first match wins.
    usage_fields: tuple[str, ...] = ("usage", "x_groq.usage", "timings", "choices.0.usage")
    #: Sends tool arguments back as a JSON object instead of a string.
    arguments_as_object: bool = False
    #: The exact length of tool call ids (letters and digits); 0: any id will do.
    call_id_chars: int = 0
    #: Refuses a user message right after a tool result; a short assistant message is put between.
    wants_assistant_after_tool: bool = False
    #: Refuses two user messages in a row; they are joined.
    wants_alternating_roles: bool = False
    #: May end a stream without a finish reason or `[DONE]`; what came is then taken as the whole answer.
    ends_without_finish: bool = False
    #: Asks for the model's thinking, to show it and to send it back as it came, where the format lets one choose.
    shows_thinking: bool = True
    #: How the model is told how hard to think: by a level, by a budget in tokens, as OpenRouter wants it (`object`), or not.
    effort_form: Literal["level", "budget", "object", "no"] = "level"
    #: The levels that the model takes, of which the nearest is sent; empty: all.
    efforts: tuple[str, ...] = ()
    #: Takes a JSON Schema for the answer: also with tools, without tools alone, or not.
    answer_schema: Literal["with_tools", "alone", "no"] = "alone"
    #: The `reasoning_effort` to send with tools; empty: not sent.
    reasoning_effort: str = ""
    #: Extra fields of every tool call that is sent back.
    call_extra: dict[str, Any] = {}
    #: The header that the key stands in; empty: the format's own.
    key_header: str = ""
    #: Extra fields of the request body, laid over the others (`{"reasoning_effort": "low"}`).
    extra_body: dict[str, Any] = {}


class Lesson(Struct, frozen=True):
    """What a refused request teaches: a word in the refusal, and the fields to change after it.

    `notice` is told to the person where the change takes something away.
    """

    word: str
    changes: dict[str, Any]
    notice: str = ""


#: The first lesson whose word occurs and whose changes are new is learned, so the order matters.
_LESSONS = (
    Lesson("stream_options", {"sends_stream_options": False}),
    Lesson("max_completion_tokens", {"max_tokens_field": "max_completion_tokens"}),
    Lesson(
        "temperature",
        {"accepts_temperature": False},
        "{model} does not accept a temperature, so none is sent.",
    ),
    Lesson("parallel_tool_calls", {"parallel_tool_calls": None}),
    Lesson("grammar", {"takes_grammar": False}),
    Lesson("alternate", {"wants_alternating_roles": True}),
    Lesson(
        r"(?:tools?\b.*\breasoning_effort|reasoning_effort\b.*\btool)",
        {"reasoning_effort": "none"},
        "{model} accepts tools here only without reasoning, so reasoning is off.",
    ),
    Lesson(
        "stream",
        {"streams": False},
        "{model} does not stream here, so each answer arrives in one piece.",
    ),
    Lesson(
        r"(?:encrypted.content|reasoning\.summary|thinking.?config|thinking is)",
        {"shows_thinking": False},
    ),
    Lesson(
        r"(?:reasoning(?:_effort)?|effort|think|thinking|thinking.?(?:level|budget)|budget|budget_tokens|output_config)",
        {"effort_form": "no"},
        "{model} does not take an effort here, so it thinks as much as it does by itself.",
    ),
    Lesson(
        "image",
        {"sees_images": False},
        "{model} does not accept pictures, so they are left out.",
    ),
)
#: How servers say that a model takes no tools: Ollama, OpenAI and its kin, OpenRouter (a 404), vLLM, llama.cpp (a 500).
_NO_TOOLS = lazy(
    r"\b(?:does|do)(?: not|n't) support (?:the use of )?(?:`|')?(?:tool|function)"
    r"|\b(?:tools?|tool[ _]?(?:use|calls?|calling)|function[ _]?calls?|function[ _]?calling)(?:`|'|\")? "
    r"(?:is|are)(?: not|n't) (?:currently |yet )?(?:supported|enabled|available|allowed)"
    r"|no endpoints found that support tool|unsupported parameter:? (?:`|'|\")?(?:tools|functions)\b"
    r"|requires --enable-auto-tool-choice|tools param requires --jinja"
)
#: What servers name where they refuse a schema for the answer.
_NO_SCHEMA = lazy(
    r"response.?(?:format|mime|json|schema)|json.?schema|output_config|text\.format|grammar|json mode|\bschema\b|\bformat\b"
)
#: How servers name the levels of effort that a model takes.
_LEVELS = lazy(
    r"(?:supported|allowed|valid) values (?:are|include)|must be one of|(?:input should|expected) "
)
_LEVEL = lazy(r"[`'\"](none|minimal|low|medium|high|xhigh|max)[`'\"]")
_OTHER_LEVEL = "{model} does not take this effort, so the nearest of these is used: "
_WITHOUT_TOOLS = "{model} does not accept tools here, so it writes its calls as text."


#: A bad value is for the person to fix; only what a server does not take at all is left out.
_REFUSED = lazy(
    r"only works|not (?:be )?(?:supported|allowed|permitted|accepted|recogni[sz]ed|valid for)|not support|unsupported"
    r"|unknown|unrecogni[sz]ed|unexpected|extra (?:inputs|fields)|cannot|can't|only the default|deprecated"
    r"|must be (?:set to )?(?:false|none)|must alternate|set \w+ to|does not (?:see|take|accept)|no such (?:field|parameter)|instead"
)


def refuses_tools(refusal: str) -> bool:
    """Return whether a server says that the model takes no tools."""
    said = refusal.lower()
    return ("tool" in said or "function" in said) and _NO_TOOLS().search(said) is not None


def learn_schema(quirks: Quirks, refusal: str, *, has_tools: bool) -> Quirks | None:
    """Return the quirks after a refused request that had a schema for the answer, or None if that was not the reason."""
    if quirks.answer_schema == "no" or not _NO_SCHEMA().search(refusal.lower()):
        return None
    is_for_tools = has_tools and quirks.answer_schema == "with_tools"
    return msgspec.structs.replace(quirks, answer_schema="alone" if is_for_tools else "no")


def learn(
    quirks: Quirks, refusal: str, *, has_images: bool = False, has_tools: bool = False
) -> tuple[Quirks, str] | None:
    """Return the quirks after a refused request (a 400) and a notice, or None if it teaches nothing new.

    So a server that refuses streaming, tools, or a field that it does not know, is asked again in its own way.
    """
    said = refusal.lower()
    if has_tools and quirks.takes_tools and refuses_tools(said):
        return msgspec.structs.replace(quirks, takes_tools=False), _WITHOUT_TOOLS
    if (named := _LEVELS().search(said)) and re.search(r"effort|think|reasoning", said):
        levels = tuple(dict.fromkeys(_LEVEL().findall(said, named.end())))
        if levels and levels != quirks.efforts:
            learned = msgspec.structs.replace(quirks, efforts=levels)
            return learned, _OTHER_LEVEL + ", ".join(levels) + "."
    if not _REFUSED().search(said):
        return None
    for lesson in _LESSONS:
        is_named = re.search(rf"\b{lesson.word}(?:s|ing)?\b", said)
        if is_named and (has_images or lesson.word != "image"):
            learned = msgspec.structs.replace(quirks, **lesson.changes)
            if learned != quirks:
                return learned, lesson.notice
    return None


def adjust(quirks: Quirks, changes: Mapping[str, Any], *, where: str) -> Quirks:
    """Return the quirks with some fields changed; `where` is the setting that names them.

    Raises ConfigError for a field that does not exist or has the wrong type.
    """
    if not changes:
        return quirks
    try:
        return msgspec.convert({**msgspec.structs.asdict(quirks), **changes}, decodable(Quirks))
    except msgspec.ValidationError as error:
        names = ", ".join(Quirks.__struct_fields__)
        raise ConfigError(f"{where}: {error}\nKnown quirks: {names}") from error
