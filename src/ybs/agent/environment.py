"""What the tools of a session stand on: folders, policy, sandbox, processes and the firewall. It does not need a model."""

import os
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ybs.agent.offered import has_many_files
from ybs.agent.sandbox import Sandbox
from ybs.agent.secrets import Secrets
from ybs.config.host import Host
from ybs.config.layers import Loaded
from ybs.config.paths import PROJECT_AGENTS, PROJECT_SKILLS
from ybs.config.schema import Config
from ybs.core.ports import Confirm, Tool
from ybs.security.incognito import Incognito
from ybs.security.own_programs import OwnPrograms
from ybs.security.paths.own_code import code_in, forget_in
from ybs.security.paths.path_text import lies_in
from ybs.security.paths.roots import Roots
from ybs.security.policy.confirm import Gate, nobody
from ybs.security.policy.policy import Policy
from ybs.tools.shell.overflow import Outputs
from ybs.tools.shell.shells import Shells
from ybs.tools.workspace import Workspace
from ybs.trust.project_rules import ProjectRules

if TYPE_CHECKING:
    from ybs.security.policy.policy import Bound
    from ybs.tools.builtin.delegate import Delegates
    from ybs.tools.external.catalogue import Catalogue
    from ybs.tools.mcp.servers import Servers
    from ybs.tools.skills.finding import Folder, Skills


class Permissions(Struct, frozen=True, kw_only=True):
    """What a frontend's options say about safety, beside the configuration.

    `allow` and `deny` are rules such as `run_shell(git log *)`; `add_dirs` are more folders to work in; without
    `has_sandbox` commands run bare; with `is_dry_run` calls are checked and never run.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    add_dirs: tuple[Path, ...] = ()
    has_sandbox: bool = True
    is_dry_run: bool = False


#: An output has at most so many characters for each token of the window, about a seventh of it, and never fewer than these.
CHARS_PER_WINDOW: Final = 0.6
FEWEST_CHARS: Final = 1_200
#: Where nobody has set how much that is, a large window gives more: so many for each of its tokens, up to the second.
COMFORTABLE_PER_WINDOW: Final = 0.3
MOST_UNASKED_CHARS: Final = 60_000
_OUTPUT_KEY: Final = "context.max_tool_output_chars"


class Person(Struct, frozen=True, kw_only=True):
    """Who is asked: `confirm` asks, and without it the answer is no; `is_attended` says whether anybody is there.

    `jobs_changed` is called when a command in the background begins or ends.
    """

    confirm: Confirm = nobody
    is_attended: Callable[[], bool] = lambda: False
    jobs_changed: Callable[[], None] = lambda: None


NOBODY: Final = Person()


class ToolEnvironment:
    """The folder, the policy, the sandbox, the workspace and the firewall that the agents of one session share.

    `original`: the folder is a copy of that one's, for a sub-agent; the rules, the questions and the firewall are the same, and programs
    that work on the project itself are not there. Raises ConfigError for rules that make no sense.
    """

    _secrets: Secrets | None = None
    _external: "Catalogue | None" = None
    _skills: "Skills | None" = None
    _mcp: "Servers | None" = None
    #: What starts sub-agents; without it the tool for that is not offered.
    delegate: "Delegates | None" = None
    #: The names of the tools that an agent may have; None: all.
    only_tools: "Container[str] | None" = None
    #: What an agent has beside the tools that every agent has.
    more_tools: "Sequence[Tool]" = ()

    def __init__(
        self,
        folder: Path,
        loaded: Loaded,
        permissions: Permissions,
        *,
        person: Person = NOBODY,
        original: "ToolEnvironment | None" = None,
    ) -> None:
        self._original, config = original, loaded.config
        self.folder, self.loaded, self.permissions = folder.resolve(), loaded, permissions
        private = config.incognito
        self.incognito = Incognito(is_on=private.enabled, local_only=private.local_only)
        blocked = (*config.safety.sandbox_blocked_paths, config.session.storage_path)
        if original is not None:
            blocked += tuple(_in_copy(blocked, original.folder, self.folder, loaded.host))
        roots = self._made_roots(blocked)
        is_off = not (permissions.has_sandbox and config.safety.sandbox_enabled)
        copied = original.folder if original else None
        outputs = Outputs(roots, copied)
        self.sandbox = Sandbox(
            loaded.host,
            self.folder,
            blocked=blocked,
            folders=roots.folders,
            outputs=outputs.folder,
            is_open=config.safety.sandbox_network,
            is_off=original.sandbox.is_off if original else is_off,
            in_memory=not self.incognito.may_write,
            is_of_copy=original is not None,
        )
        self.sandbox.sweep()
        self.workspace = Workspace(
            roots,
            shells=Shells(
                roots,
                starter=self.sandbox,
                outputs=outputs,
                keeps_outputs=self.incognito.may_write,
                changed=person.jobs_changed,
            ),
            max_output_chars=config.context.max_tool_output_chars,
            has_sandbox=not self.sandbox.is_off,
            own_programs=OwnPrograms(roots, lambda: self.trusts_project, copied),
        )
        self.policy = self._made_policy()
        gate = original.gate if original else Gate(self.policy, person.confirm)
        self.gate = gate.by(self.policy)
        self.is_attended = (original or person).is_attended
        self._making_secrets = Lock()

    def _made_roots(self, blocked: Sequence[str]) -> Roots:
        if self._original is not None:
            self.host.work_in(self.folder)
            return Roots(self.host, self.folder, blocked=blocked)
        roots = Roots(self.host, self.folder, self.config.safety.sandbox_allowed_paths, blocked)
        for each in self.permissions.add_dirs:
            roots.add(each)
        self.host.work_in(*roots.folders)
        return roots

    def secure_code(self, folders: Iterable[Path]) -> tuple[str, ...]:
        """Load no more code from what tools may change there; return what the person should know: that ybs lies there."""
        roots, code = self.roots, list[str]()
        for folder in folders:
            forget_in(str(folder))
            code += code_in(str(folder))
        if not code:
            return ()
        names = ", ".join(roots.show(Path(path)) for path in dict.fromkeys(code))
        if not self.sandbox.holds_code:
            held = "File tools do not write there, but with the sandbox off every command can change ybs, so each is asked about."
        else:
            held = "That is read-only for tools and commands; change it in a shell of your own, or run ybs from an installation elsewhere."
        return (f"ybs itself runs from {names}. {held}",)

    def _made_policy(self) -> Policy:
        if self._original is not None:
            return self._original.policy.elsewhere(lambda: self.sandbox.state)
        rules = ProjectRules(self.host, self.folder, may_write=self.incognito.may_write)
        return Policy(
            self.config.safety,
            allow=self.permissions.allow,
            deny=self.permissions.deny,
            project=rules,
            find_sandbox=lambda: self.sandbox.state,
            asks_each_command=self._names_commands(),
            trusts_project=lambda: self.trusts_project,
        )

    def _names_commands(self) -> bool:
        """Return whether the person's own settings, not the shipped ones, have commands asked about."""
        key = "safety.require_confirmation"
        origin = self.loaded.origins.get(key)
        is_own = origin is not None and origin.layer != "default"
        return is_own and "run_shell" in self.config.safety.require_confirmation

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
        other = copy(self)
        other.loaded, other.only_tools, other.delegate = loaded, only_tools, None
        other.gate, other.workspace = self.gate.within(bound), self.workspace.apart()
        return other

    @cached_property
    def offers_delegation(self) -> bool:
        """Whether a model is told by itself that there are sub-agents."""
        match self.config.agents.offer:
            case "always":
                return True
            case "auto":
                return self.has_agent_kinds() or has_many_files(self.folder)
            case "never":
                return False

    def has_agent_kinds(self) -> bool:
        """Return whether there may be kinds of sub-agents that are not built in, without loading what reads them."""
        own = (self.host.config_folder / "agents", self.host.home / ".claude/agents")
        projects = (self.folder / name for name in PROJECT_AGENTS)
        has_plugin = any(each.agents for each in self.loaded.plugins)
        has_more = has_plugin or bool(self.config.agents.acp)
        return has_more or any(map(os.path.isdir, (*own, *projects)))

    def may_have(self, tool: str) -> bool:
        """Return whether an agent in this environment may have the tool of this name."""
        return self.only_tools is None or tool in self.only_tools

    @cached_property
    def trusts_project(self) -> bool:
        """Whether the person trusts the project as it was when the session began; of a copy, the project that it is of."""
        if self._original is not None:
            return self._original.trusts_project
        from ybs.trust.decision import review_of  # with the first program of the person's own

        return review_of(self.loaded, self.folder).is_trusted

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
        with self._making_secrets:
            if self._secrets is None and self._original is not None:
                self._secrets = self._original.secrets.reading(self.roots)
            if self._secrets is None:
                self._secrets = Secrets(
                    self.host, self.config, self.roots, self.gate.confirm, self.is_attended
                )
            return self._secrets

    @property
    def external_tools(self) -> "Catalogue":
        """The programs of the person that serve as tools, as long as the session lives."""
        if self._external is None:
            from ybs.tools.external.catalogue import Catalogue

            may_write = self.incognito.may_write
            cache_file = self.host.cache_folder / "tools.json" if may_write else None
            self._external = Catalogue(
                self.config.tools, self.workspace, self.loaded.review, cache_file
            )
        return self._external

    def has_external_tools(self) -> bool:
        """Return whether there is a place where such programs may lie."""
        if self._original is not None:
            return False
        tools, host = self.config.tools, self.host
        return bool(self._external or tools.external) or any(
            os.path.isdir(host.expand(name, self.folder))  # noqa: PTH112 - at every start
            for name in tools.search_paths
        )

    @property
    def mcp(self) -> "Servers":
        """The MCP servers, as long as the session lives."""
        if self._mcp is None:
            from ybs.tools.mcp.servers import Servers, Surface  # many have none

            sandbox = self.sandbox
            surface = Surface(
                network=self.config.network,
                start=sandbox.start_resident,
                is_off=lambda: sandbox.is_off,
                holds=sandbox.holds_reading,
                confirm=lambda: self.gate.confirm,
                hide=lambda values: self.secrets.firewall.vault.keep(values),
            )
            pins = self.host.state_folder / "mcp.json" if self.incognito.may_write else None
            self._mcp = Servers(self.config.mcpServers, self.workspace, surface, pins)
        return self._mcp

    def has_mcp(self) -> bool:
        """Return whether there are MCP servers in the settings."""
        return bool(self.config.mcpServers) and self._original is None

    @property
    def skills(self) -> "Skills":
        """The skills of the person and of the project, found once."""
        if self._original is not None:
            return self._original.skills
        if self._skills is None:
            from ybs.tools.skills.finding import find_skills

            self._skills = find_skills(
                list(self._skill_folders()),
                self.loaded.review,
                only=self.config.skills.only,
                may_open=self.sandbox.may_show,
            )
        return self._skills

    def forget_skills(self) -> None:
        """Look for skills again when they are next asked for."""
        self._skills = None

    def has_skills(self) -> bool:
        """Return whether there is a place where skills may lie, without loading what reads them."""
        if self._original is not None:
            return self._original.has_skills()
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
        from ybs.tools.skills.finding import Folder

        for name in self.config.skills.search_paths:
            path = self.host.expand(name, self.folder)
            yield Folder(path, self.host.short(str(path)), not name.startswith(("~", "/")))
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
        self.workspace.max_output_chars = min(most, fitting)

    def mask(self, text: str, place: str) -> str:
        """Return a text with its secrets masked; `place` says where it stands, for the report."""
        return self.secrets.firewall.mask(text, place)

    def keep_output(self, text: str) -> str:
        """Write a tool's output where tools can read it; return the path, or "" where nothing may be written."""
        if not self.incognito.may_write:
            return ""
        return self.workspace.shells.outputs.keep(self.secrets.firewall.mask(text))

    def has_jobs(self) -> bool:
        """Return whether a command runs in the background."""
        return bool(self.workspace.shells.running_jobs)

    async def aclose(self) -> None:
        """End what runs in the background, and remove what commands left outside of the project."""
        try:
            if self._mcp is not None:
                await self._mcp.aclose()
            await self.workspace.shells.aclose()
        finally:
            await self.sandbox.aclose()


def _in_copy(blocked: Sequence[str], project: Path, copy: Path, host: Host) -> Iterator[str]:
    """Yield where blocked paths of a project lie in a copy of it."""
    for path in (host.expand(name, project).resolve() for name in blocked):
        if path.is_relative_to(project):
            yield str(copy / path.relative_to(project))
