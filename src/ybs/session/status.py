"""The status of a session for a frontend, and how much of the work the person sees."""

from typing import TYPE_CHECKING

from msgspec import Struct

from ybs.config.schema import Mode
from ybs.context.project import branch_of
from ybs.core.events import StateChanged
from ybs.core.messages import Usage
from ybs.core.open_question import OpenQuestion
from ybs.providers.remote import RemoteModel

if TYPE_CHECKING:
    from ybs.session.parts import SessionParts


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
    #: Whether the mode `ask` asks before each edit.
    asks_before_edits: bool = False

    @property
    def shown_mode(self) -> str:
        """The mode, as `/mode` takes it."""
        return "ask edits" if self.mode == "ask" and self.asks_before_edits else self.mode

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


def state_of(
    parts: "SessionParts",
    questions: tuple[OpenQuestion, ...],
    *,
    waiting: tuple[str, ...],
    is_busy: bool,
) -> StateChanged:
    """Return where a session of these parts stands."""
    environment, agent = parts.environment, parts.main.agent
    return StateChanged(
        name=parts.journal.name,
        title=parts.journal.replay.title,
        provider=agent.provider,
        model=agent.model.name,
        mode=environment.policy.mode,
        sandbox=environment.sandbox.word,
        is_busy=is_busy,
        waiting=waiting,
        questions=questions,
        jobs=environment.workspace.shells.running_jobs,
        steps=parts.main.context.steps,
    )


def status_of(
    parts: "SessionParts", usage: Usage, *, answered_by: str, context_tokens: int
) -> Status:
    """Return the status line of a session with this usage, whose last answer came from that model."""
    agent, environment = parts.main.agent, parts.environment
    return Status(
        provider=agent.provider,
        server=agent.server,
        model=agent.model.name,
        mode=environment.policy.mode,
        sandbox=environment.sandbox.word,
        folder=str(environment.folder),
        branch=branch_of(environment.folder),
        window=agent.model.window,
        assumes_window=isinstance(agent.model, RemoteModel) and agent.model.assumes_window,
        context_tokens=context_tokens,
        usage=usage,
        title=parts.journal.replay.title,
        jobs=len(environment.workspace.shells.running_jobs),
        incognito=environment.incognito.is_on,
        documents=parts.main.context.names,
        answered_by=answered_by,
        asks_before_edits=environment.policy.asks_before_edits,
    )
