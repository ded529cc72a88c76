"""Puts a secret back in place of its placeholder, in an edit of the file that already holds it and nowhere else."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ybs.core.errors import Refused
from ybs.core.messages import ToolCall
from ybs.security.firewall.vault import PLACEHOLDER, Vault, is_placeholder

#: Reads a file that a tool names; None where there is none or it may not be read.
Read = Callable[[str], str | None]
#: The tools that change a file by its path, and all the arguments they may have beside it.
EDITING: Mapping[str, frozenset[str]] = {
    "edit_file": frozenset(("path", "old_text", "new_text", "replace_all")),
    "write_file": frozenset(("path", "content")),
}


class Restorer:
    """Knows the vault and how a file is read."""

    def __init__(self, vault: Vault, read: Read) -> None:
        self._vault, self._read = vault, read

    def restored(self, call: ToolCall) -> ToolCall:
        """Return the call with secrets in place of placeholders. Raises Refused where they must not stand."""
        whole = bytes(call.arguments) + call.invalid.encode("utf-8", "surrogatepass")
        if b"ybs:secret:" not in whole and b"\\u" not in whole:
            return call
        try:
            arguments: dict[str, Any] = msgspec.json.decode(call.arguments)
        except msgspec.DecodeError as error:
            raise Refused(
                f"{call.name}: the arguments hold a placeholder and are not JSON"
            ) from error
        found = placeholders_in(arguments) + placeholders_in(call.invalid)
        if not found:
            return call
        held = self._held(call, arguments, found)
        put_back = {name: _put_back(value, held) for name, value in arguments.items()}
        return replace(call, arguments=Raw(msgspec.json.encode(put_back)))

    def _held(self, call: ToolCall, arguments: dict[str, Any], found: list[str]) -> dict[str, str]:
        """Return the text with the secrets put back. Raises Refused unless the edited file holds them all."""
        allowed = EDITING.get(call.name)
        path = arguments.get("path")
        if allowed is None or not isinstance(path, str) or not allowed.issuperset(arguments):
            raise Refused(_outside(found[0], call.name))
        if placeholders_in(path):
            raise Refused(_outside(found[0], "a path"))
        text = self._read(path)
        held: dict[str, str] = {}
        for placeholder in found:
            value = self._vault.value(placeholder)
            if value is None and text is not None and placeholder in text:
                continue  # the file has these very words
            if value is None or text is None or value not in text:
                raise Refused(
                    f"{placeholder} stands for a secret that {path} does not hold; nothing was written. "
                    "A secret can only stay where it is. Leave it out, or read it from the environment."
                )
            held[placeholder] = value
        return held


def placeholders_in(data: Any) -> list[str]:
    """Return the placeholders in the texts of plain data, names of members too."""
    match data:
        case str():
            return [m[0] for m in PLACEHOLDER().finditer(data) if is_placeholder(m[0])]
        case list():
            items = cast("list[Any]", data)
            return [found for item in items for found in placeholders_in(item)]
        case dict():
            members = cast("dict[str, Any]", data)
            return [
                found
                for name, value in members.items()
                for found in (*placeholders_in(name), *placeholders_in(value))
            ]
        case _:
            return []


def _put_back(value: Any, held: Mapping[str, str]) -> Any:
    if not isinstance(value, str):
        return value
    return PLACEHOLDER().sub(lambda match: held.get(match[0], match[0]), value)


def _outside(placeholder: str, where: str) -> str:
    return (
        f"{placeholder} stands for a secret; it cannot be used in {where}. "
        "Only an edit of the file that holds it can keep it."
    )
