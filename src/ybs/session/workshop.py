"""The workshop: the tools of a session with what they stand on. It needs no model."""

from threading import Lock
from typing import TYPE_CHECKING

from msgspec import Raw, json

from ybs.config.layers import Loaded
from ybs.config.paths import expand
from ybs.config.schema import Config
from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall
from ybs.security.incognito import Incognito, leave_no_dump
from ybs.security.paths.roots import Roots
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Policy
from ybs.session.options import Options, ready_settings
from ybs.session.sandbox import Sandbox
from ybs.session.surroundings import Surroundings
from ybs.tools.registry import builtin_tools, is_enabled
from ybs.tools.toolbox import LocalToolbox
from ybs.tools.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ybs.core.hooks import CallHook
    from ybs.core.ports import Tool
    from ybs.session.secrets import Secrets
    from ybs.transcripts.store import Store


class Workshop:
    """The tools of a session and what they stand on. It needs no model."""

    def __init__(
        self,
        options: Options,
        loaded: Loaded,
        *,
        is_short: bool = False,
        hooks: "Sequence[CallHook]" = (),
    ) -> None:
        config = loaded.config
        self.loaded = loaded
        wish = config.incognito
        self.incognito = Incognito(is_on=wish.enabled, local_only=wish.local_only)
        if self.incognito.is_on:
            leave_no_dump()
        self.is_dry_run = options.dry_run
        self.folder = options.folder.resolve()
        safety = config.safety
        blocked = (*safety.sandbox_blocked_paths, config.session.storage_path)
        roots = Roots(self.folder, safety.sandbox_allowed_paths, blocked)
        for folder in options.add_dirs:
            roots.add(folder)
        self.sandbox = Sandbox(
            self.folder,
            blocked=blocked,
            folders=roots.folders,
            is_open=safety.sandbox_network,
            without=not options.sandbox,
            in_memory=not self.incognito.may_write,
        )
        self.sandbox.sweep()
        self.workspace = Workspace(roots, max_output_chars=config.context.max_tool_output_chars)
        self.workspace.has_sandbox = options.sandbox
        self.workspace.shells.starter = self.sandbox
        self.workspace.shells.keeps_outputs = self.incognito.may_write
        self.sandbox.outputs = self.workspace.shells.outputs.folder
        self.policy = Policy(
            config.safety,
            allow=options.allow,
            deny=options.deny,
            find_sandbox=lambda: self.sandbox.state,
        )
        self.gate = Gate(self.policy)
        self.surroundings = Surroundings(self, is_short=is_short)
        self._hooks = hooks
        self.toolbox = self._toolbox_with(hooks)
        self.offer_tools(is_short=is_short)
        #: Is awaited before a command that the person typed; the session sets it.
        self.before_typed: Callable[[], Awaitable[None]] | None = None
        self._secrets: Secrets | None = None
        self._making_secrets = Lock()

    def _toolbox_with(self, hooks: "Sequence[CallHook]") -> LocalToolbox:
        config = self.loaded.config
        return LocalToolbox(
            (),
            self.gate,
            max_output_chars=config.context.max_tool_output_chars,
            dry_run=self.is_dry_run,
            limits=limits_of(config),
            hooks=hooks,
        )

    def _tools(self, *, is_short: bool) -> "list[Tool]":
        config = self.loaded.config
        own = [tool for tool in self.surroundings.tools() if is_enabled(config, tool)]
        return [*builtin_tools(config, self.workspace, is_short=is_short), *own]

    def offer_tools(self, *, is_short: bool) -> None:
        """Offer the tools that suit the model, in the form that suits it."""
        tools, unoffered = self._tools(is_short=is_short), self.surroundings.unoffered()
        self.toolbox.offer(tools, is_short=is_short, unoffered=unoffered)

    @property
    def sessions(self) -> "Store":
        """The saved sessions."""
        from ybs.transcripts.store import Store  # not before a first turn

        place = self.loaded.config.session.storage_path
        return Store(expand(place, self.folder))

    @property
    def secrets(self) -> "Secrets":
        """The firewall, one for the session. It is loaded with the first turn, or by the thread that writes history."""
        with self._making_secrets:
            if self._secrets is None:
                from ybs.session.secrets import Secrets

                self._secrets = Secrets(self.loaded.config, self.workspace.roots)
            return self._secrets

    async def run_typed(self, command: str, print_live: "Callable[[str], None]") -> str:
        """Run a command that the person typed. Nobody is asked; blocked ones raise ToolError."""
        from ybs.session.shell import spoken
        from ybs.tools.builtin.run_shell import Arguments, RunShell
        from ybs.tools.calls.hooks import after_change

        if self.is_dry_run:
            raise ToolError("not executed (dry run)")
        if entry := self.policy.blocked(command):
            raise ToolError(f"it is blocked ({entry!r} in safety.blocked_commands)")
        settings = self.loaded.config.tools.builtin.get("run_shell")
        shell = RunShell(self.workspace, settings.timeout_seconds if settings else None)
        arguments = Arguments(command=command)
        shell.preview(arguments)
        if self.before_typed is not None:
            await self.before_typed()
        call = ToolCall(id="typed", name=shell.name, arguments=Raw(json.encode(arguments)))
        try:
            ran = await shell.run(arguments, print_live)
        finally:
            await after_change(self._hooks, call, "execute", ())
        return spoken(ran.display, self.workspace.max_output_chars)

    async def aclose(self) -> None:
        """End what runs in the background."""
        try:
            await self.surroundings.aclose()
            await self.workspace.shells.aclose()
        finally:
            await self.sandbox.aclose()


def open_workshop(options: Options) -> Workshop:
    """Open the tools of a session without its model. Raises ConfigError for what makes a start impossible."""
    return Workshop(options, ready_settings(options))


def limits_of(config: Config) -> dict[str, float]:
    """Return the seconds that a call may take, of the tools for which they are set.

    run_shell ends by itself: its time is that of one command, and a call may name another.
    """
    return {
        name: tool.timeout_seconds
        for name, tool in config.tools.builtin.items()
        if tool.timeout_seconds is not None and name != "run_shell"
    }
