"""The settings that a session begins with, read and checked, and the environment of tools without a model."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ybs.agent.environment import Person, ToolEnvironment
from ybs.agent.hooks import TurnHook
from ybs.agent.model_choice import AUTO
from ybs.config.document import Unusable, open_document, place_of
from ybs.config.layers import Loaded
from ybs.config.paths import PERSONS_HOOKS
from ybs.config.schema import Config, Effort
from ybs.config.tree import ValueOrigin
from ybs.core.errors import ConfigError
from ybs.core.events import Emit
from ybs.core.messages import ToolCall
from ybs.core.ports import Confirm, Effect
from ybs.providers.registry import chosen_name, provider_names, with_only_key
from ybs.security.paths.roots import Roots
from ybs.security.policy.confirm import nobody
from ybs.session.options import SHIPPED, Options
from ybs.trust.settings import load

if TYPE_CHECKING:
    from ybs.agent.user_hooks.hooks import UserHooks


def load_settings(options: Options) -> Loaded:
    """Load the settings of a session with these options. Raises ConfigError for what is not a folder."""
    if not options.folder.is_dir():
        raise ConfigError(f"{options.folder} is not a folder. A session needs a project's folder.")
    return options.held(_read(options)) if options.loaded is None else options.loaded


def _read(options: Options) -> Loaded:
    loaded = load(
        options.host,
        folder=options.folder,
        overrides=options.overrides,
        config_file=options.config_file,
        profile=options.profile,
        run_trust=options.trust,
    )
    if options.mcp_servers:
        loaded = _with_servers(options, loaded)
    for file in options.host.persons((PERSONS_HOOKS,)):
        loaded = _with_hooks_of(file, loaded)
    if not (options.host.config_folder / "plugins.json").exists():
        return loaded
    from ybs.plugins.in_settings import with_added  # few have plugins

    return with_added(loaded)


def _with_servers(options: Options, loaded: Loaded) -> Loaded:
    """Return the settings with the MCP servers that an editor brings: none takes the place of another, or reads a variable."""
    from ybs.trust.grants import ORIGIN_MARK, variables_of  # few editors bring any

    kept, warnings = dict[str, Any](), list[str]()
    for name, entry in options.mcp_servers.items():
        reads = ", ".join(sorted({use.name for use in variables_of({name: entry})}))
        is_taken = name in loaded.config.mcpServers
        why = "your own settings define it" if is_taken else f"it reads {reads}" if reads else ""
        if why:
            warnings.append(f"The editor's MCP server {name[:40]!r} is not used, because {why}.")
        else:
            kept[name] = {**entry, ORIGIN_MARK: "editor"}
    servers = {**loaded.config.mcpServers, **kept}
    return replace(
        loaded,
        config=replace(loaded.config, mcpServers=servers),
        warnings=(*loaded.warnings, *warnings),
    )


def _with_hooks_of(file: Path, loaded: Loaded) -> Loaded:
    """Return the settings with the hooks that the person has in the settings of Claude Code."""
    try:
        document = open_document(file, "own")
    except Unusable as error:
        why = f"{place_of(file, error)}: its hooks are IGNORED, because it {error}"
        return replace(loaded, warnings=(*loaded.warnings, why))
    if document is None:
        return loaded
    from ybs.trust.grants import hooks_in, in_lists, joined  # many have no such file

    hooks = hooks_in(document.tree)
    config = replace(loaded.config, hooks=joined(in_lists(loaded.config.hooks), hooks))
    return replace(loaded, config=config, warnings=(*loaded.warnings, *document.all_warnings()))


def environment_of(
    options: Options, loaded: Loaded, confirm: Confirm = nobody, emit: Emit = lambda _: None
) -> ToolEnvironment:
    """Return what tools stand on, for a frontend that needs no model; `emit` takes what the person should know of a call.

    What a session's recorder does around its calls is done here as well: the question about what would be lost, and the look for files that run later.
    """
    if loaded.config.incognito.enabled:
        options.before_incognito()
    made, _ = checked_environment(options, loaded, Person(confirm=confirm, emit=emit))
    made.workspace.ask_for_losses(partial(_first_lost, made.roots))
    made.add_checks(_AutorunNotices(made, emit))
    return made


def checked_environment(
    options: Options, loaded: Loaded, person: Person
) -> "tuple[ToolEnvironment, UserHooks | None]":
    """Return what tools stand on, with the hooks that were handed in and the person's own around each call; and the latter, where there are any.

    Sessions and all frontends have theirs from here, and no toolbox of it is without them: see `ToolEnvironment.checks`.
    """
    made = ToolEnvironment.of(options.folder, loaded, options.permissions, person=person)
    made.add_checks(*options.hooks)
    if not loaded.config.hooks:
        return made, None
    from ybs.agent.user_hooks.hooks import hooked  # most have none

    return hooked(made, person)


class _AutorunNotices(TurnHook):
    """Looks before and after each command, and before a change where others may have been at work; what it finds goes to `emit`."""

    name = "looking for files that run later"
    loss = "the person is not told which files it leaves that run later"

    def __init__(self, environment: ToolEnvironment, emit: Emit) -> None:
        self._environment, self._emit = environment, emit

    async def before_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Look at what is there before a command, and after a hook or a server."""
        del call, paths
        watch = self._environment.autorun_watch
        await (watch.before if effect == "execute" else watch.end_turn)(self._emit)

    async def after_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Name what a command has left."""
        if effect == "execute":
            await self._environment.autorun_watch.after(self._emit)
        else:
            self._environment.autorun_watch.accept(call.name, paths)


def _first_lost(roots: Roots, paths: Iterable[str], *, is_named: bool = False) -> tuple[str, str]:
    """Return the first of these paths that the undo of a session would not bring back, and why. Who called the tool has one of their own."""
    from ybs.agent.project_walk import SCAN_SECONDS, listings  # not before the first command
    from ybs.checkpoints.keeping import Keeper
    from ybs.tools.searching.walk import Deadline

    deadline = Deadline(SCAN_SECONDS)
    look = (lambda: listings(roots, deadline)), (lambda: deadline.is_over)
    return Keeper(roots, reads=False).first_lost(paths, *look, has_jobs=False, is_named=is_named)


def ready_settings(options: Options) -> Loaded:
    """Load the settings of a session and see whether they make sense. Raises ConfigError for what stops a start."""
    loaded = load_settings(options)
    if options.warnings:
        loaded = replace(loaded, warnings=(*loaded.warnings, *options.warnings))
    if loaded.config.llm.model and chosen_name(loaded.config) is None:
        loaded = _with_provider_of_key(options, loaded)
    if loaded.config.router.enabled:
        loaded = _without_router_for_chosen(loaded)
    if not _has_more_than_shipped(options, loaded.config):
        return loaded  # most starts load nothing for it
    from ybs.session.checking import checked

    return checked(options, loaded)


def _with_provider_of_key(options: Options, loaded: Loaded) -> Loaded:
    """Return the settings with the provider whose key is the only one in the environment, where an option names a model alone.

    A model that a project's file names chooses none: words and a key would go where the person did not send them.
    """
    llm, origin = loaded.config.llm, loaded.origins["llm.model"]
    if origin.layer != "option" or llm.model == AUTO:
        return loaded
    if (name := with_only_key(options.host, loaded.config)) is None:
        return loaded
    return replace(
        loaded,
        config=replace(loaded.config, llm=replace(llm, provider=name)),
        origins={
            **loaded.origins,
            "llm.provider": ValueOrigin("option", "the key in the environment"),
        },
    )


def _without_router_for_chosen(loaded: Loaded) -> Loaded:
    """Return the settings with the router off where an option names a model, a provider or an address."""
    chosen = (loaded.origins[f"llm.{name}"] for name in ("model", "provider", "endpoint"))
    if not any(origin.layer == "option" for origin in chosen):
        return loaded
    config = loaded.config
    return replace(loaded, config=replace(config, router=replace(config.router, enabled=False)))


def _has_more_than_shipped(options: Options, config: Config) -> bool:
    """Return whether rules, tools, folders, files or providers are named that might not exist."""
    safety, chosen = config.safety, chosen_name(config)
    return bool(
        (options.allow or options.deny or options.add_dirs)
        or (safety.allow or safety.ask or safety.deny or config.firewall.allow)
        or (config.tools.builtin or config.providers or config.models or config.llm.fallback)
        or (config.network.ca_file or config.network.proxy or config.context.system_prompt_file)
        or safety.require_confirmation != SHIPPED.require_confirmation
        or safety.sandbox_allowed_paths != SHIPPED.sandbox_allowed_paths
        or (config.llm.api_key and not config.llm.endpoint)
        or (chosen is not None and chosen not in provider_names())
    )


def with_incognito(loaded: Loaded, *, is_on: bool) -> Loaded:
    """Return the settings with incognito on or off, as the person said in the session."""
    config = loaded.config
    if config.incognito.enabled == is_on:
        return loaded
    return replace(
        loaded,
        config=replace(config, incognito=replace(config.incognito, enabled=is_on)),
        origins={**loaded.origins, "incognito.enabled": ValueOrigin("option", "this session")},
    )


def with_effort(loaded: Loaded, effort: Effort | None) -> Loaded:
    """Return the settings with how hard the model thinks, as the person said in the session."""
    return replace(
        loaded,
        config=replace(loaded.config, llm=replace(loaded.config.llm, effort=effort)),
        origins={**loaded.origins, "llm.effort": ValueOrigin("option", "this session")},
    )
