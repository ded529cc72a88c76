"""Assembly: collects the pieces of an answer into one AssistantMessage that is always valid to send back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from ybs.core.errors import ModelError
from ybs.core.events import Event, PromptRead, TextStreamed, ThinkingStreamed, ToolCallStreamed
from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from ybs.core.remedies import Remedy
from ybs.providers.wire.loose_json import doubled
from ybs.providers.wire.quirks import Quirks
from ybs.providers.wire.thoughts import LeadingThoughts, split_unopened

#: Why servers say that an answer ended, in lower case. Gateways pass on the words of other formats, so there is one table for
#: all. What is not in it has failed: `error`, `abort`, `MALFORMED_FUNCTION_CALL`, and words that are still to be invented.
_STOP_REASONS: Final[Mapping[str, StopReason]] = {
    **dict.fromkeys(("stop", "end_turn", "end", "eos", "eos_token", "stop_sequence"), "end"),
    **dict.fromkeys(("complete", "completed", "done", "load", "unload"), "end"),
    **dict.fromkeys(
        ("tool_calls", "tool_call", "tool_use", "tooluse", "function_call"), "tool_calls"
    ),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    "model_context_window_exceeded": "length",
    **dict.fromkeys(
        ("refusal", "content_filter", "content_filtered", "safety", "sensitive"), "refusal"
    ),
    **dict.fromkeys(
        ("recitation", "language", "blocklist", "prohibited_content", "spii"), "refusal"
    ),
    **dict.fromkeys(("guardrail_intervened", "image_safety", "error_toxic"), "refusal"),
}
_LONGEST_DETAIL: Final = 200
#: A token is rarely longer than this; what is longer in sum belongs to a model that never stops.
_CHARACTERS_PER_TOKEN: Final = 64
_FEWEST_CHARACTERS: Final = 262_144


class _Prose:
    """A text or thinking part in the making."""

    __slots__ = ("is_thinking", "pieces", "redacted", "signature")

    def __init__(self, *, is_thinking: bool) -> None:
        self.is_thinking = is_thinking
        self.pieces: list[str] = []
        self.signature = self.redacted = ""


class _Call:
    """A tool call in the making. `given_id` is the server's id, `id` the one that ybs uses."""

    __slots__ = ("given_id", "id", "name", "pieces")

    def __init__(self, id: str, given_id: str, name: str) -> None:
        self.id, self.given_id, self.name = id, given_id, name
        self.pieces: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def is_name_continued(self, index: int | None, given_id: str, name: str, text: str) -> bool:
        """Return whether a piece under this one's index has the rest of its name."""
        is_of_this = index is not None and given_id in ("", self.given_id)
        return is_of_this and bool(self.name and name) and name != self.name and not self.pieces

    def begins_anew(self, given_id: str, name: str, arguments: str) -> bool:
        """Return whether a piece belongs to another call although it came under this one's index.

        Servers number several whole calls alike, or repeat id and name in every piece of one call.
        """
        if not (name and self.name):
            return False
        if name != self.name or (given_id and self.given_id and given_id != self.given_id):
            return True
        return bool(arguments.strip()) and _read_object(self.text) is not None and bool(self.pieces)


class Assembly:
    """One answer in the making. `add_*` take what a frame says and return the events to show.

    `model` and `wire` mark the message and its thinking, `account` what is sealed for one. `messages` is the history that the answer follows:
    call ids are made unique in it. `max_tokens` bounds how much may be streamed before it is given up.
    """

    def __init__(
        self,
        model: str,
        wire: str,
        *,
        quirks: Quirks | None = None,
        messages: Sequence[Message] = (),
        max_tokens: int = 4096,
        account: str = "",
    ) -> None:
        self.model, self.wire, self.account = model, wire, account
        #: The server's quirks, for `Adapter.decode`.
        self.quirks = quirks or Quirks()
        #: Why the model stopped; None until the server said so. `stop_detail` is its own word for a failure.
        self.stop_reason: StopReason | None = None
        self.stop_detail = ""
        #: True once the server said that nothing more will come.
        self.has_ended = False
        self.usage = Usage()
        self.messages = messages
        self._thoughts: LeadingThoughts | None = LeadingThoughts()
        self._taken: set[str] | None = None
        self._parts: list[_Prose | _Call] = []
        self._calls: dict[int | str, _Call] = {}
        self._last_call: _Call | None = None
        self._read = 0
        self._room = max(_FEWEST_CHARACTERS, max_tokens * _CHARACTERS_PER_TOKEN)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said and nothing called."""
        return not (self._parts or (self._thoughts is not None and self._thoughts.is_holding))

    @property
    def progress(self) -> tuple[object, ...]:
        """Something that changes with each piece of the answer."""
        return (self._room, len(self._parts), self.stop_reason, self.has_ended, self._read)

    def note_reading(self, read: int, total: int) -> PromptRead:
        """Note how many tokens of the prompt the server has read."""
        self._read = read
        return PromptRead(read=read, total=total)

    def add_text(self, text: str) -> tuple[Event, ...]:
        """Add a piece of the answer's text. What is thinking at its beginning becomes that."""
        if not text:
            return ()
        if self._thoughts is not None:
            return self._sorted(self._thoughts, self._thoughts.feed(text))
        return self._say(text)

    def close_text(self) -> tuple[Event, ...]:
        """Take what was held back of the text for decided: something else follows, or nothing more."""
        if self._thoughts is None:
            return ()
        return self._sorted(self._thoughts, self._thoughts.close())

    def _sorted(
        self, thoughts: LeadingThoughts, pieces: Iterable[tuple[str, bool]]
    ) -> tuple[Event, ...]:
        events: list[Event] = []
        for piece, is_thinking in pieces:
            events += self._think(piece) if is_thinking else self._say(piece)
        if thoughts.is_over:
            self._thoughts = None
        return tuple(events)

    def _say(self, text: str) -> tuple[Event, ...]:
        last = self._parts[-1] if self._parts else None
        if type(last) is not _Prose or last.is_thinking:
            last = self._prose(is_thinking=False)
        self._room -= len(text)  # not by `_count`: this is done for each piece of each answer
        if self._room < 0:
            raise self._endless()
        last.pieces.append(text)
        return (TextStreamed(text=text),)

    def add_thinking(self, text: str) -> tuple[Event, ...]:
        """Add a piece of the model's thinking."""
        if not text:
            return ()
        is_held = self._thoughts is not None and self._thoughts.is_holding
        return (*(self.close_text() if is_held else ()), *self._think(text))

    def _think(self, text: str) -> tuple[Event, ...]:
        prose = self._prose(is_thinking=True)
        self._count(text)
        prose.pieces.append(text)
        return (ThinkingStreamed(text=text),)

    def sign_thinking(self, signature: str) -> None:
        """Add (a piece of) the signature of the thinking at hand; thinking without text is made for it."""
        self._prose(is_thinking=True).signature += signature

    def add_redacted(self, data: str) -> None:
        """Add thinking that only the provider can read, to be sent back as it came."""
        self.end_part()
        self._prose(is_thinking=True).redacted = data
        self.end_part()

    def end_part(self) -> None:
        """Close the text or thinking at hand: the next piece begins a part of its own."""
        if self._parts and isinstance(last := self._parts[-1], _Prose) and _is_filled(last):
            self._parts.append(_Prose(is_thinking=last.is_thinking))

    def add_call_delta(
        self,
        index: int | None = None,
        *,
        id: str = "",
        name: str = "",
        arguments: str | Mapping[str, Any] | None = None,
    ) -> tuple[Event, ...]:
        """Add a piece of a tool call, or a whole one; `arguments` is JSON text or, whole, an object.

        The piece belongs to the call that has its index; without one to the call that has its id; without
        both to the last one. A piece that names a tool may begin a new call, see `_Call.begins_anew`.
        """
        events = self.close_text()
        text = arguments if isinstance(arguments, str) else _encode(arguments)
        call = self._find_call(index, id, name)
        if self._is_repeated(self._calls.get(id) if id else call, id, name, text):
            return events  # some servers send each call whole again at the end
        if call is not None and call.is_name_continued(index, id, name, text):
            call.name = name if name.startswith(call.name) else call.name + name
        elif call is None or call.begins_anew(id, name, text):
            call = self._start_call(index, id, name)
        elif name and not call.name:
            call.name = name
        if not text:
            return events
        self._count(text)
        call.pieces.append(text)
        return (*events, ToolCallStreamed(id=call.id, name=call.name, text=text))

    def _is_repeated(self, call: _Call | None, given_id: str, name: str, text: str) -> bool:
        """Return whether a piece says nothing but what the whole call says already."""
        if call is None or not name or (given_id, name) != (call.given_id, call.name):
            return False
        said, known = _read_object(text), _read_object(call.text)
        if not text.strip() or not call.pieces or said is None or known is None:
            return False
        return msgspec.json.decode(said) == msgspec.json.decode(known)

    def has_call_at(self, index: int | None) -> bool:
        """Return whether a call has begun at this place."""
        return index is not None and index in self._calls

    def has_arguments_at(self, index: int | None) -> bool:
        """Return whether a call has begun at this place, and some of its arguments have come."""
        return index is not None and index in self._calls and bool(self._calls[index].pieces)

    def add_call(
        self, *, id: str = "", name: str, arguments: str | Mapping[str, Any] | None = None
    ) -> tuple[Event, ...]:
        """Add a whole tool call, as servers do that never send one in pieces."""
        events = self.close_text()
        call = self._start_call(None, id, name)
        text = arguments if isinstance(arguments, str) else _encode(arguments)
        self._count(text)
        call.pieces.append(text)
        return (*events, ToolCallStreamed(id=call.id, name=call.name, text=text))

    def set_usage(
        self,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cached_tokens: int | None = None,
        cache_write_tokens: int | None = None,
    ) -> None:
        """Note token counts as they come; None leaves what is known."""
        was = self.usage
        self.usage = Usage(
            input_tokens=was.input_tokens if input_tokens is None else input_tokens,
            output_tokens=was.output_tokens if output_tokens is None else output_tokens,
            cached_tokens=was.cached_tokens if cached_tokens is None else cached_tokens,
            cache_write_tokens=(
                was.cache_write_tokens if cache_write_tokens is None else cache_write_tokens
            ),
        )

    def stop(self, word: str, explanation: str = "") -> None:
        """Note why the model stopped, in the server's own word. Usage may still come."""
        self.stop_reason = _STOP_REASONS.get(word.lower(), "failed")
        if self.stop_reason in ("refusal", "failed"):
            said = f"{word}: {explanation}" if explanation else word
            self.stop_detail = "".join(filter(str.isprintable, said))[:_LONGEST_DETAIL]

    def end(self) -> None:
        """Note that the server said its last word."""
        self.has_ended = True

    def has_whole_calls(self) -> bool:
        """Return whether the arguments of every call are complete."""
        return all(_read_object(call.text) is not None for call in self._all_calls())

    def message(self) -> AssistantMessage:
        """Return the answer: parts in the order they began, ids unique, arguments valid; no calls in one that failed."""
        self.close_text()
        content = self._sorted_out(
            part for each in self._parts if (part := self._finished(each)) is not None
        )
        reason = self.stop_reason or "end"
        if reason in ("refusal", "failed"):
            content = tuple(part for part in content if not isinstance(part, ToolCall))
        has_calls = any(isinstance(part, ToolCall) for part in content)
        if has_calls and reason == "end":
            reason = "tool_calls"
        elif reason == "tool_calls" and not has_calls:
            reason = "end"
        return AssistantMessage(
            content=content,
            stop_reason=reason,
            model=self.model,
            usage=self.usage,
            stop_detail=self.stop_detail,
        )

    def _sorted_out(self, parts: Iterable[AssistantPart]) -> tuple[AssistantPart, ...]:
        """Return the parts, with what is thinking in the first text apart, where its opening tag is missing."""
        content = tuple(parts)
        place = next((n for n, part in enumerate(content) if isinstance(part, Text)), None)
        if place is None:
            return content
        text = content[place]
        split = split_unopened(text.text) if isinstance(text, Text) else None
        if split is None:
            return content
        thought = Thinking(text=split[0], provider=self.wire)
        said = (Text(text=split[1]),) if split[1] else ()
        return (*content[:place], thought, *said, *content[place + 1 :])

    def _all_calls(self) -> list[_Call]:
        return [part for part in self._parts if isinstance(part, _Call)]

    def _prose(self, *, is_thinking: bool) -> _Prose:
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _Prose) and last.is_thinking == is_thinking:
            return last
        if isinstance(last, _Prose) and not _is_filled(last):
            self._parts.pop()
        self._parts.append(prose := _Prose(is_thinking=is_thinking))
        return prose

    def _count(self, text: str) -> None:
        self._room -= len(text)
        if self._room < 0:
            raise self._endless()

    def _endless(self) -> ModelError:
        return ModelError(
            f"{self.model} did not stop: its answer is far longer than allowed, so it was cut off.",
            remedies=(Remedy("do", "ask again in other words"), Remedy("change_model")),
        )

    def _find_call(self, index: int | None, given_id: str, name: str) -> _Call | None:
        if index is not None and (call := self._calls.get(index)):
            return call
        if given_id and not (index is not None and name) and (call := self._calls.get(given_id)):
            return call
        return self._last_call if not name and not given_id else None

    def _start_call(self, index: int | None, given_id: str, name: str) -> _Call:
        call = _Call(self._make_id(given_id), given_id, name)
        self._count(name + given_id)
        self._parts.append(call)
        self._last_call = call
        if index is not None:
            self._calls[index] = call
        if given_id:
            self._calls[given_id] = call
        return call

    def _make_id(self, given_id: str) -> str:
        """Return the server's id where nothing else has it, or a new one."""
        if self._taken is None:
            answers = (m.content for m in self.messages if type(m) is AssistantMessage)
            self._taken = {p.id for parts in answers for p in parts if type(p) is ToolCall}
        made, number = given_id, len(self._taken)
        while not made or made in self._taken:
            number += 1
            made = f"call_{number}"
        self._taken.add(made)
        return made

    def _finished(self, part: _Prose | _Call) -> AssistantPart | None:
        if isinstance(part, _Call):
            return _finished_call(part)
        text = "".join(part.pieces)
        if not _is_filled(part):
            return None
        if part.is_thinking:
            return Thinking(
                text=text, signature=part.signature, redacted=part.redacted, provider=self.wire
            )
        return Text(text=text)


def _is_filled(part: _Prose) -> bool:
    return bool(part.pieces or part.signature or part.redacted)


def _finished_call(call: _Call) -> ToolCall:
    text = call.text
    arguments = _read_object(text)
    # A call without a name cannot be sent back; the toolbox answers that it knows no such tool.
    name = call.name or "unknown"
    if arguments is None:
        return ToolCall(id=call.id, name=name, invalid=text)
    return ToolCall(id=call.id, name=name, arguments=arguments)


def _encode(arguments: Mapping[str, Any] | None) -> str:
    return "" if arguments is None else msgspec.json.encode(arguments).decode()


def _read_object(text: str) -> Raw | None:
    """Return the JSON object that the text is (nothing at all is `{}`), or None."""
    if not (text := text.strip()):
        return Raw(b"{}")
    try:
        value = msgspec.json.decode(text)
        if isinstance(value, str):  # an object in a string: JSON encoded twice
            text = value
            value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _read_object(escaped) if (escaped := doubled(text)) else None
    return Raw(text.encode()) if isinstance(value, dict) else None
