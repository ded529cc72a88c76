"""Check the content of settings: rules, tools, expressions, and folders that do not exist.

A start and `ybs config check` ask the same functions, so that a check finds what a start would refuse.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.document import complaint_of, visible
from ybs.config.layers import Loaded
from ybs.config.report import Location, locate
from ybs.config.schema import Config
from ybs.core.errors import ConfigError
from ybs.providers.registry import chosen_name, find_provider, key_left_behind, route_of
from ybs.security.firewall.allowed import AllowList
from ybs.security.paths.steps import is_led_out, link_words
from ybs.security.policy.rules import Rule, rule_of
from ybs.session.options import SHIPPED, BadOption, Options
from ybs.tools.calls.tool_names import near
from ybs.tools.registry import NAMES

#: Names of tools that nobody knows before a server has told them.
LATER = ("mcp__",)
#: Stands for tools of any name.
ANY = "*"


class Problem(Struct, frozen=True):
    """Something that is wrong, with its place. What `stops` a start took a protection away, or cannot be understood."""

    text: str
    stops: bool


def checked(options: Options, loaded: Loaded) -> Loaded:
    """Return the settings with warnings of what is wrong with them.

    Raises BadOption for an option that means nothing, and ConfigError for what makes a start impossible.
    """
    check_options(options, loaded)
    only, more = chosen_name(loaded.config), tools_in(options)
    problems = list(problems_in(loaded, options.folder, only=only, more=more))
    if stopping := next((each.text for each in problems if each.stops), ""):
        raise ConfigError(stopping)
    told = dict.fromkeys((*loaded.warnings, *(each.text for each in problems)))
    return replace(loaded, warnings=tuple(told))


def check_options(options: Options, loaded: Loaded) -> None:
    """Raise BadOption for a rule of the command line about no tool, and for a folder that does not exist."""
    for name, texts in (("allow", options.allow), ("deny", options.deny)):
        for text in texts:
            try:
                rule = rule_of(text)
            except ConfigError as error:
                raise BadOption(f"the {name} rule: {error}") from error
            if words := unknown_in(loaded, options.folder, rule.tool, tools_in(options)):
                raise BadOption(f"the {name} rule {visible(text, 80)}: {words}")
    for folder in options.add_dirs:
        if not folder.is_dir():
            what = "is not a folder" if folder.exists() else "does not exist"
            raise BadOption(f"the additional folder {visible(str(folder))} {what}")


def tools_in(options: Options) -> Sequence[str]:
    """Return the names of the tools that were handed in; `ANY` where nobody knows them before a toolbox is open."""
    return (ANY,) if options.toolboxes else tuple(tool.name for tool in options.tools)


def problems_in(
    loaded: Loaded, folder: Path, *, only: str | None = None, more: Sequence[str] = ()
) -> Iterator[Problem]:
    """Find what is wrong; of the person's own providers `only` the one that a start would use, or with None all.

    `more` are the names of tools that are not built in.
    """
    safety = loaded.config.safety
    yield from _in_rules(loaded, folder, "deny", safety.deny, more)
    yield from _in_rules(loaded, folder, "ask", safety.ask, more)
    yield from _in_rules(loaded, folder, "allow", safety.allow, more)
    yield from _in_confirmations(loaded, folder, more)
    yield from _in_tools(loaded)
    yield from _in_expressions(loaded)
    yield from _in_folders(loaded, folder)
    yield from _in_prompt(loaded, folder)
    yield from _in_network(loaded)
    yield from _in_providers(loaded, only)
    yield from _in_key(loaded)
    yield from _in_models(loaded)
    yield from _in_fallback(loaded)


def unknown_in(loaded: Loaded, folder: Path, name: str, more: Sequence[str] = ()) -> str:
    """Do what `unknown_tool` does, with the external tools of the person and the project."""
    words = unknown_tool(name, loaded.config, more)
    if not words:
        return ""
    from ybs.tools.external.finding import possible_names  # the first request needs none of it

    names = possible_names(loaded.config.tools, loaded.host, folder, loaded.plugins)
    return "" if any(map(Rule(name).names, names)) else words


def unknown_tool(name: str, config: Config, more: Sequence[str] = ()) -> str:
    """Return a text that says that there is no tool of this name, or that no tool fits the pattern; nothing where there may be one."""
    known = [*NAMES, *(tool.name for tool in config.tools.external), *more]
    rule = Rule(name)
    if ANY in more or any(rule.names(each) for each in known) or name.startswith(LATER):
        return ""
    if name.rstrip("*") != name and any(each.startswith(name.rstrip("*")) for each in LATER):
        return ""
    close = near(name, known)
    guess = (
        f"Did you mean {' or '.join(close)}?" if close else f"The tools are: {', '.join(known)}."
    )
    return f"there is no tool {visible(name, 60)!r}. {guess}"


def _in_rules(
    loaded: Loaded, folder: Path, kind: str, texts: Sequence[str], more: Sequence[str]
) -> Iterator[Problem]:
    for text in texts:
        place = locate(loaded, ("safety", kind), text)
        try:
            rule = rule_of(text)
        except ConfigError as error:
            yield Problem(f"{place.text}: {error}", stops=True)
            continue
        if words := unknown_in(loaded, folder, rule.tool, more):
            yield _lost(place, words, is_protection=kind != "allow")


def _in_confirmations(loaded: Loaded, folder: Path, more: Sequence[str]) -> Iterator[Problem]:
    for name in loaded.config.safety.require_confirmation:
        if words := unknown_in(loaded, folder, name, more):
            place = locate(loaded, ("safety", "require_confirmation"), name)
            yield _lost(place, words, is_protection=True)


def _in_tools(loaded: Loaded) -> Iterator[Problem]:
    for name, tool in loaded.config.tools.builtin.items():
        if name not in NAMES:
            words = unknown_tool(name, Config()) or f"{name!r} is not built in."
            place = locate(loaded, ("tools", "builtin", name))
            yield _lost(place, words, is_protection=not tool.enabled)


def _lost(place: Location, words: str, *, is_protection: bool) -> Problem:
    """Say that an entry about no tool does nothing. One that protects the person stops a start.

    A project's file only adds to what the person asked for, and may not keep them from starting.
    """
    stops = is_protection and place.layer != "project"
    what = "protects nothing, so ybs does not start. Correct it there" if stops else "does nothing"
    return Problem(f"{place.text}: {words} As it stands it {what}.", stops=stops)


def _in_expressions(loaded: Loaded) -> Iterator[Problem]:
    for entry in loaded.config.firewall.allow:
        try:
            AllowList((entry,))
        except ConfigError as error:
            place = locate(loaded, ("firewall", "allow"), entry)
            yield Problem(
                f"{place.text}: {str(error).removeprefix('firewall.allow: ')}", stops=True
            )


def _in_folders(loaded: Loaded, folder: Path) -> Iterator[Problem]:
    for text in loaded.config.safety.sandbox_allowed_paths:
        if text in SHIPPED.sandbox_allowed_paths:
            continue
        path = loaded.host.expand(text, folder)
        if not path.is_dir():
            place = locate(loaded, ("safety", "sandbox_allowed_paths"), text)
            yield Problem(f"{place.text}: the folder {visible(text)!r} does not exist", stops=False)
        elif is_led_out(loaded.host, path, folder):
            place = locate(loaded, ("safety", "sandbox_allowed_paths"), text)
            words = f"it is not opened: {visible(link_words(loaded.host, path), None)}"
            yield Problem(f"{place.text}: {visible(text)!r}: {words}", stops=False)


def _in_prompt(loaded: Loaded, folder: Path) -> Iterator[Problem]:
    """Look for the file of the settings. A start that uses it fails by itself: an option may name another one."""
    path, named = ("context", "system_prompt_file"), loaded.config.context.system_prompt_file
    is_trusted = loaded.origins[".".join(path)].layer == "project"  # as it was when it was
    if named and not is_trusted and not (file := loaded.host.expand(named, folder)).is_file():
        words = f"there is no file {visible(str(file))}"
        yield Problem(f"{locate(loaded, path).text}: {words}", stops=False)


def _in_network(loaded: Loaded) -> Iterator[Problem]:
    try:
        route_of(loaded.host, loaded.config)
    except ConfigError as error:
        key, _, words = str(error).partition(": ")
        yield Problem(f"{locate(loaded, tuple(key.split('.'))).text}: {words}", stops=True)


def _in_providers(loaded: Loaded, only: str | None) -> Iterator[Problem]:
    """Look whether providers can be made, the chosen one and the person's own."""
    config = loaded.config
    names = [only] if only else [*config.providers, *filter(None, [chosen_name(config)])]
    for name in dict.fromkeys(names):
        own = config.providers.get(name)
        if complaint_of(name) or (own is not None and complaint_of(own.endpoint)):
            continue  # it has a warning of its own, and no model is made from it
        try:
            find_provider(name, config)
        except ConfigError as error:
            path = ("llm", "provider") if own is None else ("providers", name, "quirks")
            words = str(error).removeprefix(f"providers.{name}.quirks: ")
            yield Problem(f"{locate(loaded, path).text}: {words}", stops=True)


def _in_key(loaded: Loaded) -> Iterator[Problem]:
    with suppress(ConfigError):  # no model is made then
        if words := key_left_behind(loaded.host, loaded.config):
            place = locate(loaded, ("llm", "api_key"))
            yield Problem(f"{place.text}: {words}", stops=False)


def _in_models(loaded: Loaded) -> Iterator[Problem]:
    """Look for prices of which a half is missing: they count as unknown."""
    for name, entry in loaded.config.models.items():
        given = (entry.input_price, entry.output_price, entry.cached_price, entry.cache_write_price)
        if any(each is not None for each in given) and None in given[:2]:
            words = "a price needs `input_price` and `output_price`; it counts as unknown"
            yield Problem(f"{locate(loaded, ('models', name)).text}: {words}", stops=False)


def _in_fallback(loaded: Loaded) -> Iterator[Problem]:
    """Look for models of the fallback chain that could not take over."""
    config = loaded.config
    if not config.llm.fallback or (chosen := chosen_name(config)) is None:
        return
    from ybs.providers.fallback import complaint_about, entries  # few have one

    for name, model in entries(config):
        entry = (name, model)
        if words := complaint_about(loaded.host, config, chosen, config.llm.model or "", entry):
            text = f"{name}/{model}" if model else name
            place = locate(loaded, ("llm", "fallback"), text)
            yield Problem(f"{place.text}: {words}", stops=False)
