"""What a session is made of, as long as one conversation lives: made in order, each from what stands before it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ybs.agent.build import AgentSpec, BuiltAgent, build_agent
from ybs.agent.environment import ToolEnvironment
from ybs.agent.model_choice import check_place, is_small, next_model, open_model
from ybs.agent.prompt_context import PromptContext
from ybs.config.layers import Loaded
from ybs.config.schema import PromptForm
from ybs.core.call_ids import CallIds
from ybs.core.conversation import Conversation
from ybs.core.envelope import MAIN
from ybs.core.events import Emit
from ybs.core.ports import Confirm, Guard, Model
from ybs.guards.planning import Planning
from ybs.guards.steering import Steering
from ybs.providers.registry import ProviderModel
from ybs.session.composer import Composer, attacher_in
from ybs.session.journal import Journal, Syncing, named
from ybs.session.options import Options, read_prompt
from ybs.session.recorder import TurnRecorder
from ybs.session.warming import Warming
from ybs.transcripts.store import Store

if TYPE_CHECKING:
    from ybs.guards.answer_form import AnswerForm

NOTHING_SAID = (
    "All saved sessions of {folder} are empty, so a new one was started. "
    "They can be listed, and resumed by name."
)


def _as_it_is(model: Model) -> Model:
    return model


def _form_of(schema: Any) -> "AnswerForm | None":
    if schema is None:
        return None
    from ybs.guards.answer_form import AnswerForm  # few ask for one
    from ybs.guards.json_schema import JsonSchema

    return AnswerForm(JsonSchema(schema))


class SessionPorts(Struct, frozen=True, kw_only=True):
    """What the parts of a session may ask of it: to tell something, to ask the person, and what was spent (USD)."""

    emit: Emit
    confirm: Confirm
    is_attended: Callable[[], bool]
    spent_usd: Callable[[], float]


class SessionParts:
    """The environment, the journal, the prompt context, the agent and what stands between them.

    Raises ConfigError for what makes a start impossible.
    """

    def __init__(
        self,
        options: Options,
        loaded: Loaded,
        provider: str,
        model: ProviderModel,
        ports: SessionPorts,
    ) -> None:
        self.loaded, self._ports = loaded, ports
        self.environment = environment = ToolEnvironment(
            options.folder,
            loaded,
            options.permissions,
            confirm=ports.confirm,
            is_attended=ports.is_attended,
        )
        check_place(loaded.host, environment.incognito, provider, model, loaded.config)
        own_prompt = read_prompt(options, loaded)
        self.context = PromptContext(
            environment,
            own_prompt=own_prompt,
            commands=options.commands.pointed_to if options.commands else (),
        )
        self.journal = Journal(
            self.store,
            lambda: environment.secrets.firewall,
            ports.emit,
            may_write=loaded.config.session.auto_save and environment.incognito.may_write,
        )
        self._warming = Warming(has_sandbox=environment.workspace.has_sandbox)
        self.recorder = TurnRecorder(environment, self.journal, self.store, self._warming)
        self.hooks = (self.recorder, *options.hooks)
        self.composer = Composer(lambda tell: attacher_in(environment, tell), ports.emit)
        self.steering = Steering(self.composer.compose_meanwhile, self.composer.tell_news)
        self.conversation, self.call_ids = Conversation(own_prompt, []), CallIds()
        self._guards, self._tools, self._toolboxes = (
            options.guards,
            options.tools,
            options.toolboxes,
        )
        self._prompt_form: PromptForm | None = None
        #: What the answer to each prompt has to be, where the program or the person said it.
        self.form = _form_of(options.output_schema)
        self.agent = self.build(provider, model)

    def store(self) -> Store:
        """Return the saved sessions."""
        return Store(
            self.environment.host.expand(
                self.loaded.config.session.storage_path, self.environment.folder
            )
        )

    def build(
        self, provider: str, model: ProviderModel, form: PromptForm | None = None
    ) -> BuiltAgent:
        """Build the agent for a model; the prompt context tells of that model from now on.

        `form` is that of the prompt, where it is not the one of the settings.
        """
        self._prompt_form = form
        is_short = is_small(self.loaded.host, provider, model, self.loaded.config, form)
        self.context.use(provider, model, is_short=is_short)
        support, guards = self._support_for_small() if is_short else (_as_it_is, ())
        spec = AgentSpec(
            name=MAIN,
            provider=provider,
            model=model,
            conversation=self.conversation,
            call_ids=self.call_ids,
            is_short=is_short,
            context=self.context,
            first_guards=(self.steering,),
            guards=(
                Planning(lambda: self.environment.policy.mode == "plan"),
                *guards,
                *self._guards,
                *([self.form] if self.form else []),
            ),
            last_guards=(Syncing(self.journal),),
            hooks=self.hooks,
            tools=self._tools,
            toolboxes=self._toolboxes,
            spent_usd=self._ports.spent_usd,
            wrap=lambda each: self._warming.awaiting(support(self._formed(each))),
        )
        return build_agent(spec, self.environment, self._ports.emit)

    def next_model(self, loaded: Loaded, own: Model | None) -> tuple[str, ProviderModel]:
        """Return what a session goes on with under other settings: the same model, where they say the same of it.

        Raises what `open_model` and `next_model` raise.
        """
        host, now, old = loaded.host, loaded.config, self.agent
        if now.llm != self.loaded.config.llm:
            return open_model(host, now, own)
        name = old.provider
        return name, next_model(host, now, own, provider=name, model=old.model.name)

    async def reload_tools(self) -> None:
        """Look for the person's own tools again, and have the agent offer them."""
        self.environment.forget_skills()
        await self.environment.external_tools.reload()
        old = self.agent
        self.agent = self.build(old.provider, old.model, self._prompt_form)
        await old.toolbox.aclose()

    def _formed(self, model: Model) -> Model:
        return self.form.around(model) if self.form else model

    def _support_for_small(self) -> tuple[Callable[[Model], Model], tuple[Guard, ...]]:
        """Return what is put around a small model, and the guards that go with it."""
        from ybs.agent.small import supported  # for small models only

        return supported(
            self.context.brief,
            self.environment.roots,
            lambda call: self.agent.toolbox.is_read_only(call),
        )

    def take_up(self, name: str, *, is_fork: bool) -> None:
        """Go on with a saved session. Raises Busy, YbsError and OSError."""
        self.journal.take_up(name, is_fork=is_fork)
        self.conversation.replace(self.journal.replay.messages)
        self.call_ids.reserve(self.journal.replay.call_ids)

    def take_up_meant(self, word: str, *, is_fork: bool) -> None:
        """Go on with the session that a word means, the newest of this folder where there is none. Raises YbsError.

        Where nothing was said in the newest ones a new session begins, with a warning.
        """
        folder = self.environment.folder
        if name := named(self.store(), folder, word):
            self.take_up(name, is_fork=is_fork)
            return
        text = NOTHING_SAID.format(folder=folder)
        self.loaded = replace(self.loaded, warnings=(*self.loaded.warnings, text))

    async def aclose(self) -> None:
        """End what runs in the background and close connections."""
        try:
            await self.agent.toolbox.aclose()
            await self.context.aclose()
            await self.environment.aclose()
        finally:
            self.recorder.close()
            await self.agent.model.aclose()
