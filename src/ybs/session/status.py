"""What a frontend shows of a session: where things stand, and how much of the work the person sees."""

from msgspec import Struct

from ybs.config.schema import Mode
from ybs.core.messages import Usage


class Status(Struct, frozen=True, kw_only=True):
    """What a status line shows. Token counts are the provider's own where it gave any."""

    provider: str
    model: str
    mode: Mode
    sandbox: str
    folder: str
    branch: str
    window: int
    assumes_window: bool = False
    context_tokens: int
    usage: Usage
    #: What the provider is called for the person: an OpenAI-compatible server by its address.
    server: str = ""
    #: The session's title; empty before it has one.
    title: str = ""
    #: How many commands run in the background.
    jobs: int = 0
    incognito: bool = False
    #: The names of the context documents that count here.
    documents: tuple[str, ...] = ()
    #: The model that answered last: another one than `model` where that picks a model. Empty before an answer.
    answered_by: str = ""

    @property
    def shown_provider(self) -> str:
        """The provider's name, or the address where nothing else is known of it."""
        return self.server or self.provider

    @property
    def shown_model(self) -> str:
        """The model that answered last, or the one that is to answer."""
        return self.answered_by or self.model


class View(Struct, kw_only=True):
    """What the person sees of the work, which commands change."""

    streams: bool
    is_verbose: bool = False
