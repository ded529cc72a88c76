"""Parse the output of CLI agents: one reader for each format, which adds lines to the answer in the making.

Checked against Claude Code 2.1, codex-cli 0.169, Gemini CLI 0.61 and pi 0.73; unknown lines are passed over.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from ybs.config.sections import CliOutput
from ybs.core.events import Event
from ybs.providers.wire.adapter import Frame
from ybs.providers.wire.anthropic import AnthropicAdapter
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.loose_json import as_count, as_list, as_object, as_text
from ybs.providers.wire.thoughts import without_thoughts


class Complaint(Exception):
    """The program says that it failed: `status` as a server would have said it, or 0, and `kind` in its own word."""

    def __init__(self, words: str, *, status: int = 0, kind: str = "") -> None:
        super().__init__(words)
        self.words, self.status, self.kind = words, status, kind


class AnswerReader:
    """Reads the JSON lines of one answer; what is not an object, such as a note for the screen, is passed over.

    After `is_over` nothing more is waited for. `session` is the one that the program keeps of the conversation; `trouble` is what it said
    last of that kind, which counts where no answer came.
    """

    def __init__(self) -> None:
        self.is_over = False
        self.session = self.trouble = ""
        self.cost_usd: float | None = None

    def read(self, line: bytes, draft: Assembly) -> Iterator[Event]:
        """Read a line. Raises Complaint, and ValueError for one that is not whole."""
        if frame := _object(line):
            yield from self._take(frame, draft)

    def close(self, draft: Assembly) -> None:
        """Take note that the program ended without an error: a JSON line has to have said that the answer is whole."""

    def _take(self, frame: Frame, draft: Assembly) -> Iterator[Event]:
        raise NotImplementedError

    def _finish(self, draft: Assembly, usage: Mapping[str, Any], cached: str) -> None:
        draft.set_usage(
            input_tokens=as_count(usage.get("input_tokens")),
            output_tokens=as_count(usage.get("output_tokens")),
            cached_tokens=as_count(usage.get(cached)),
        )
        self.is_over = True
        draft.stop("stop")
        draft.end()


class ClaudeReader(AnswerReader):
    """`claude --print --output-format stream-json`: the events of Anthropic's API in an envelope, and a result."""

    # https://code.claude.com/docs/en/headless

    def __init__(self) -> None:
        super().__init__()
        self._adapter = AnthropicAdapter()
        self._is_streamed = self._is_paid = False
        self._kind = ""

    def _take(self, frame: Frame, draft: Assembly) -> Iterator[Event]:
        match frame.get("type"):
            case "system" if frame.get("subtype") == "init":
                self.session = as_text(frame.get("session_id"))
                self._is_paid = as_text(frame.get("apiKeySource")) not in ("", "none")
            case "stream_event" if not frame.get("parent_tool_use_id"):
                self._is_streamed = True
                yield from self._adapter.decode(as_object(frame.get("event")), draft)
            case "assistant" if not frame.get("parent_tool_use_id"):
                yield from self._whole(frame, draft)
            case "result":
                self._end(frame, draft)
            case _:
                pass

    def _whole(self, frame: Frame, draft: Assembly) -> Iterator[Event]:
        """Take a whole message where none was streamed; one that the program made up says what went wrong."""
        message = as_object(frame.get("message"))
        self._kind = as_text(frame.get("error")) or self._kind
        if not (self._is_streamed or self._kind or message.get("model") == "<synthetic>"):
            yield from self._adapter.decode({**message, "type": "message"}, draft)

    def _end(self, frame: Frame, draft: Assembly) -> None:
        self.is_over = True
        if self._is_paid and isinstance(cost := frame.get("total_cost_usd"), int | float):
            self.cost_usd = float(cost)
        if frame.get("is_error") or as_text(frame.get("subtype")).startswith("error"):
            errors = " ".join(as_text(each) for each in as_list(frame.get("errors")))
            words = as_text(frame.get("result")) or errors or as_text(frame.get("subtype"))
            status = as_count(frame.get("api_error_status")) or 0
            raise Complaint(words, status=status, kind=self._kind)
        _compare(as_text(frame.get("result")), draft)
        if draft.stop_reason is None:
            draft.stop("stop")
        draft.end()


class CodexReader(AnswerReader):
    """`codex exec --json`: whole messages as items of a turn."""

    # https://developers.openai.com/codex/noninteractive

    def _take(self, frame: Frame, draft: Assembly) -> Iterator[Event]:
        item = as_object(frame.get("item"))
        match frame.get("type"):
            case "item.completed" if item.get("type") == "agent_message":
                gap = "" if draft.is_empty else "\n\n"
                yield from draft.add_text(gap + as_text(item.get("text")))
            case "turn.completed":
                self._finish(draft, as_object(frame.get("usage")), "cached_input_tokens")
            case "turn.failed":
                raise Complaint(_words_of(frame) or self.trouble)
            case "error":  # it may say so and go on, as while it connects again
                self.trouble = as_text(frame.get("message"))
            case _:
                pass


class GeminiReader(AnswerReader):
    """`gemini --output-format stream-json`: pieces of messages, and a result."""

    # https://geminicli.com/docs/cli/headless/

    def _take(self, frame: Frame, draft: Assembly) -> Iterator[Event]:
        match frame.get("type"):
            case "message" if frame.get("role") == "assistant":
                yield from draft.add_text(as_text(frame.get("content")))
            case "error":
                self.trouble = as_text(frame.get("message"))
            case "result" if frame.get("status") == "error":
                raise Complaint(_words_of(frame) or self.trouble)
            case "result":
                self._finish(draft, as_object(frame.get("stats")), "cached")
            case _:
                pass


class PiReader(AnswerReader):
    """`pi --mode json`: what happens in its loop."""

    # https://github.com/earendil-works/pi-mono, packages/coding-agent/docs/json.md

    def _take(self, frame: Frame, draft: Assembly) -> Iterator[Event]:
        match frame.get("type"):
            case "message_update":
                yield from _pi_delta(as_object(frame.get("assistantMessageEvent")), draft)
            case "message_end":
                self._end_message(as_object(frame.get("message")), draft)
            case "agent_end":
                self.is_over = draft.stop_reason is not None
                if self.is_over:
                    draft.end()
            case _:
                pass

    def _end_message(self, message: Frame, draft: Assembly) -> None:
        if message.get("role") != "assistant":
            return
        reason, usage = as_text(message.get("stopReason")), as_object(message.get("usage"))
        if reason in ("error", "aborted"):
            self.trouble = as_text(message.get("errorMessage")) or reason
            return
        _compare(as_text(message.get("content")), draft)
        read, written = as_count(usage.get("cacheRead")), as_count(usage.get("cacheWrite"))
        draft.set_usage(
            input_tokens=(as_count(usage.get("input")) or 0) + (read or 0) + (written or 0),
            output_tokens=as_count(usage.get("output")),
            cached_tokens=read,
            cache_write_tokens=written,
        )
        cost = as_object(usage.get("cost")).get("total")
        self.cost_usd = float(cost) if isinstance(cost, int | float) else None
        draft.stop(reason)


def _pi_delta(piece: Frame, draft: Assembly) -> Iterator[Event]:
    match piece.get("type"):
        case "text_delta":
            yield from draft.add_text(as_text(piece.get("delta")))
        case "thinking_delta":
            yield from draft.add_thinking(as_text(piece.get("delta")))
        case _:
            pass


class TextReader(AnswerReader):
    """A program that prints its answer and nothing else, and ends."""

    def read(self, line: bytes, draft: Assembly) -> Iterator[Event]:
        """Take a line of the answer."""
        gap = "" if draft.is_empty else "\n"
        yield from draft.add_text(gap + line.decode("utf-8", "replace"))

    def close(self, draft: Assembly) -> None:
        """Take what came for the whole answer."""
        draft.stop("stop")
        draft.end()


READERS: Final[Mapping[CliOutput, Callable[[], AnswerReader]]] = {
    "claude": ClaudeReader,
    "codex": CodexReader,
    "gemini": GeminiReader,
    "pi": PiReader,
    "text": TextReader,
}


def _compare(whole: str, draft: Assembly) -> None:
    """Raise Complaint where the text that was streamed does not end as the program says that it does."""
    if not draft.message().text.rstrip().endswith(without_thoughts(whole).rstrip()):
        raise Complaint("pieces of its answer are missing")


def _words_of(frame: Frame) -> str:
    error = frame.get("error")
    return as_text(error) if isinstance(error, str) else as_text(as_object(error).get("message"))


def _object(line: bytes) -> Frame | None:
    """Return the object that a line is, behind what a terminal was told; None for any other line."""
    line = line.strip()
    if not line.startswith(b"{"):
        _, mark, rest = line.partition(b'{"')
        if not line.startswith(b"\x1b") or not mark:
            return None
        line = mark + rest
    try:
        value: Any = msgspec.json.decode(line)
    except UnicodeDecodeError:
        value = msgspec.json.decode(line.decode("utf-8", "replace"))
    return as_object(value)
