"""Describe a project's requests in plain words for the person who decides, without terminal control characters."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from ybs.config import template
from ybs.config.document import dotted, visible
from ybs.config.paths import sidecar_of
from ybs.config.review import Item, ProjectFile, Review
from ybs.config.tool_definition import Definition, Described, usual_name
from ybs.config.tree import is_list, is_object
from ybs.config.variables import variables_in
from ybs.core.lazy import lazy
from ybs.trust.files import FOLDERS, TOOLS_FOLDER, is_skill
from ybs.trust.project_rules import parts_of
from ybs.trust.reach import WHOLE, Command, CommandReach, unknown_in

#: Finds what a command reaches.
Find: TypeAlias = Callable[[Command], CommandReach]
#: A longer line is compared in pieces, in characters.
_LONGEST_LINE = 400
_PIECE = lazy(r"[^\s;]{1,200}[\s;]*|[\s;]+")
_KINDS = {
    ".ybs/agents": "defines a kind of sub-agents",
    ".claude/agents": "defines a kind of sub-agents",
    ".ybs/commands": "adds a command",
    ".claude/commands": "adds a command",
    ".ybs/hooks": "is a program that hooks may run",
    ".ybs/skills": "belongs to a skill that contains a program",
    ".ybs/tools": "is a tool that the model may call; what it loads from elsewhere in the project may change later",
}
_PROGRAM = "is a program that ybs would offer to the model as a tool; what it loads from elsewhere in the project may change later"
#: Folders of other agents: common, and of use only to who asks for what is in them.
_QUIET = (".claude/agents", ".claude/commands")
#: What single settings do; `{name}` is the setting's own.
_SETTINGS = {("llm", "model"): "chooses the model"}
#: What the entries of a section do; `{name}` is the entry's.
_SECTIONS = {
    "mcpServers": "starts or reaches the MCP server {name}:",
    "hooks": "runs programs at {name}:",
}


def items_of_settings(place: str, tree: Mapping[str, Any]) -> Iterator[Item]:
    """Say what the powerful settings of a file would do, one by one."""
    for name, value in tree.items():
        if is_object(value) and value:
            for inner, each in value.items():
                yield Item(place=place, words=_words_of(name, inner, each))
        else:
            yield Item(place=place, words=f"sets {dotted((name,))} to {plain(value)}")


def commands_in(tree: Mapping[str, Any]) -> Iterator[Command]:
    """Yield each command in powerful settings: those of hooks are a shell's, all others programs that are started without one."""
    for name, value in tree.items():
        if name == "hooks":
            yield from words_in(value)
        else:
            entries = value.values() if is_object(value) else [value]
            yield from filter(None, map(texts_of, entries))


def items_of_commands(place: str, tree: Mapping[str, Any], reach: Find) -> Iterator[Item]:
    """Say of each hook and server that runs files which cannot be bound to the trust what those are."""
    for event, groups in entries_of(tree, "hooks"):
        for hook in _hooks_in(groups):
            command = hook["command"]
            what = f"the hook {visible(msgspec.json.encode(command).decode(), 400)} at {visible(event)} runs"
            if words := _open_words(what, reach(command), hook.get("project")):
                yield Item(place=place, words=words)
    for name, server in entries_of(tree, "mcpServers"):
        if is_object(server) and "command" in server and (texts := texts_of(server)):
            what = f"the MCP server {visible(name)} runs"
            if words := _open_words(what, reach(texts), server.get("project")):
                yield Item(place=place, words=words + _reached_by(server))


def items_of_rules(place: str, tree: Mapping[str, Any], inside: Collection[Path]) -> Iterator[Item]:
    """Say what rules for commands let the model run that may run files which cannot be bound to the trust. `inside` is what of `PATH` lies in the project."""
    unknown: list[str] = []
    for rule in words_in(dict(entries_of(tree, "safety")).get("allow")):
        tool, pattern = parts_of(rule) or ("", None)
        if tool == "run_shell":
            # A star stands for words of the model's, and for no files as in the shell.
            unknown += unknown_in((pattern or "*").replace("*", "'*'"), (), inside)
    found = CommandReach((), tuple(dict.fromkeys(unknown)))
    if words := _open_words("safety.allow lets the model run", found, "write"):
        yield Item(place=place, words=words)


def entries_of(tree: Mapping[str, Any], section: str) -> Iterable[tuple[str, Any]]:
    """Return the entries of a section by name."""
    entries = tree.get(section)
    return entries.items() if is_object(entries) else ()


def _hooks_in(value: Any) -> Iterator[dict[str, Any]]:
    if is_object(value) and isinstance(value.get("command"), str):
        yield value
    for each in value.values() if is_object(value) else value if is_list(value) else ():
        yield from _hooks_in(each)


def texts_of(entry: Any) -> tuple[str, ...]:
    """Return every text of an entry, those of its command first: the trust in it is about the files that they reach."""
    if is_object(entry) and "command" in entry:
        entry = {"command": entry["command"], **entry}
    return tuple(words_in(entry))


def _reached_by(server: dict[str, Any]) -> str:
    """Return what a server gets beside the project: such files would have it as well."""
    given = ["the network"] if server.get("network") is not False else []
    given += [f"your variable {name}" for name in variables_in(server)]
    return visible(f" and has {', '.join(given)}", None) if given else ""


def _open_words(what: str, found: CommandReach, project: Any) -> str:
    seen = found.seen(project)
    if not (found.unknown and seen):
        return ""
    names = visible(", ".join(found.unknown), None)
    if seen == WHOLE:
        given = "may change the project" if project == "write" else "only reads the project"
    else:
        given = visible(f"sees only {', '.join(seen)} of it", None)
    return f"{what} {names}, which may run files of the project that change later; it {given}"


def items_of_files(
    files: Mapping[str, ProjectFile], described: Mapping[str, Described]
) -> Iterator[Item]:
    """Say what the files of a project are for; one that describes a program is said with that."""
    beside: list[str] = []
    sidecars = {path: sidecar_of(path, files.__contains__) for path in described}
    for path, file in files.items():
        if path in sidecars.values():
            continue
        folder = next((name for name in FOLDERS if path.startswith(f"{name}/")), "")
        said = _said_in(sidecars[path], path, described[path]) if path in described else ""
        if is_skill(path):
            yield Item(place=visible(path), words="adds a skill", asks=folder != "")
        elif folder:
            asks = folder not in _QUIET
            words = _KINDS[folder] + _commands_of(path, folder, file) + said
            yield Item(place=visible(path), words=words, asks=asks)
        elif said or (file.is_executable and path.rpartition("/")[0] == TOOLS_FOLDER):
            yield Item(place=visible(path), words=_PROGRAM + said, asks=bool(said))
        elif path.startswith(f"{TOOLS_FOLDER}/"):
            beside.append(path)
    if beside:
        words = f"has files beside these programs, which they may load: {', '.join(beside)}"
        yield Item(place=TOOLS_FOLDER, words=visible(words, None), asks=False)


def _said_in(sidecar: str, path: str, described: Described) -> str:
    """Say what the file beside a program makes of it."""
    if isinstance(described, str):
        return visible(f"; it is not used: in {sidecar}, {described}", None)
    return visible(f"; {sidecar} describes it", None) + called_and_needs(described, path)


def called_and_needs(tool: Definition, path: str) -> str:
    """Say what a tool that a project or a plugin describes is called, where that is not its program's name, and what it needs."""
    named = f"; it is called {tool.name}" if tool.name != usual_name(path) else ""
    needs = f"; it needs {tool.needs.words}" if tool.needs.words else ""
    return visible(named + needs, None)


def _commands_of(path: str, folder: str, file: ProjectFile) -> str:
    """Name the shell commands that a template runs where it is used."""
    if not folder.endswith("/commands") or not path.endswith(".md"):
        return ""
    commands = template.commands_in(file.data)
    named = "; ".join(visible(each, None) for each in commands)
    return f", which runs: {named}" if commands else ""


def lines_of(review: Review) -> list[str]:
    """Say it all, a line each: what is wanted, and how it differs from what was trusted before."""
    lines = [f"{item.place}: {item.words}" for item in review.items]
    for use in review.variables:
        state = "granted" if use in review.granted else "not granted"
        state = "never: it is the key of a provider" if review.is_key(use) else state
        lines.append(f"Your variable {use.words}: {state}")
    for change in review.changes:
        lines.append(f"{change.path} {change.what} since you trusted this project")
        lines += [f"  {line}" for line in change.difference.splitlines()]
    if review.problem:
        lines.append(f"This project cannot be trusted: {review.problem}")
    return lines


def state_of(review: Review, *, is_trusted: bool) -> str:
    """Return what follows from the decision, also for the person's own programs."""
    where = "in" if is_trusted else "outside of"
    own = f"Your own MCP servers, hooks and tools start {where} this project"
    if review.asks_for_nothing:
        said = "Trusted" if is_trusted else "Not trusted"
        return f"{said}. {own}; its own files ask for nothing."
    as_it_is = "Trusted as it is now. If any of it changes, ybs asks again."
    return f"{as_it_is if is_trusted else 'Not trusted, so all of this is ignored.'} {own}."


def words_in(value: Any) -> Iterator[str]:
    """Yield every text in a value."""
    if isinstance(value, str):
        yield value
    elif is_object(value):
        for each in value.values():
            yield from words_in(each)
    elif is_list(value):
        for each in value:
            yield from words_in(each)


def difference(was: str, now: str) -> str:
    """Show all that has changed in a text, line by line, escaped; of a long line the pieces that differ."""
    if was.endswith("\n") and now.endswith("\n"):
        was, now = was[:-1], now[:-1]
    shown = list(unified_diff([*_split(was)], [*_split(now)], n=1))[2:]
    return "\n".join(
        visible(line.removesuffix("\n"), None) + " …" * (not line.endswith("\n")) for line in shown
    )


def _split(text: str) -> Iterator[str]:
    """Yield the lines of a text with their ends, long ones in several pieces: of these the last one has the end."""
    for line in text.split("\n"):
        yield from _PIECE().findall(f"{line}\n") if len(line) > _LONGEST_LINE else [f"{line}\n"]


def _words_of(section: str, name: str, value: Any) -> str:
    shown = plain(value) if not isinstance(value, str) else visible(value, None)
    words = _SETTINGS.get((section, name)) or _SECTIONS.get(section) or "sets {name} to"
    known = (section, name) in _SETTINGS or section not in _SECTIONS
    named = dotted((section, name)) if known else visible(name)
    return f"{words.format(name=named)} {shown}"


def plain(value: Any) -> str:
    """Write a value in words that are safe to show, whole: nothing may hide behind a cut. Texts stand in quotes."""
    return visible(_in_words(value), None)


def _in_words(value: Any) -> str:
    if is_object(value) and value:
        return ", ".join(f"{_name(key)} {_in_words(each)}" for key, each in value.items())
    if is_list(value) and value:
        return "; ".join(_in_words(each) for each in value)
    return msgspec.json.encode(value).decode()


def _name(key: str) -> str:
    """Return a key as a word where it is one: another could pass for more than a key."""
    return key if key.isidentifier() else msgspec.json.encode(key).decode()
