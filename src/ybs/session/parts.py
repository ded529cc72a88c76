"""The parts of a session for the time of one conversation: made in order, each from those before it."""

from collections.abc import Sequence

from msgspec.structs import replace

from ybs.agent.environment import Person
from ybs.agent.hooks import HookFacts
from ybs.agent.model_choice import check_place, next_model, open_model
from ybs.config.layers import Loaded
from ybs.config.schema import PromptForm
from ybs.core.ports import Answer, Question
from ybs.providers.registry import ProviderModel
from ybs.session.composer import Composer, attacher_in
from ybs.session.journal import Journal, named
from ybs.session.main_agent import MainAgent, SessionPorts
from ybs.session.options import Options
from ybs.session.settings import checked_environment
from ybs.session.turn_runner import TurnRunner
from ybs.transcripts.store import SessionStore

NOTHING_SAID = (
    "All saved sessions of {folder} are empty, so a new one was started. "
    "They can be listed, and resumed by name."
)
NOTHING_SAVED = "No session of {folder} is saved, so a new one was started."


class SessionParts:
    """The environment, the journal, the main agent and what takes its turns; `loaded` are the settings in force.

    `is_first`: they do not stand in for another conversation of the same run.

    Raises ConfigError for what makes a start impossible.
    """

    def __init__(
        self,
        options: Options,
        loaded: Loaded,
        model: tuple[str, ProviderModel],
        ports: SessionPorts,
        *,
        is_first: bool,
    ) -> None:
        self._options, self._ports, self._is_first = options, ports, is_first
        person = Person(
            confirm=self._ask,
            emit=ports.emit,
            facts=self._facts,
            is_attended=ports.is_attended,
            jobs_changed=ports.tell_state,
        )
        self.environment, self._user_hooks = checked_environment(options, loaded, person)
        environment = self.environment
        remark = environment.place_remark
        check_place(loaded.host, environment.incognito, *model, loaded.config)
        self.journal = Journal(
            self._store,
            lambda: environment.secrets.firewall,
            ports.emit,
            may_write=loaded.config.session.auto_save and environment.incognito.may_write,
        )
        self.loaded = _warned(environment.loaded, [remark] if remark else [])
        self.composer = Composer(
            lambda tell: attacher_in(environment, tell), ports.emit, self._user_hooks
        )
        self.main = MainAgent(options, environment, self.journal, self.composer, ports, model)
        is_alone = options.is_one_shot and options.resume is None
        self.runner = TurnRunner(
            self.main,
            self.journal,
            self.composer,
            ports,
            is_one_shot=is_alone,
            is_of_others=options.is_shared or options.is_piped,
        )

    def _facts(self) -> HookFacts:
        fresh = "startup" if self._is_first else "clear"
        source = "resume" if self.journal.earlier else fresh
        messages = self.main.conversation.messages
        return HookFacts(name=self.journal.name, source=source, messages=messages)

    async def _ask(self, question: Question) -> Answer:
        with self.main.delegating.paused():
            return await self._ports.confirm(question)

    def _store(self) -> SessionStore:
        config, host = self.environment.config, self.environment.host
        folder = host.expand(config.session.storage_path, self.environment.folder)
        return SessionStore(folder, self._options.session_mark)

    def next_model(self, loaded: Loaded) -> tuple[str, ProviderModel]:
        """Return what a session goes on with under other settings: the same model, where they say the same of it.

        Raises what `open_model` and `next_model` raise.
        """
        own, name, model = self._options.model, self.main.provider, self.main.agent.model.name
        if loaded.config.llm != self.loaded.config.llm:
            return open_model(loaded, own)
        return name, next_model(loaded, own, provider=name, model=model, is_persons=True)

    async def use(
        self, loaded: Loaded, provider: str, model: ProviderModel, form: PromptForm | None
    ) -> None:
        """Go on with another model, and with the settings that it was made by."""
        await self.main.use(provider, model, form)
        self.loaded = loaded

    def take_up(self, name: str, *, is_fork: bool) -> None:
        """Go on with a saved session. Raises Busy, YbsError and OSError."""
        self.journal.take_up(name, is_fork=is_fork)
        self.environment.workspace.began(self.journal.began_ns, self.journal.repository)
        self.main.conversation.replace(self.journal.replay.messages)
        self.main.call_ids.reserve(self.journal.replay.call_ids)

    def take_up_meant(self, word: str, *, is_fork: bool) -> None:
        """Go on with the session that a word means, the newest of this folder where there is none. Raises YbsError.

        Where nothing was said in any session of the folder, a new one begins, with a warning.
        """
        folder, store = self.environment.folder, self._store()
        if name := named(store, folder, word):
            self.take_up(name, is_fork=is_fork)
            return
        text = NOTHING_SAID if store.sessions(project=str(folder)) else NOTHING_SAVED
        self.loaded = _warned(self.loaded, (text.format(folder=folder),))

    async def aclose(self, reason: str = "other") -> None:
        """End what runs in the background and close connections; `reason` is what hooks are told."""
        try:
            await self.main.delegating.aclose()
            if self._user_hooks is not None:
                await self._user_hooks.aclose(reason)
            await self.main.aclose()
            await self.environment.aclose()
            await self.main.recorder.tell_of_others(self._ports.emit)
        finally:
            self.main.recorder.close()
            await self.main.agent.model.aclose()


def _warned(loaded: Loaded, warnings: Sequence[str]) -> Loaded:
    """Return the settings with more to tell the person of them."""
    return replace(loaded, warnings=(*loaded.warnings, *warnings)) if warnings else loaded
