"""A question that waits for the person, as every frontend is told of it."""

from typing import Literal

from msgspec import Struct


class OpenQuestion(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question that waits for the person: what any frontend needs to ask it, and the `id` that an answer names.

    `choices` are those of a question of who asks itself (None: it is about a call). The fields are those of `ybs.core.ports.Question`
    and of its preview.
    """

    id: str
    name: str
    title: str
    preview: str = ""
    warnings: tuple[str, ...] = ()
    reason: str = ""
    grant: str = ""
    can_be_kept: bool = False
    offers_network: bool = False
    outside: Literal["", "offered", "needed"] = ""
    choices: tuple[str, ...] | None = None
    server: str = ""
    agent: str = ""
    effect: Literal["read", "write", "edit", "delete", "execute"] = "read"
    withheld: str = ""
    network_grant: str = ""
    takes_reason: bool = True
    needs_network: bool = False
    offers_asking: bool = False
    paths: tuple[str, ...] = ()
    is_diff: bool = False
