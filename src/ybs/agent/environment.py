"""The environment of a session's tools: folders, policy, sandbox, processes and the firewall. It does not need a model."""

import os
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from ybs.agent.hooks import HookFacts, PersonsHooks, TurnHook
from ybs.agent.secrets import Secrets
from ybs.config.document import visible
from ybs.config.host import Host, unnamed
from ybs.config.layers import Loaded
from ybs.config.paths import PERSONS_AGENTS, PROJECT_AGENTS, PROJECT_SKILLS
from ybs.config.schema import Config
from ybs.core.errors import ConfigError, Refused
from ybs.core.events import Emit
from ybs.core.hooks import CallHook
from ybs.core.ports import Confirm, Question
from ybs.security.firewall.structs import masked_question
from ybs.security.incognito import Incognito
from ybs.security.launcher import LOADERS, paths_in
from ybs.security.own_programs import OwnPrograms
from ybs.security.paths.own_code import code_in, find_installed, forget_in, is_program, make_missing
from ybs.security.paths.own_files import keep_apart
from ybs.security.paths.path_text import lies_in
from ybs.security.paths.roots import Roots
from ybs.security.paths.steps import is_away
from ybs.security.policy.confirm import Gate, nobody
from ybs.security.policy.policy import Policy
from ybs.security.sandbox.sandbox import Sandbox
from ybs.tools.shell.overflow import Outputs
from ybs.tools.shell.shells import Shells
from ybs.tools.workspace import Workspace
from ybs.trust.project_rules import ProjectRules

if TYPE_CHECKING:
    from ybs.security.paths.autorun_watch import AutorunWatch
    from ybs.security.policy.bound import Bound
    from ybs.tools.external.catalogue import Catalogue
    from ybs.tools.mcp.servers import Servers
    from ybs.tools.skills import Folder, Skills


class Permissions(Struct, frozen=True, kw_only=True):
    """What a frontend's options say about safety, beside the configuration.

    `allow` and `deny` are rules such as `run_shell(git log *)`; `add_dirs` are more folders to work in; without
    `has_sandbox` commands run bare; with `is_dry_run` calls are checked and never run; without `at_terminal` nothing counts that was
    allowed for the project or that a hook allows, and nothing more is kept.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    add_dirs: tuple[Path, ...] = ()
    has_sandbox: bool = True
    is_dry_run: bool = False
    at_terminal: bool = True


#: An output has at most so many characters for each token of the window, about a seventh of it, and never fewer than these.
CHARS_PER_WINDOW: Final = 0.6
FEWEST_CHARS: Final = 1_200
#: Where nobody has set how much that is, a large window gives more: so many for each of its tokens, up to the second.
COMFORTABLE_PER_WINDOW: Final = 0.3
MOST_UNASKED_CHARS: Final = 60_000
_OUTPUT_KEY: Final = "context.max_tool_output_chars"


class Person(Struct, frozen=True, kw_only=True):
    """Who is asked: `confirm` asks, and without it the answer is no; `is_attended` says whether anybody is there. What they should know goes to `emit`.

    `jobs_changed` is called when a command in the background begins or ends; `facts` are what their hooks are told.
    """

    confirm: Confirm = nobody
    emit: Emit = lambda event: None
    facts: Callable[[], HookFacts] = HookFacts
    is_attended: Callable[[], bool] = lambda: False
    jobs_changed: Callable[[], None] = lambda: None


NOBODY: Final = Person()


class _Made(Struct):
    """What is made when it is first needed, once for all agents that work in one folder."""

    lock: Lock = field(default_factory=Lock)
    secrets: Secrets | None = None
    external: "Catalogue | None" = None
    skills: "Skills | None" = None
    mcp: "Servers | None" = None
    hooks: PersonsHooks | None = None
    checks: tuple[TurnHook, ...] = ()
    watch: "AutorunWatch | None" = None
    #: Files of the person's that are left out, each in a sentence, and whether they were told.
    left_out: dict[str, bool] = field(default_factory=dict[str, bool])


class ToolEnvironment(Struct, frozen=True, kw_only=True, eq=False):
    """The folder, the policy, the sandbox, the workspace and the firewall that the agents of one session share.

    `original`: the folder is a copy of that one's, for a sub-agent; the rules, the questions and the firewall are the same, and programs
    that work on the project itself are not there. `only_tools` are the names of the tools that an agent may have; None: all.
    """

    folder: Path
    loaded: Loaded
    permissions: Permissions
    incognito: Incognito
    sandbox: Sandbox
    workspace: Workspace
    policy: Policy
    gate: Gate
    is_attended: Callable[[], bool]
    trusts: Callable[[], bool]
    original: "ToolEnvironment | None" = None
    only_tools: "Container[str] | None" = None
    made: _Made = field(default_factory=_Made)

    @classmethod
    def of(
        cls,
        folder: Path,
        loaded: Loaded,
        permissions: Permissions,
        *,
        person: Person = NOBODY,
        original: "ToolEnvironment | None" = None,
    ) -> "ToolEnvironment":
        """Make the environment of a folder. Raises ConfigError for rules that make no sense, and for a folder that may not be added."""
        folder, config = folder.resolve(), loaded.config
        incognito = Incognito.of(config.incognito)
        trusts = original.trusts if original else cache(lambda: _is_trusted(loaded, folder))
        blocked = (*config.safety.sandbox_blocked_paths, config.session.storage_path)
        theirs = loaded.blocked_by_project
        if original is not None:
            blocked += tuple(_in_copy(blocked, original.folder, folder, loaded.host))
            theirs += tuple(_in_copy(theirs, original.folder, folder, loaded.host))
        roots = _roots_of(folder, loaded, permissions, blocked, original and original.roots)
        copied = original.folder if original else None
        outputs = Outputs(roots, copied)
        sandbox = _sandbox_of(loaded, roots, outputs, (blocked, theirs), permissions, original)
        sandbox.sweep()

        workspace = Workspace(
            roots,
            shells=_shells_of(roots, sandbox, outputs, incognito, person),
            max_output_chars=config.context.max_tool_output_chars,
            own_programs=OwnPrograms(roots, trusts, copied, _trusts_added(loaded.host)),
            learn_keys=lambda text: made.secrets.firewall.learn_keys(text),  # pyright: ignore[reportUnknownLambdaType] - or None
            mask=lambda text: made.secrets.firewall.mask(text, "a call of git"),  # pyright: ignore[reportUnknownLambdaType] - or None
        )
        elsewhere = original and original.policy.elsewhere(lambda: sandbox.state)
        policy = elsewhere or _policy_of(loaded, folder, permissions, sandbox, trusts)
        gate = original.gate if original else Gate(policy, person.confirm)
        made = cls(
            folder=folder,
            loaded=loaded,
            permissions=permissions,
            incognito=incognito,
            sandbox=sandbox,
            workspace=workspace,
            policy=policy,
            gate=gate.by(policy),
            is_attended=(original or person).is_attended,
            trusts=trusts,
            original=original,
        )
        return made._checked_as(original) if original else made._secured()

    def _checked_as(self, original: "ToolEnvironment") -> "ToolEnvironment":
        """Have around the calls in a copy what stands around those in the project."""
        hooks, self.made.checks = original.user_hooks, original.made.checks
        self.made.hooks = hooks and hooks.elsewhere(self)
        return self

    def add_checks(self, *checks: TurnHook) -> None:
        """Have these around every call from now on, before those that stand there."""
        self.made.checks = (*checks, *self.made.checks)

    def use_hooks(self, hooks: PersonsHooks) -> None:
        """Have the person's hooks around every call, and asked before the person is."""
        self.made.hooks, self.gate.confirm = hooks, hooks.asked_before(self.gate.confirm)

    @property
    def user_hooks(self) -> PersonsHooks | None:
        """The programs of the person's that run around prompts and calls; None where there are none."""
        return self.made.hooks

    @property
    def checks(self) -> tuple[TurnHook, ...]:
        """What stands around every call, whoever asks for it: each toolbox of this environment has it behind what an agent has of its own."""
        return (*self.made.checks, *([self.made.hooks] if self.made.hooks else []))

    def around(self, hooks: Sequence[CallHook]) -> tuple[CallHook, ...]:
        """Return an agent's own hooks with what stands around every call."""
        return (*hooks, *self.checks)

    def _secured(self) -> "ToolEnvironment":
        """Load no more code from what tools may change, and warn where ybs lies there."""
        notes = self.secure_code(self.roots.folders)
        return replace(self, loaded=replace(self.loaded, warnings=(*self.loaded.warnings, *notes)))

    def secure_code(self, folders: Iterable[Path]) -> tuple[str, ...]:
        """Load no more code from what tools may change there; return what the person should know: that ybs lies there."""
        roots, code = self.roots, list[str]()
        if is_program():
            stamp, writes = self.host.state_folder / "own-files", self.incognito.may_write
            keep_apart(stamp, lambda link: roots.holds(link.resolve()), writes=writes)
        for folder in folders:
            make_missing(str(folder))
            find_installed(str(folder))
            forget_in(str(folder))
            code += code_in(str(folder))
        notes = tuple(self._loaded_from(folders))
        if not code:
            return notes
        names = ", ".join(roots.show(Path(path)) for path in dict.fromkeys(code))
        if not self.sandbox.holds_code:
            held = "File tools do not write there, but with the sandbox off every command can change ybs, so each is asked about."
        else:
            held = "That is read-only for tools and commands; change it in a shell of your own, or run ybs from an installation elsewhere."
        return (f"ybs itself runs from {names}. {held}", *notes)

    def _loaded_from(self, folders: Iterable[Path]) -> Iterator[str]:
        """Say which variables have the system or OpenSSL load libraries into ybs itself from where tools may write.

        The system read them before ybs began.
        An empty part of a list of folders is the one that ybs was started in.
        """
        tops = [str(each) for each in folders]
        for name in LOADERS if is_program() else ():
            named = paths_in(name, self.host.environ)
            is_list = name.endswith("PATH") and len(named) > 1
            paths = [os.path.join(os.getcwd(), each) for each in named if each or is_list]  # noqa: PTH109, PTH118
            if not all(is_away(path, tops) for path in paths):
                yield f"{name} leads into a folder that commands may change, and libraries are loaded from there into ybs itself. Start ybs without it."

    def for_sub_agent(
        self, loaded: Loaded, bound: "Bound | None", only_tools: "Container[str] | None"
    ) -> "ToolEnvironment":
        """Return this environment for an agent that may do less; what is not its own is ended by this one.

        `loaded` has its limits, `bound` what its kind leaves of what the policy allows at each moment. Its commands, and what it
        has read, are its own: end `workspace.shells` with it.
        """
        _ = self.secrets  # what is made when it is needed is to be made once
        if self.has_mcp():
            _ = self.mcp
        return replace(
            self,
            loaded=loaded,
            only_tools=only_tools,
            gate=self.gate.within(bound),
            workspace=self.workspace.apart(),
        )

    def tell_left_out(self, text: str) -> None:
        """Have the person told, once and with the next step of a turn, that a file of theirs is left out, and why."""
        self.made.left_out.setdefault(text, False)

    def has_agent_kinds(self) -> bool:
        """Return whether there may be kinds of sub-agents that are not built in, without loading what reads them."""
        own = self.host.persons(PERSONS_AGENTS)
        projects = (self.folder / name for name in PROJECT_AGENTS)
        has_plugin = any(each.agents for each in self.loaded.plugins)
        has_more = has_plugin or bool(self.config.agents.acp)
        return has_more or any(map(os.path.isdir, (*own, *projects)))

    def may_have(self, tool: str) -> bool:
        """Return whether an agent in this environment may have the tool of this name."""
        return self.only_tools is None or tool in self.only_tools

    @property
    def trusts_project(self) -> bool:
        """Whether the person trusts the project as it was when the session began; of a copy, the project that it is of."""
        return self.trusts()

    @property
    def host(self) -> Host:
        """The folders and the variables that it goes by."""
        return self.loaded.host

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self.loaded.config

    @property
    def roots(self) -> Roots:
        """The folders that tools may work in."""
        return self.workspace.roots

    @property
    def secrets(self) -> Secrets:
        """The firewall. It is loaded with the first turn, or by the thread that writes the input history."""
        with self.made.lock:
            if self.made.secrets is None and self.original is not None:
                self.made.secrets = self.original.secrets.reading(self.roots)
            if self.made.secrets is None:
                self.made.secrets = Secrets(
                    self.loaded, self.roots, self.gate.confirm, self.is_attended
                )
            return self.made.secrets

    @property
    def external_tools(self) -> "Catalogue":
        """The programs of the person that serve as tools, as long as the session lives."""
        if self.made.external is None:
            from ybs.tools.external.catalogue import Catalogue

            may_write = self.incognito.may_write
            cache_file = self.host.cache_folder / "tools.json" if may_write else None
            self.made.external = Catalogue(
                self.config.tools,
                self.workspace,
                self.loaded.review,
                cache_file,
                self.loaded.plugins,
            )
        return self.made.external

    def has_external_tools(self) -> bool:
        """Return whether there is a place where such programs may lie."""
        if self.original is not None:
            return False
        tools, host = self.config.tools, self.host
        has_plugin = any(each.tools for each in self.loaded.plugins)
        return bool(self.made.external or tools.external or has_plugin) or any(
            os.path.isdir(host.expand(name, self.folder))  # noqa: PTH112 - at every start
            for name in tools.search_paths
        )

    @property
    def mcp(self) -> "Servers":
        """The MCP servers, as long as the session lives."""
        if self.made.mcp is None:
            from ybs.tools.mcp.servers import Servers, Surface  # many have none

            sandbox = self.sandbox
            surface = Surface(
                network=self.config.network,
                start=sandbox.start_resident,
                is_off=lambda: sandbox.is_off,
                holds=sandbox.holds_reading,
                confirm=lambda: self.gate.confirm,
                hide=lambda values: self.secrets.firewall.vault.keep(values),
                may_share=self.incognito.may_write,
                review=lambda: self.loaded.review,
            )
            pins = self.host.state_folder / "mcp.json"
            self.made.mcp = Servers(self.config.mcpServers, self.workspace, surface, pins)
        return self.made.mcp

    def has_mcp(self) -> bool:
        """Return whether there are MCP servers in the settings."""
        return bool(self.config.mcpServers) and self.original is None

    @property
    def skills(self) -> "Skills":
        """The skills of the person and of the project, found once."""
        if self.original is not None:
            return self.original.skills
        if self.made.skills is None:
            from ybs.tools.skills import find_skills

            self.made.skills = find_skills(
                list(self._skill_folders()),
                self.loaded.review,
                only=self.config.skills.only,
                may_open=self.sandbox.may_show,
            )
            for each in self.made.skills.unusable:
                if each.is_told:
                    self.tell_left_out(f"The skill {each.place} is left out: {each.why}.")
        return self.made.skills

    def forget_skills(self) -> None:
        """Look for skills again when they are next asked for."""
        self.made.skills = None

    def has_skills(self) -> bool:
        """Return whether there is a place where skills may lie, without loading what reads them."""
        if self.original is not None:
            return self.original.has_skills()
        names = (*self.config.skills.search_paths, *PROJECT_SKILLS)
        if any(each.skill_folders for each in self.loaded.plugins):
            return True
        return any(os.path.isdir(self.host.expand(name, self.folder)) for name in names)  # noqa: PTH112 - at every start

    @property
    def place_remark(self) -> str:
        """What the person should know of the folder, where it is no project's; empty for any other."""
        home, folder = os.path.realpath(self.host.home), str(self.roots.folder)
        if self.sandbox.is_off or not lies_in(home, folder):
            return ""
        where = "your home folder" if home == folder else "a folder that holds your home folder"
        return (
            f"This is {where}: files can be read and changed here, but commands run only in the folder of a "
            "project; start ybs there for them."
        )

    def open_skill(self, folder: Path) -> None:
        """Let tools and commands read the folder of a skill of the person's own."""
        self.roots.add(folder, is_read_only=True)
        self.sandbox.show(folder)

    def _skill_folders(self) -> "Iterator[Folder]":
        from ybs.tools.skills import Folder

        for name in self.config.skills.search_paths:
            path = self.host.expand(name, self.folder)
            yield Folder(path, self.host.short(str(path)), not Host.is_whole(name))
        for name in PROJECT_SKILLS:
            yield Folder(self.folder / name, name, is_projects=True)
        for plugin in self.loaded.plugins:
            for name in plugin.skill_folders:
                path = plugin.folder / name
                yield Folder(path, self.host.short(str(path)), plugin=plugin)

    def fit_outputs(self, window: int) -> None:
        """Have no output of a tool take more of the model's window than fits beside rules, tools and words."""
        most = self.config.context.max_tool_output_chars
        if self.loaded.origins[_OUTPUT_KEY].layer == "default":  # nobody has set it
            most = max(most, min(round(window * COMFORTABLE_PER_WINDOW), MOST_UNASKED_CHARS))
        fitting = max(round(window * CHARS_PER_WINDOW), FEWEST_CHARS) if window else most
        self.workspace.limit_outputs(min(most, fitting))

    def mask(self, text: str, place: str) -> str:
        """Return a text with its secrets masked; `place` says where it stands, for the report."""
        return self.secrets.firewall.mask(text, place)

    def mask_question(self, question: Question) -> Question:
        """Return what a person is asked with their own secrets and tokens of published formats masked."""
        return masked_question(self.secrets.firewall, question)

    def keep_output(self, text: str) -> str:
        """Write a tool's output where tools can read it; return the path, or "" where nothing may be written."""
        if not self.incognito.may_write:
            return ""
        return self.workspace.shells.outputs.keep(self.secrets.firewall.mask(text))

    def has_jobs(self) -> bool:
        """Return whether a command runs in the background."""
        return bool(self.workspace.shells.running_jobs)

    @property
    def autorun_watch(self) -> "AutorunWatch":
        """What names to the person which files were left that run or are read later."""
        if self.made.watch is None:
            from ybs.security.paths.autorun_watch import AutorunWatch  # with the first command

            self.made.watch = AutorunWatch(self.sandbox, self.roots, self.has_jobs)
        return self.made.watch

    @property
    def is_watching(self) -> bool:
        """Whether anything was started that may have left such files."""
        return self.made.watch is not None or self.sandbox.has_started_others(since=0)

    async def aclose(self) -> None:
        """End what runs in the background, and remove what commands left outside of the project."""
        try:
            if self.made.hooks is not None and self.original is None:
                await self.made.hooks.aclose("other")
            if self.made.mcp is not None:
                await self.made.mcp.aclose()
            await self.workspace.shells.aclose()
        finally:
            await self.sandbox.aclose()


def _roots_of(
    folder: Path,
    loaded: Loaded,
    permissions: Permissions,
    blocked: Sequence[str],
    original: Roots | None,
) -> Roots:
    host = loaded.host
    if original is not None:
        host.work_in(folder)
        return Roots(host, folder, blocked=blocked, original=original)
    roots = Roots(host, folder, loaded.config.safety.sandbox_allowed_paths, blocked)
    try:
        for each in permissions.add_dirs:
            roots.add_named(each.absolute())
    except Refused as error:
        raise ConfigError(f"an additional folder: {visible(str(error), None)}") from error
    host.work_in(*roots.folders)
    return roots


def _shells_of(
    roots: Roots, sandbox: Sandbox, outputs: Outputs, incognito: Incognito, person: Person
) -> Shells:
    keeps, told = incognito.may_write, person.jobs_changed
    if not keeps:
        unnamed.update(map(str, roots.folders))
    return Shells(roots, starter=sandbox, outputs=outputs, keeps_outputs=keeps, changed=told)


def _sandbox_of(
    loaded: Loaded,
    roots: Roots,
    outputs: Outputs,
    blocked: tuple[Sequence[str], Sequence[str]],
    permissions: Permissions,
    original: ToolEnvironment | None,
) -> Sandbox:
    config = loaded.config
    is_off = not (permissions.has_sandbox and config.safety.sandbox_enabled)
    return Sandbox(
        loaded.host,
        roots.folder,
        blocked=blocked[0],
        blocked_by_project=blocked[1],
        folders=roots.folders,
        outputs=outputs.folder,
        is_open=config.safety.sandbox_network,
        is_off=original.sandbox.is_off if original else is_off,
        in_memory=config.incognito.enabled,
        is_of_copy=original is not None,
    )


def _policy_of(
    loaded: Loaded,
    folder: Path,
    permissions: Permissions,
    sandbox: Sandbox,
    trusts: Callable[[], bool],
) -> Policy:
    may_write = not loaded.config.incognito.enabled
    return Policy(
        loaded.config.safety,
        allow=permissions.allow,
        deny=permissions.deny,
        project=ProjectRules(
            loaded.host,
            folder,
            may_write=may_write and permissions.at_terminal,
            only_denies=not permissions.at_terminal,
        ),
        find_sandbox=lambda: sandbox.state,
        asks_each_command=_names_commands(loaded),
        trusts_project=trusts,
        projects_rules=loaded.review.rules if loaded.review else (),
    )


def _is_trusted(loaded: Loaded, folder: Path) -> bool:
    from ybs.trust.decision import review_of  # with the first program of the person's own

    return review_of(loaded, folder).is_trusted


def _trusts_added(host: Host) -> Callable[[Path], bool]:
    """Return what says of a folder whether it is a project that the person trusts, as it is when that is asked first."""

    @cache
    def trusts(folder: Path) -> bool:
        from ybs.trust.settings import load  # few sessions have other folders

        try:
            return _is_trusted(load(host, folder=folder), folder)
        except (ConfigError, OSError):
            return False

    return trusts


def _names_commands(loaded: Loaded) -> bool:
    """Return whether the person's own settings, not the shipped ones, have commands asked about."""
    key = "safety.require_confirmation"
    origin = loaded.origins.get(key)
    is_own = origin is not None and origin.layer != "default"
    return is_own and "run_shell" in loaded.config.safety.require_confirmation


def _in_copy(blocked: Sequence[str], project: Path, copy: Path, host: Host) -> Iterator[str]:
    """Yield where blocked paths of a project lie in a copy of it."""
    for path in (host.expand(name, project).resolve() for name in blocked):
        if path.is_relative_to(project):
            yield str(copy / path.relative_to(project))
