"""The lines that real CLI agents print, as recorded from Claude Code 2.1.197, codex-cli 0.169, Gemini CLI 0.61 and pi 0.73."""

import json
from typing import Any


def claude(
    *pieces: str, session: str = "s-1", key: str = "ANTHROPIC_API_KEY", **ending: Any
) -> list[str]:
    """Return what `claude --print --output-format stream-json --include-partial-messages` prints."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": [], "stop_reason": None}  # fmt: skip
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 1}  # fmt: skip
    text = "".join(pieces)
    block = {"type": "text", "text": ""}
    events: list[Any] = [
        {"type": "message_start", "message": {**message, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in pieces
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {**usage, "output_tokens": 5}},
        {"type": "message_stop"},
    ]  # fmt: skip
    envelopes: list[Any] = [{"type": "stream_event", "event": event, "parent_tool_use_id": None} for event in events]  # fmt: skip
    whole = {**message, "content": [{"type": "text", "text": text}], "usage": usage}
    envelopes.insert(-3, {"type": "assistant", "message": whole, "parent_tool_use_id": None})
    init = {"type": "system", "subtype": "init", "tools": [], "apiKeySource": key}
    result = {"type": "result", "subtype": "success", "is_error": False, "result": text, "total_cost_usd": 0.000105, **ending}  # fmt: skip
    lines: list[Any] = [init, {"type": "system", "subtype": "status", "status": "requesting"}]
    return [as_line({**each, "session_id": session}) for each in (*lines, *envelopes, result)]


def claude_failing(words: str, kind: str, status: int | None = None) -> list[str]:
    """Return what it prints where it may not or cannot answer; the first of these is the real one, without a login."""
    synthetic = {"role": "assistant", "model": "<synthetic>", "type": "message", "content": [{"type": "text", "text": words}]}  # fmt: skip
    return [
        as_line({"type": "system", "subtype": "init", "session_id": "s-1", "apiKeySource": "none"}),
        as_line({"type": "assistant", "message": synthetic, "parent_tool_use_id": None, "error": kind}),
        as_line({"type": "result", "subtype": "success", "is_error": True, "api_error_status": status, "result": words}),
    ]  # fmt: skip


def codex(*texts: str) -> list[str]:
    """Return what `codex exec --json` prints."""
    items = [
        {"type": "item.completed", "item": {"id": f"item_{n}", "type": "agent_message", "text": text}}
        for n, text in enumerate(texts)
    ]  # fmt: skip
    usage = {"input_tokens": 30, "cached_input_tokens": 10, "output_tokens": 7}
    rows: list[Any] = [
        {"type": "thread.started", "thread_id": "t-1"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "r", "type": "reasoning", "text": "hm"}},
        *items,
        {"type": "turn.completed", "usage": usage},
    ]
    return [as_line(row) for row in rows]


def gemini(*pieces: str) -> list[str]:
    """Return what `gemini --output-format stream-json` prints."""
    said = [{"type": "message", "role": "assistant", "content": each, "delta": True} for each in pieces]  # fmt: skip
    rows: list[Any] = [
        {"type": "init", "session_id": "g-1", "model": "gemini-3-flash"},
        {"type": "message", "role": "user", "content": "hi"},
        *said,
        {"type": "result", "status": "success", "stats": {"input_tokens": 30, "output_tokens": 7, "cached": 10}},
    ]  # fmt: skip
    return ["Loaded cached credentials.\n", *(as_line(row) for row in rows)]


def pi(*pieces: str) -> list[str]:
    """Return what `pi --mode json` prints."""
    message = {"role": "assistant", "content": [{"type": "text", "text": "".join(pieces)}], "stopReason": "stop",
               "usage": {"input": 15, "output": 7, "cacheRead": 10, "cacheWrite": 5, "cost": {"total": 0.002}}}  # fmt: skip
    updates = [
        {"type": "message_update", "assistantMessageEvent": {"type": "text_delta", "delta": each}}
        for each in pieces
    ]
    rows: list[Any] = [
        {"type": "session", "version": 3, "id": "p-1"},
        {"type": "agent_start"},
        {"type": "message_end", "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]}},
        {"type": "message_start", "message": {"role": "assistant", "content": []}},
        *updates,
        {"type": "message_end", "message": message},
        {"type": "agent_end", "messages": []},
    ]  # fmt: skip
    return [as_line(row) for row in rows]


def as_line(row: Any) -> str:
    """Return a row as a line of JSON, in UTF-8 as a script holds bytes."""
    return (json.dumps(row, ensure_ascii=False) + "\n").encode().decode("latin-1")
