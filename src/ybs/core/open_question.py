"""A question that waits for the person, as every frontend is told of it."""

from msgspec import Struct


class OpenQuestion(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question that waits for the person: what any frontend needs to ask it, and the `id` that an answer names.

    `choices` are those of the model's own question (None: it is about a call). The fields are those of `ybs.core.ports.Question`.
    """

    id: str
    name: str
    title: str
    preview: str = ""
    warnings: tuple[str, ...] = ()
    reason: str = ""
    grant: str = ""
    can_be_kept: bool = False
    withheld: str = ""
    offers_network: bool = False
    needs_network: bool = False
    network_grant: str = ""
    outside: str = ""
    choices: tuple[str, ...] | None = None
    takes_reason: bool = True
    offers_asking: bool = False
    effect: str = ""
    paths: tuple[str, ...] = ()
    agent: str = ""
