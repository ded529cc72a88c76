"""The arguments of the git tool."""

from typing import Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

Action: TypeAlias = Literal["status", "diff", "log", "add", "commit", "branch", "restore"]


class GitArguments(Struct, frozen=True, kw_only=True):
    """What git takes. UNSET keeps the schema short: each byte of it is in every request."""

    action: Action | UnsetType = UNSET
    paths: tuple[str, ...] | UnsetType = UNSET
    text: str | UnsetType = UNSET
