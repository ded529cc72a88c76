"""The settings that a trusted project may add: never an address, a provider or a key, never less safety, and nothing in place of the user's own."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import repeat
from typing import Any, Final, TypeGuard
from urllib.parse import urlsplit

from msgspec import Struct

from ybs.config.addresses import origin_of
from ybs.config.document import SettingsDocument, dotted, visible
from ybs.config.presets import CLOUDS, CREDENTIALS, PRESETS
from ybs.config.review import Review, VariableUse
from ybs.config.tool_definition import Definition, Described
from ybs.config.tree import Leaf, Tree, find, is_list, is_object, leaves_of, put, values_of
from ybs.config.variables import variables_in
from ybs.trust.project_settings import (
    MODEL_NAME,
    WITH_TRUST,
    may_name_model,
    needing_trust,
    rule_of,
)
from ybs.trust.wording import plain, words_in

#: The variables of their keys, which go to no address that a project names; patterns among them.
KEY_VARIABLES = {
    *(name for names in CREDENTIALS.values() for name in names),
    *(preset.key_variable for preset in PRESETS.values()),
}
#: The key that marks a group of hooks or an MCP server as the project's, whatever that says itself.
ORIGIN_MARK: Final = "from"
_NEVER = "a project's file may not set it"
_READING = "it would read your environment variables"
_NO_NAME = f"a project's file may only give {MODEL_NAME}"
_SHORTEST_KEY = 8
_OF_PROVIDERS: Final = frozenset({"llm", "providers", "cli_agents", "agents"})
#: A project adds entries to these sections and changes none of the user's.
_ADD_ONLY = {"mcpServers", "hooks"}
#: Of a server's variables each is granted; in a hook they are the shell's, which has those of the sandbox.
_MAY_READ_VARIABLES = {"mcpServers", "hooks"}


class Powerful(Struct, frozen=True):
    """What a project's file asks for beyond the harmless: `values` to take over once it is trusted, their `paths`, and the ways to what is `left_out` even then, by why."""

    values: dict[str, Any]
    paths: list[tuple[str, ...]]
    left_out: dict[str, list[tuple[str, ...]]]

    def leave_out(self, why: str, *paths: tuple[str, ...]) -> None:
        """Leave settings out."""
        if paths:
            self.left_out.setdefault(why, []).extend(paths)

    def warn(self, document: SettingsDocument) -> None:
        """Say what is left out although the project is trusted."""
        for why, paths in self.left_out.items():
            document.warn_of_all(paths, f"ignored, because {why}")


def take_powerful(document: SettingsDocument) -> Powerful:
    """Sort what needs trust into what a project may set with it, and what it may not set even then."""
    found = Powerful({}, [], {})
    for path, value in needing_trust(document):
        if why := _why_not(path, value):
            found.leave_out(why, path)
        else:
            found.paths.append(path)
            put(found.values, path, value)
    return found


def _why_not(path: tuple[str, ...], value: Any) -> str:
    """Return why not even a trusted project may set this; nothing where it may."""
    if rule_of(path) not in WITH_TRUST:
        return _NEVER
    if path[0] not in _MAY_READ_VARIABLES and variables_in(value):
        return _READING
    is_model = path == ("llm", "model") and isinstance(value, str)
    return _NO_NAME if is_model and not may_name_model(value) else ""


def marked(hooks: dict[str, Any]) -> dict[str, list[Any]]:
    """Return a project's hooks with the mark that they are the project's, so that they run in the sandbox."""
    return {
        event: [{**each, ORIGIN_MARK: "project"} if is_object(each) else each for each in several]
        for event, several in in_lists(hooks).items()
    }


def marked_servers(section: Any) -> dict[str, Any]:
    """Return a project's MCP servers with the mark that they are the project's."""
    return {
        name: {**each, ORIGIN_MARK: "project"} if is_object(each) else each
        for name, each in (section.items() if is_object(section) else ())
    }


def variables_of(section: Any) -> Iterator[VariableUse]:
    """Yield the variables that the MCP servers of somebody else read, in any field of an entry, with where each goes."""
    for name, entry in section.items() if is_object(section) else ():
        url = _address_in(entry)
        place = url or plain(entry.get("command", "") if is_object(entry) else "")
        literal = url.partition("${")[0]
        with suppress(ValueError):  # what a variable may be a part of is told as it stands
            place = origin_of(literal) if literal == url or urlsplit(literal).path else place
        for variable in variables_in(entry):
            yield VariableUse(name=variable, server=visible(name), place=visible(place))


def variables_of_tools(described: Mapping[str, Described]) -> Iterator[VariableUse]:
    """Yield the variables that a project's tools need, by the files that describe them."""
    for path, found in described.items():
        if isinstance(found, Definition):
            for name in found.needs.environment:
                yield VariableUse(name=name, server="", place=visible(path))


def _address_in(entry: Any) -> str:
    names = ("url", "serverUrl", "httpUrl") if is_object(entry) else ()
    return next((entry[name] for name in names if isinstance(entry.get(name), str)), "")


def joined(*places: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return hooks of several places, event by event."""
    events = dict.fromkeys(event for hooks in places for event in hooks)
    return {event: [g for hooks in places for g in hooks.get(event, [])] for event in events}


def hooks_in(tree: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the hooks that the settings of another agent have; none where they have none, or turn them off."""
    hooks: Any = tree.get("hooks")
    if not is_object(hooks) or tree.get("disableAllHooks") is True:
        return {}
    return in_lists(hooks)


def in_lists(hooks: dict[str, Any]) -> dict[str, list[Any]]:
    """Return hooks with a list of groups for each event."""
    return {event: each if is_list(each) else [each] for event, each in hooks.items()}


def add_to(user: Tree, project: Tree) -> tuple[Tree, list[tuple[str, ...]]]:
    """Lay a trusted project's settings over the user's. Return them, and the ways to what the user has already."""
    taken: list[tuple[str, ...]] = []
    merged = dict(user)
    for section, values in project.items():
        own = user.get(section)
        if section in _ADD_ONLY and is_object(own) and is_object(values):
            merged[section] = _add_entries(section, own, values, taken)
        elif is_object(own) and is_object(values):
            merged[section] = _over(own, values)
        else:
            merged[section] = values
    return merged, taken


def _add_entries(
    section: str, own: Tree, values: Tree, taken: list[tuple[str, ...]]
) -> dict[str, Any]:
    added = dict(own)
    for name, value in values.items():
        mine = own.get(name)
        if mine is None:
            added[name] = value
        elif section == "hooks" and _is_list(mine) and _is_list(value):
            added[name] = Leaf([*mine.value, *value.value], value.origin)
        else:
            taken.append((section, name))
    return added


def _over(own: Tree, values: Tree) -> Tree:
    """Lay settings over settings; equal ones stay the user's, and lists grow."""
    merged = dict(own)
    for name, value in values.items():
        mine = own.get(name)
        if is_object(mine) and is_object(value):
            merged[name] = _over(mine, value)
        elif isinstance(mine, Leaf) and isinstance(value, Leaf):
            merged[name] = _grown(mine, value)
        else:
            merged[name] = value
    return merged


def _grown(mine: Leaf, value: Leaf) -> Leaf:
    if mine.value == value.value:
        return mine
    if is_list(mine.value) and is_list(value.value):
        new = [each for each in value.value if each not in mine.value]
        return Leaf([*mine.value, *new], value.origin)
    return value


def _is_list(leaf: Any) -> bool:
    return isinstance(leaf, Leaf) and is_list(leaf.value)


def key_variables(
    tree: Tree, own: Iterable[Tree], environ: Mapping[str, str], kept: Iterable[str] = ()
) -> frozenset[str]:
    """Return the variables that hold keys of providers and agents: those that the settings or any of the person's `own` files name, by patterns too, and others of the same value, or of one that is `kept`."""
    trees = (tree, *own)
    named = {*KEY_VARIABLES, *(name for each in trees for name in _keys_in(each))}
    if any(map(_uses_agent, trees)):
        named.update(CLOUDS)
    names = {name for name in environ if any(fnmatchcase(name, each) for each in named)}
    names |= {name for name in named if "*" not in name}
    values = {*kept, *(environ[name] for name in names if name in environ)}
    values |= {str(leaf.value) for path, leaf in leaves_of(tree) if path[-1] == "api_key"}
    same = {n for n, value in environ.items() if len(value) >= _SHORTEST_KEY and value in values}
    return frozenset(names | same)


def rules_of(tree: Tree, own: Iterable[Tree]) -> frozenset[str]:
    """Return the rules that allow calls and that a project's settings alone have."""
    path = ("safety", "allow")
    leaf = find(tree, path)
    mine = [rule for each in own for rule in words_in(find(each, path))]
    return frozenset(leaf.value).difference(mine) if _is_projects(leaf) else frozenset()


def _uses_agent(value: Any) -> bool:
    """Return whether the settings name an agent that is a program."""
    value = value.value if isinstance(value, Leaf) else value
    if is_object(value) or is_list(value):
        parts = (*value.keys(), *value.values()) if is_object(value) else value
        return any(map(_uses_agent, parts))
    return isinstance(value, str) and (value == "acp" or "claude-cli" in value)


def _keys_in(tree: Tree) -> Iterator[str]:
    profiles = tree.get("profiles")
    parts = (tree, *(profiles.values() if is_object(profiles) else ()))
    for each in filter(is_object, parts):
        for section in _OF_PROVIDERS & each.keys():
            yield from _named_in(each[section])


def _named_in(value: Any, key: str = "") -> Iterator[str]:
    """Yield the variables that a value names by `${NAME}`, or as those of a key `environment` or one which ends with `_env`."""
    value = value.value if isinstance(value, Leaf) else value
    if is_object(value) or is_list(value):
        for name, each in value.items() if is_object(value) else zip(repeat(key), value):
            yield from _named_in(each, name)
    elif isinstance(value, str):
        is_name = key == "environment" or key.endswith("_env")
        yield from [value] if is_name else variables_in(value)


def check_servers(tree: Tree, review: Review) -> list[str]:
    """Take out a project's servers that no variable was granted to, and its part of entries that are the user's too. Return warnings."""
    return [*_unmix(tree), *_ungranted(tree, review)]


def _unmix(tree: Tree) -> Iterator[str]:
    """Take a project's part out of servers that the user's later files set, too, for nobody knows whose those are."""
    entries: Tree = tree.get("mcpServers", {})
    for name, entry in list(entries.items()):
        leaves = list(leaves_of(entry)) if is_object(entry) else []
        origins = {leaf.origin.layer == "project" for _, leaf in leaves}
        if origins == {True, False}:
            entries[name] = _without_projects(entry)
            where = visible(next(x.origin.source for _, x in leaves if _is_projects(x)))
            yield f"{where}: {dotted(('mcpServers', name))}: ignored, because your own settings define it"


def _ungranted(tree: Tree, review: Review) -> Iterator[str]:
    """Take out a project's servers that read a variable which was not granted to them, or a key."""
    servers: Tree = tree.get("mcpServers", {})
    for name, entry in list(servers.items()):
        sources = [leaf.origin.source for _, leaf in leaves_of({name: entry}) if _is_projects(leaf)]
        uses = [*variables_of(values_of({name: entry}))] if sources else []
        if why := review.why_withheld(uses):
            del servers[name]
            yield f"{visible(sources[0])}: {dotted(('mcpServers', name))}: ignored, because {why}"


def _without_projects(tree: Tree) -> Tree:
    return {
        name: _without_projects(each) if is_object(each) else each
        for name, each in tree.items()
        if not _is_projects(each)
    }


def _is_projects(leaf: Any) -> TypeGuard[Leaf]:
    return isinstance(leaf, Leaf) and leaf.origin.layer == "project"
