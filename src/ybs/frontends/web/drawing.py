"""Draws the events of a session as records for the page: small dictionaries with their words as text, or as HTML made here.

A record has `t`, its kind; `n`, the place of its event in the session; and of a sub-agent `a`, its name, and `by`, the call that started it.
"""

from collections.abc import Sequence
from typing import Any, Final, assert_never

import msgspec

from ybs.commands.advice import advised
from ybs.commands.figures import cell_text
from ybs.core import events
from ybs.core.decoding import object_in
from ybs.core.envelope import MAIN, Envelope
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolResult,
    UserMessage,
)
from ybs.core.open_question import OpenQuestion
from ybs.frontends.terminal.words import (
    compaction_words,
    duration,
    retry_words,
    routed_words,
    usage_line,
    verb,
)
from ybs.frontends.web import markup
from ybs.security.policy.case import without_identity
from ybs.security.unicode import printable, shown_whole, unabridged
from ybs.session.questions import asker_of, choices_of
from ybs.session.reply import Cell, CellKind, Reply, Table, TerminalActions
from ybs.tools.calls.describing import one_line, subject
from ybs.tools.editing.diff import diff_of_change

Record = dict[str, Any]
#: Pictures that a browser may draw without running anything.
PICTURES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))


def record_of(envelope: Envelope, place: int) -> Record | None:
    """Return what the page draws of an event; None where that is nothing."""
    drawn = _drawn(envelope.event, place)
    if drawn is not None:
        drawn["n"] = place
        if not envelope.is_main:
            drawn |= {"a": printable(envelope.agent), "by": envelope.started_by}
    return drawn


def _drawn(event: events.Event, place: int) -> Record | None:  # noqa: C901, PLR0911 - a case for each kind
    match event:
        case events.UserSaid():
            return _user(event.message, place)
        case events.AssistantSaid():
            return _answer(event.message)
        case (
            events.ToolStarted()
            | events.ToolPrinted()
            | events.ToolFinished()
            | events.ToolCallStreamed()
        ):
            return _call(event, place)
        case events.TextStreamed():
            return {"t": "text", "text": event.text}
        case events.ThinkingStreamed():
            return {"t": "think", "text": event.text}
        case (
            events.RequestStarted()
            | events.RequestRetried()
            | events.Noticed()
            | events.Compacted()
            | events.TurnFinished()
        ):
            return _progress(event)
        case events.ConfirmationAsked() | events.ConfirmationAnswered():
            return _confirmation(event)
        case events.FilesChanged() | events.FilesRestored() | events.SessionEnded():
            return _kept(event)
        case events.Rewound() | events.Replaced():
            return None  # `Followed` says what is gone
        case events.SessionStarted() | events.SystemPrompted() | events.StateChanged():
            return None
        case events.Titled() | events.PromptRead():
            return None  # the state has it, and a page says that it waits
        case _:
            assert_never(event)


def _user(message: UserMessage, place: int) -> Record | None:
    pictures = [part for part in message.content if isinstance(part, Image)]
    beside = message.text[len(message.words) :].strip()
    return {
        "t": "user",
        "origin": message.origin,
        "text": printable(message.words),
        "more": printable(beside)[: markup.MOST_OUTPUT],
        "pictures": [f"{place}/{number}" for number in range(len(pictures))],
    }


def _answer(message: AssistantMessage) -> Record:
    parts: list[Record] = []
    for part in message.content:
        match part:
            case Thinking() if part.text.strip():
                parts.append({"think": markup.markdown(part.text)})
            case Text() if part.text.strip():
                parts.append({"html": markup.markdown(part.text), "source": printable(part.text)})
            case _:
                pass
    is_cut = message.stop_reason in ("cut_off", "length", "refusal", "failed")
    why = f"{message.stop_reason.replace('_', ' ')} {message.stop_detail}".strip() if is_cut else ""
    return {"t": "said", "parts": parts, "model": printable(message.model), "cut": printable(why)}


def _call(
    event: events.ToolStarted | events.ToolPrinted | events.ToolFinished | events.ToolCallStreamed,
    place: int,
) -> Record | None:
    match event:
        case events.ToolStarted():
            about = subject(bytes(event.arguments))
            record = {"t": "tool", "id": event.id, "verb": verb(event.name), "about": about}
            return {**record, "args": _arguments(bytes(event.arguments), about)}
        case events.ToolPrinted():
            return {"t": "out", "id": event.id, "text": printable(event.text)}
        case events.ToolCallStreamed():
            return {"t": "writing", "id": event.id, "verb": verb(event.name)}
        case events.ToolFinished():
            return _result(event.result, place)


def _arguments(arguments: bytes, about: str) -> str:
    """Return the arguments of a call for people; nothing where one line says them all."""
    try:
        given = msgspec.json.decode(arguments, type=dict[str, Any])
    except msgspec.DecodeError:
        return markup.output(arguments.decode(errors="replace"))
    values = list(given.values())
    if len(values) == 1 and isinstance(values[0], str) and one_line(values[0]) == about:
        return ""
    lines = [
        f"{name}: {value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for name, value in given.items()
    ]
    return markup.output("\n".join(lines)) if lines else ""


def _result(result: ToolResult, place: int) -> Record:
    shown = object_in(result.display) or {}
    diff = "\n".join(filter(None, map(diff_of_change, result.changes)))
    streams = "\n".join(
        text for name in ("stdout", "stderr") if isinstance(text := shown.get(name), str) and text
    )
    said = "" if not result.is_error and shown.get("exit_code") == 0 else result.summary
    record: Record = {
        "t": "done",
        "id": result.call_id,
        "verb": verb(result.name),
        "ok": not result.is_error,
        "refused": result.is_refused,
        "said": one_line("refused" if result.is_refused else said)[:200],
        "took": duration(result.duration_seconds) if result.duration_seconds else "",
        "html": markup.output(streams or result.output) if not diff else "",
        "pictures": [f"{place}/{number}" for number in range(len(result.images))],
    }
    if diff:
        added, removed = markup.counts(diff)
        record |= {"diff": markup.diff(diff), "added": added, "removed": removed}
    if result.is_error and result.remedies:
        record["advice"] = printable(advised("", result.remedies)).strip()
    if isinstance(steps := shown.get("steps"), str):
        record["steps"] = printable(steps)
    return record


def _progress(
    event: events.RequestStarted
    | events.RequestRetried
    | events.Noticed
    | events.Compacted
    | events.TurnFinished,
) -> Record:
    match event:
        case events.RequestStarted():
            record: Record = {"t": "request", "model": printable(event.model)}
            return record | ({"routed": routed_words(event)} if event.decision else {})
        case events.RequestRetried():
            return {"t": "retry", "text": retry_words(event)}
        case events.Noticed():
            said = advised(event.text, event.remedies, separator=" ")
            return {"t": "note", "level": event.level, "text": printable(said)}
        case events.Compacted():
            return {"t": "note", "level": "info", "text": compaction_words(event, "→")}
        case events.TurnFinished():
            return {
                "t": "end",
                "reason": event.reason,
                "text": printable(advised(event.message, event.remedies)),
                "used": usage_line(event.usage, event.duration_seconds),
            }


def _confirmation(event: events.ConfirmationAsked | events.ConfirmationAnswered) -> Record:
    if isinstance(event, events.ConfirmationAsked):
        return {"t": "asked", "id": event.id}
    word = "allowed" if event.is_allowed else "not allowed"
    why = printable(": ".join(filter(None, (word, event.reason))))
    grant = f" ({printable(without_identity(event.grant))} from now on)" if event.grant else ""
    return {"t": "answered", "id": event.id, "ok": event.is_allowed, "text": f"{why}{grant}"}


def _kept(event: events.FilesChanged | events.FilesRestored | events.SessionEnded) -> Record | None:
    match event:
        case events.FilesChanged():
            paths = [printable(path) for path in event.paths]
            return {"t": "files", "paths": paths, "commit": event.commit[:7]}
        case events.FilesRestored():
            words = "Files were changed again." if event.is_redo else "Files are as before."
            return {"t": "note", "level": "info", "text": words}
        case events.SessionEnded():
            return {"t": "over"} if event.reason == "new_session" else None


def records_of(messages: Sequence[Message], place: int) -> list[Record]:
    """Return what the page draws of messages that came back, as if each were told where they were."""
    found: list[Record] = []
    for message in messages:
        match message:
            case UserMessage():
                drawn = _user(message, 0)
                found += [{**drawn, "pictures": []}] if drawn else []
            case AssistantMessage():
                found.append(_answer(message))
                found += [
                    {"t": "tool", "id": call.id, "verb": verb(call.name), "args": ""}
                    | {"about": subject(bytes(call.arguments))}
                    for call in message.calls
                ]
            case ToolResult():
                found.append({**_result(message, 0), "pictures": []})
    return [{**each, "n": place} for each in found]


def state_of(state: events.StateChanged) -> Record:
    """Return where a session stands."""
    return {
        "t": "state",
        "name": state.name,
        "title": printable(state.title),
        "provider": printable(state.provider),
        "model": printable(state.model),
        "mode": state.mode,
        "sandbox": state.sandbox,
        "busy": state.is_busy,
        "waiting": [printable(each) for each in state.waiting],
        "questions": [_question(each) for each in state.questions],
        "jobs": list(state.jobs),
        "steps": printable(state.steps),
    }


def _question(question: OpenQuestion) -> Record:
    is_about_call = question.choices is None
    body = question.preview or ("" if not is_about_call else question.title)
    return {
        "id": question.id,
        "title": one_line(question.title),
        "tool": one_line(question.name),
        "asks": asker_of(question),
        "agent": "" if question.agent in ("", MAIN) else one_line(question.agent),
        "body": markup.diff(body) if question.is_diff else _whole(body, is_code=is_about_call),
        "warnings": [unabridged(each) for each in question.warnings],
        "reason": unabridged(question.reason),
        "choices": _choices(question, with_network=False),
        "with_network": _choices(question, with_network=True) if question.offers_network else [],
        "needs_network": question.needs_network,
        "withheld": unabridged(question.withheld),
        "is_call": is_about_call,
    }


def _whole(body: str, *, is_code: bool) -> str:
    """Return all that is asked about, with long gaps in it counted instead of shown."""
    words = shown_whole(body)
    if not words:
        return ""
    return (
        f'<pre class="ask" tabindex="0">{markup.text(words)}</pre>'
        if is_code
        else markup.markdown(words)
    )


def _choices(question: OpenQuestion, *, with_network: bool) -> list[Record]:
    return [
        {"key": each.key, "label": unabridged(each.text), "words": each.wants_words}
        for each in choices_of(question, with_network=with_network).values()
        if each.key != "w"
    ]


def reply_of(reply: Reply, line: str) -> Record:
    """Return the answer of a command. The page has a prompt and a clipboard, and can close; programs need a terminal."""
    actions = reply.terminal
    if actions.program:
        reply, actions = reply.without_terminal(line), TerminalActions()
    record: Record = {
        "t": "reply",
        "line": printable(line),
        "error": reply.is_error,
        "text": printable(reply.text).strip("\n"),
        "tables": [table_of(each) for each in reply.tables if each.rows],
        "notes": [printable(each) for each in reply.notes if each],
        "diff": markup.diff(reply.diff) if reply.diff else "",
        "draft": actions.draft,
        "clipboard": actions.clipboard,
        "quit": actions.wants_quit,
    }
    if reply.menu is not None:
        items = [msgspec.to_builtins(each) for each in reply.menu.items]
        record["menu"] = {"title": printable(reply.menu.title), "items": items}
    return record


def table_of(table: Table) -> Record:
    """Return a table with its cells as texts; a share is a number from 0 to 1."""
    kinds: list[CellKind] = [column.kind for column in table.columns]
    rows = [
        {
            "level": row.level,
            "cells": [_cell(kind, cell) for kind, cell in zip(kinds, row.cells, strict=False)],
        }
        for row in table.rows
    ]
    heads = [column.head for column in table.columns]
    return {"kinds": kinds, "heads": heads if any(heads) else [], "rows": rows}


def _cell(kind: CellKind, cell: Cell) -> str | float:
    if kind == "share" and isinstance(cell, int | float):
        return round(float(cell), 4)
    return printable(cell_text(kind, cell))
