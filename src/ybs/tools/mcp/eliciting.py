"""Elicitation: a server asks the person, in the midst of a call, for the fields of a flat JSON schema (MCP, "Elicitation")."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from ybs.config.tree import is_list, is_object
from ybs.core.messages import ToolCall
from ybs.core.ports import Confirm, Preview, Question
from ybs.tools.mcp.listed import cleaned, server_part

_MOST_FIELDS: Final = 100
_YES, _NO = "yes", "no"


async def asked(
    server: str, message: str, schema: Mapping[str, Any], confirm: Confirm
) -> dict[str, Any] | None:
    """Ask for each field of a flat schema; None where the person does not answer one that is required, or nobody is there."""
    fields: Any = schema.get("properties") or {}
    required: Any = schema.get("required") or []
    if not is_object(fields) or not all(map(is_object, fields.values())) or not is_list(required):
        return None
    if len(fields) > _MOST_FIELDS:
        return None
    answers: dict[str, Any] = {}
    for name, field in fields.items() or [("", {"type": "boolean"})]:
        value = await _one(server, message, name, field, confirm)
        if value is not None and name:
            answers[name] = value
        elif value in (None, False) and (name in required or not name):
            return None
    return answers


async def _one(server: str, message: str, name: str, field: Any, confirm: Confirm) -> Any:
    described = cleaned(str(field.get("description") or field.get("title") or name), 300)
    choices = _choices(field)
    title = f"The MCP server {server} asks"
    body = f"{message}\n{described}".strip() if name else message
    said = Raw(msgspec.json.encode({"question": body}))
    call = ToolCall(id="", name=f"mcp__{server_part(server)}", arguments=said)
    question = Question(
        call=call,
        effect="read",
        preview=Preview(title=title, body=body),
        choices=choices,
        server=server,
    )
    answer = await confirm(question)
    if answer.is_unattended or not answer.is_allowed or not answer.reason:
        return None
    return _read(answer.reason.strip(), field, choices)


def _choices(field: Any) -> tuple[str, ...]:
    if field.get("type") == "boolean":
        return (_YES, _NO)
    several: Any = field.get("oneOf")
    named = [each.get("const") for each in several if is_object(each)] if is_list(several) else []
    options: Any = field.get("enum") or named
    return tuple(cleaned(str(each), 100) for each in options) if is_list(options) else ()


def _read(text: str, field: Any, choices: tuple[str, ...]) -> Any:
    """Return the answer as the field wants it, None where it is not one."""
    kind = field.get("type")
    if choices and text not in choices:
        return None
    if kind == "boolean":
        return text == _YES
    if kind in ("number", "integer"):
        try:
            return int(text) if kind == "integer" else float(text)
        except ValueError:
            return None
    return text
