"""Options for opening a session."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from ybs.agent.environment import Permissions, ToolEnvironment
from ybs.agent.hooks import TurnHook
from ybs.config.document import open_regular
from ybs.config.host import Host
from ybs.config.layers import Loaded
from ybs.config.review import RunTrust
from ybs.config.schema import SafetySettings
from ybs.core.errors import ConfigError
from ybs.core.ports import Confirm, Guard, Model, Tool, Toolbox
from ybs.core.remedies import Remedy
from ybs.security.policy.confirm import nobody
from ybs.session.reply import Commands

SHIPPED: Final = SafetySettings()
_MOST_PROMPT_BYTES: Final = 1_000_000
#: Short names of options that are settings.
SETTINGS = {
    "provider": "llm.provider",
    "model": "llm.model",
    "endpoint": "llm.endpoint",
    "mode": "safety.mode",
    "max_turns": "agent.max_iterations",
    "max_cost": "agent.max_cost_usd",
    "timeout": "agent.max_seconds",
    "incognito": "incognito.enabled",
    "plain": "ui.plain",
}
#: Options that any iterable may be given for.
SEVERAL = ("tools", "toolboxes", "guards", "hooks")


class BadOption(ConfigError):
    """An option of the command line means nothing (exit code 2)."""


class Options(Struct, frozen=True, kw_only=True):
    """What a frontend may ask for. `overrides` maps dotted keys of the configuration to values.

    `host` says where the home folder, the variables and ybs's own files are.

    `trust` trusts the project's own files for this run alone, as they were when they were first read; `loaded` is a configuration that was read already.
    `commands` are the slash commands; `guards` and `hooks` are added to the built-in ones.
    `editor` is a hook that runs before all others and after them: it knows what an editor holds of files. `mcp_servers` are entries that a
    program brings, held to what a project's may do.
    `tools` and `toolboxes` are offered beside the built-in tools; the same rules and questions apply to their calls.
    `model` is a model that answers in place of a provider's; who made it closes it. `confirm` is asked before a call that needs it.
    `before_incognito` is called before an incognito session begins, to protect the process (core dumps).
    `output_schema` is a JSON Schema that the answer to each prompt has to fit.
    `resume` names the session to go on with ("": the newest of this folder), `fork` does so in a file of its own.
    `is_shared`: others than the person speak or read there, so what the person wrote down about themselves is not told to the model.
    `is_piped`: words came by a pipe, so others may have written them, too; nothing is learned of what is said there, or in a shared session.
    `at_terminal`: what was allowed at a terminal counts: the rules kept for the project, and a hook's `allow`. What was denied always does.
    `held` is given the settings whenever they are read, and returns what holds of them.
    `is_one_shot`: there is one prompt and nobody to go on; lists of sessions keep those apart.
    `session_mark` ends the names of new sessions, so that no other machine gives the same.
    `warnings` are told beside those of the configuration.
    """

    host: Host
    folder: Path
    overrides: dict[str, Any] = {}
    config_file: Path | None = None
    profile: str | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    add_dirs: tuple[Path, ...] = ()
    dry_run: bool = False
    trust: RunTrust | None = None
    loaded: Loaded | None = None
    sandbox: bool = True
    system_prompt_file: Path | None = None
    output_schema: Any = None
    resume: str | None = None
    fork: bool = False
    is_shared: bool = False
    is_piped: bool = False
    at_terminal: bool = True
    held: Callable[[Loaded], Loaded] = lambda loaded: loaded
    is_one_shot: bool = False
    session_mark: str = ""
    commands: Commands | None = None
    guards: tuple[Guard, ...] = ()
    hooks: tuple[TurnHook, ...] = ()
    editor: TurnHook | None = None
    mcp_servers: dict[str, Any] = {}
    tools: tuple[Tool, ...] = ()
    toolboxes: tuple[Toolbox, ...] = ()
    model: Model | None = None
    confirm: Confirm = nobody
    before_incognito: Callable[[], None] = lambda: None
    warnings: tuple[str, ...] = ()

    @property
    def permissions(self) -> Permissions:
        """The part that is about safety."""
        return Permissions(
            allow=self.allow,
            deny=self.deny,
            add_dirs=self.add_dirs,
            has_sandbox=self.sandbox,
            is_dry_run=self.dry_run,
            at_terminal=self.at_terminal,
        )

    def with_profile(self, name: str) -> Self:
        """Return the same options for another profile, whose settings are to be read anew."""
        return replace(self, profile=name, loaded=None)

    @classmethod
    def of(cls, folder: Path, options: dict[str, Any]) -> Self:
        """Make options from keywords; those of `SETTINGS` become overrides, `trust` is about this folder. A `model` is a name or the model itself.

        Without a `host` it is the one that the environment of this process describes now.
        """
        model = options.get("model")
        if model is not None and not isinstance(model, str):
            own, options = model, {**options, "model": None}
        else:
            own = None
        rest = {name: value for name, value in options.items() if name not in SETTINGS}
        short = {SETTINGS[n]: v for n, v in options.items() if n in SETTINGS and v is not None}
        overrides: dict[str, Any] = {**rest.pop("overrides", {}), **short}
        host = rest.pop("host", None) or this_host()
        host.work_in(folder, *rest.get("add_dirs", ()))
        if rest.pop("trust", False):
            rest["trust"] = RunTrust(folder=folder.resolve())
        several = {name: tuple(rest.pop(name)) for name in SEVERAL if name in rest}
        return cls(host=host, folder=folder, overrides=overrides, model=own, **several, **rest)


def this_host() -> Host:
    """Return the host that the environment of this process describes now."""
    return Host.of(os.environ)


def read_prompt(options: Options, environment: ToolEnvironment) -> str:
    """Return the person's own system prompt, if one was named. Raises ConfigError if it cannot be read, or is the project's to choose."""
    loaded, key = environment.loaded, "context.system_prompt_file"
    named, file = loaded.config.context.system_prompt_file, options.system_prompt_file
    is_of_settings = file is None
    if file is None and named:
        file = options.host.expand(named, options.folder)
        if loaded.origins[key].layer == "project":  # as it was when it was trusted
            data = loaded.review.data(named.removeprefix("./")) if loaded.review else None
            if data is None or environment.roots.is_blocked(os.path.realpath(file)):
                raise ConfigError(f"{key}: {named} is not a file of this project, or is blocked")
            return data.decode(errors="replace").strip()
    if file is None:
        return ""
    try:
        return _prompt_in(file, str(named) if is_of_settings else "", environment)
    except (OSError, ValueError) as error:
        from ybs.config.report import locate  # where it is wrong

        place = (
            locate(loaded, tuple(key.split("."))).text if is_of_settings else "The system prompt"
        )
        raise ConfigError(f"{place} {file}: {error}") from error


def _prompt_in(file: Path, named: str, environment: ToolEnvironment) -> str:
    """Read a system prompt; `named` is how the person's settings name it. Raises ConfigError, OSError and ValueError."""
    is_projects = bool(named) and not Host.is_whole(named)
    if is_projects and not environment.trusts_project:
        remedies = (Remedy("trust_project"),)
        raise ConfigError(
            f"{named} is a system prompt of this project, which is not trusted.", remedies=remedies
        )
    if environment.roots.leads_out(file.absolute()):
        raise ValueError("a link of the project leads out of it: name the file that is meant")
    is_held = named or environment.roots.holds(file.resolve())
    with open_regular(file) if is_held else file.open("rb") as opened:
        data = opened.read(_MOST_PROMPT_BYTES + 1)
    if len(data) > _MOST_PROMPT_BYTES:
        raise ValueError(f"it is larger than {_MOST_PROMPT_BYTES:,} bytes")
    return data.decode().replace("\r\n", "\n").strip()
