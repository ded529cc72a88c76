"""What a session is made of, as long as one conversation lives: made in order, each from what stands before it."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ybs.agent.build import AgentSpec, BuiltAgent, build_agent
from ybs.agent.environment import Person, ToolEnvironment
from ybs.agent.model_choice import (
    check_place,
    is_small,
    may_turn_out_small,
    next_model,
    open_model,
    routed,
    size_of,
)
from ybs.agent.prompt_context import PromptContext
from ybs.conductor.delegating import Delegating
from ybs.conductor.home import Home
from ybs.config.layers import Loaded
from ybs.config.schema import PromptForm
from ybs.core.call_ids import CallIds
from ybs.core.conversation import Conversation
from ybs.core.envelope import MAIN
from ybs.core.errors import YbsError
from ybs.core.events import Event, Noticed
from ybs.core.hooks import CallHook
from ybs.core.messages import UserMessage
from ybs.core.ports import Answer, Confirm, Guard, Model, Question
from ybs.core.unseen import HidingModel
from ybs.guards.planning import Planning
from ybs.guards.steering import Steering
from ybs.providers.registry import ProviderModel
from ybs.session.composer import Composer, attacher_in
from ybs.session.journal import Journal, Syncing, begun_ns, named
from ybs.session.options import Options, read_prompt
from ybs.session.recorder import TurnRecorder
from ybs.session.warming import Warming
from ybs.transcripts.store import Store

if TYPE_CHECKING:
    from ybs.agent.hooks import TurnHook
    from ybs.agent.routed import RoutedTurns
    from ybs.agent.user_hooks.hooks import UserHooks
    from ybs.guards.answer_form import AnswerForm
    from ybs.router.model import RoutedModel

NOTHING_SAID = (
    "All saved sessions of {folder} are empty, so a new one was started. "
    "They can be listed, and resumed by name."
)
NOTHING_SAVED = "No session of {folder} is saved, so a new one was started."


def _form_of(schema: Any) -> "AnswerForm | None":
    if schema is None:
        return None
    from ybs.guards.answer_form import AnswerForm  # few ask for one
    from ybs.guards.json_schema import JsonSchema

    return AnswerForm(JsonSchema(schema))


class EmitOf(Protocol):
    """Takes the events of all agents; those of a sub-agent with its name and the call that started it."""

    def __call__(self, event: Event, /, *, agent: str = MAIN, started_by: str = "") -> None:
        """Take an event."""
        ...


class SessionPorts(Struct, frozen=True, kw_only=True):
    """What the parts of a session may ask of it: to tell something or where it stands, to ask the person, and what was spent (USD)."""

    emit: "EmitOf"
    confirm: Confirm
    is_attended: Callable[[], bool]
    spent_usd: Callable[[], float]
    tell_state: Callable[[], None] = lambda: None


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
        self.loaded, self._ports, self._options = loaded, ports, options
        #: Whether it stands in for another conversation of the same run.
        self.is_after_another = False
        self.environment = environment = ToolEnvironment(
            options.folder,
            loaded,
            options.permissions,
            person=self._person(),
        )
        if notes := environment.secure_code(environment.roots.folders):
            self.loaded = loaded = replace(loaded, warnings=(*loaded.warnings, *notes))
        if remark := environment.place_remark:
            self.loaded = loaded = replace(loaded, warnings=(*loaded.warnings, remark))
        check_place(loaded.host, environment.incognito, provider, model, loaded.config)
        own_prompt = read_prompt(options, loaded)
        pointed_to = options.commands.pointed_to if options.commands else ()
        self.context = PromptContext(environment, own_prompt=own_prompt, commands=pointed_to)
        self.journal = Journal(
            self.store,
            lambda: environment.secrets.firewall,
            ports.emit,
            may_write=loaded.config.session.auto_save and environment.incognito.may_write,
        )
        self._warming = Warming(has_sandbox=environment.workspace.has_sandbox)
        self.recorder = TurnRecorder(environment, self.journal, self.store, self._warming)
        #: The programs that run around prompts and calls; most sessions have none.
        self.user_hooks = self._user_hooks() if loaded.config.hooks else None
        own_hooks = (self.user_hooks,) if self.user_hooks else ()
        first = (options.editor,) if options.editor else ()
        self.hooks = (*first, self.recorder, *options.hooks, *own_hooks)
        self.composer = Composer(lambda tell: attacher_in(environment, tell), ports.emit)
        self.steering = Steering(self._composed_meanwhile, self.composer.tell_news)
        self.conversation, self.call_ids = Conversation(own_prompt, []), CallIds()
        #: What starts sub-agents, and watches over them.
        self.delegating = environment.delegate = self._delegating()
        self._prompt_form: PromptForm | None = None
        self._fitting = asyncio.Lock()
        #: What picks the model of each turn, where one is picked.
        self.routed: RoutedTurns | None = None
        #: What the answer to each prompt has to be, where the program or the person said it.
        self.form = _form_of(options.output_schema)
        self.agent = self.build(provider, model)

    def _person(self) -> Person:
        ports = self._ports
        return Person(
            confirm=self._ask, is_attended=ports.is_attended, jobs_changed=ports.tell_state
        )

    async def make_way(self, parts: "SessionParts") -> None:
        """Let those of another conversation take the place: sub-agents end, as what they tell is of this one."""
        await self.delegating.aclose()
        parts.is_after_another = True
        now, before = parts.environment.workspace, self.environment.workspace
        now.since_ns = min(now.since_ns, before.since_ns)

    def _delegating(self) -> Delegating:
        options, ports = self._options, self._ports
        home = Home(
            environment=self.environment,
            context=self.context,
            conversation=self.conversation,
            call_ids=self.call_ids,
            main=lambda: self.agent,
            tell=ports.emit,
            hooks=self.hooks,
            hooks_in=self._hooks_in,
            last_guards=self._hook_guards,
            prepare=self._before_compaction,
            own_model=options.model,
            tools=options.tools,
            toolboxes=options.toolboxes,
            spent_usd=ports.spent_usd,
            taken=lambda: (each.agent for each in self.journal.earlier),
        )
        return Delegating(home, waits=options.is_one_shot)

    def _user_hooks(self) -> "UserHooks | None":
        """Return the hooks of the settings; what is wrong with some becomes a warning."""
        from ybs.agent.user_hooks.definitions import read
        from ybs.agent.user_hooks.hooks import SessionFacts, UserHooks

        found = read(self.loaded.config.hooks)
        self.loaded = replace(self.loaded, warnings=(*self.loaded.warnings, *found.problems))
        if not found.hooks or self._options.dry_run:
            return None

        def facts() -> SessionFacts:
            fresh = "clear" if self.is_after_another else "startup"
            source = "resume" if self.journal.earlier else fresh
            messages = self.conversation.messages
            return SessionFacts(name=self.journal.name, source=source, messages=messages)

        return UserHooks(found.hooks, self.environment, self._ports.emit, facts)

    async def _ask(self, question: Question) -> Answer:
        if self.user_hooks is not None:
            if (answer := await self.user_hooks.answer_to(question)) is not None:
                return answer
            self.user_hooks.notify("permission_prompt", f"ybs asks: {question.preview.title}")
        with self.delegating.paused():
            return await self._ports.confirm(question)

    async def first_words(self, prompt: Callable[[], Awaitable[UserMessage]]) -> UserMessage:
        """Return the words that a turn begins with, and what hooks add to them. Raises YbsError where one blocks them."""
        message = await prompt()
        return message if self.user_hooks is None else await self.user_hooks.submitted(message)

    async def _composed_meanwhile(self, words: str, typed: str | None) -> UserMessage | None:
        message = await self.composer.compose_meanwhile(words, typed)
        if message is None or self.user_hooks is None:
            return message
        try:
            return await self.user_hooks.submitted(message)
        except YbsError as error:
            self._ports.emit(Noticed(level="warning", text=str(error)))
            return None

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

        `form` is that of the prompt, where it is not the one of the settings. Of a routed model it is built for the one in use.
        """
        self._prompt_form, self._chosen = form, provider
        if (picking := routed(provider, model)) is not None:
            provider = picking.provider
        self.routed = self._turns_of(picking)
        is_short = is_small(self.loaded.host, provider, model, self.loaded.config, form)
        self.context.use(provider, model, is_short=is_short)
        support, guards = self._support_for_small(model) if is_short else (HidingModel, ())
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
                self.delegating,
                *guards,
                *self._options.guards,
                *([self.form] if self.form else []),
                *self._cascade(picking),
            ),
            last_guards=(*self._hook_guards(), Syncing(self.journal)),
            hooks=self.hooks,
            tools=self._options.tools,
            toolboxes=self._options.toolboxes,
            spent_usd=self._ports.spent_usd,
            wrap=lambda each: self._warming.awaiting(support(self._formed(each))),
        )
        agent = build_agent(spec, self.environment, self._ports.emit)
        self._before_compaction(agent)
        return agent

    def _turns_of(self, model: "RoutedModel | None") -> "RoutedTurns | None":
        if model is None or (self.routed is not None and self.routed.model is model):
            return self.routed if model is not None else None
        from ybs.agent.routed import RoutedTurns  # few sessions route

        mask = partial(self.environment.mask, place="a prompt")
        return RoutedTurns(model, self._next_tokens, self._rebuild, mask)

    def _cascade(self, model: "RoutedModel | None") -> tuple[Guard, ...]:
        settings = self.loaded.config.router.cascade
        if model is None or not settings.check:
            return ()
        from ybs.agent.cascade import cascade  # few have one

        return (cascade(model, settings, self.environment),)

    def _next_tokens(self) -> int:
        return self.agent.window.size_of(self.conversation.system, self.conversation.messages)

    async def _rebuild(self) -> None:
        """Build the agent for the model that was picked."""
        old = self.agent
        self.agent = self.build(self._chosen, old.model, self._prompt_form)
        await old.toolbox.aclose()

    async def use(
        self, provider: str, model: ProviderModel, form: PromptForm | None = None
    ) -> None:
        """Go on with another model, and close the one before."""
        old, before = self.agent, self.routed
        self.agent = self.build(provider, model, form)
        if before is not None:
            await before.aclose()
        await old.toolbox.aclose()  # the agent for the new model opens its own
        await old.model.aclose()

    @property
    def turn_hooks(self) -> "tuple[TurnHook, ...]":
        """What runs around a turn, in its order."""
        return (*self.hooks, *([self.routed] if self.routed else []))

    def _before_compaction(self, agent: BuiltAgent) -> None:
        if self.user_hooks is not None:
            agent.compaction.before = self.user_hooks.before_compaction

    def _hook_guards(self, agent: str = "", kind: str = "") -> tuple[Guard, ...]:
        if self.user_hooks is None:
            return ()
        from ybs.agent.user_hooks.guard import HookGuard

        return (HookGuard(self.user_hooks, agent, kind),)

    def _hooks_in(self, environment: ToolEnvironment) -> tuple[CallHook, ...]:
        """Return the hooks of an agent that works in a copy of the project; what reaches the project is recorded then."""
        own = self.user_hooks.elsewhere(environment) if self.user_hooks is not None else None
        return (*self._options.hooks, *([own] if own else []))

    def next_model(self, loaded: Loaded, own: Model | None) -> tuple[str, ProviderModel]:
        """Return what a session goes on with under other settings: the same model, where they say the same of it.

        Raises what `open_model` and `next_model` raise.
        """
        host, now, old = loaded.host, loaded.config, self.agent
        if now.llm != self.loaded.config.llm:
            return open_model(host, now, own, profile=loaded.profile)
        name = self._chosen
        model = next_model(
            host, now, own, provider=name, model=old.model.name, profile=loaded.profile
        )
        return name, model

    async def fit(self) -> None:
        """Ask the model's server how large the model is where nothing else says it, and build the agent that fits."""
        async with self._fitting:
            old, form, config = self.agent, self._prompt_form, self.loaded.config
            host, provider, model = self.loaded.host, old.provider, old.model
            if not may_turn_out_small(model, host, provider, config, form):
                return
            await model.ask_server()
            if is_small(host, provider, model, config, form):
                self.agent = self.build(provider, model, form)
                await old.toolbox.aclose()

    async def reload_tools(self) -> None:
        """Look for the person's own tools again, and have the agent offer them."""
        self.environment.forget_skills()
        await self.environment.external_tools.reload()
        await self._rebuild()

    def _formed(self, model: Model) -> Model:
        mask = self.environment.secrets.masked_schema
        return self.form.around(model, mask) if self.form else model

    def _support_for_small(
        self, model: Model
    ) -> tuple[Callable[[Model], Model], tuple[Guard, ...]]:
        """Return what is put around a small model, and the guards that go with it."""
        from ybs.agent.small_models.support import supported  # for small models only

        return supported(
            self.context.brief,
            self.environment.roots,
            lambda call: self.agent.toolbox.is_read_only(call),
            billions=size_of(model),
        )

    def take_up(self, name: str, *, is_fork: bool) -> None:
        """Go on with a saved session. Raises Busy, YbsError and OSError."""
        self.journal.take_up(name, is_fork=is_fork)
        self.environment.workspace.since_ns = begun_ns(name)
        self.conversation.replace(self.journal.replay.messages)
        self.call_ids.reserve(self.journal.replay.call_ids)

    def take_up_meant(self, word: str, *, is_fork: bool) -> None:
        """Go on with the session that a word means, the newest of this folder where there is none. Raises YbsError.

        Where nothing was said in any session of the folder, a new one begins, with a warning.
        """
        folder = self.environment.folder
        if name := named(self.store(), folder, word):
            self.take_up(name, is_fork=is_fork)
            return
        are_empty = self.store().sessions(project=str(folder))
        text = (NOTHING_SAID if are_empty else NOTHING_SAVED).format(folder=folder)
        self.loaded = replace(self.loaded, warnings=(*self.loaded.warnings, text))

    async def aclose(self, reason: str = "other") -> None:
        """End what runs in the background and close connections; `reason` is what hooks are told."""
        try:
            await self.delegating.aclose()
            if self.user_hooks is not None:
                await self.user_hooks.aclose(reason)
            if self.routed is not None:
                await self.routed.aclose()
            await self.agent.toolbox.aclose()
            await self.context.aclose()
            await self.environment.aclose()
        finally:
            self.recorder.close()
            await self.agent.model.aclose()
