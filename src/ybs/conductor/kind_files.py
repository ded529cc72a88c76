"""Kinds of sub-agents in Markdown: front matter that says what one may use, and below it what it is told.

The form is that of Claude Code's agents as well, with its names of tools, modes and limits.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from msgspec import Struct

from ybs.agent.user_hooks.definitions import KNOWN
from ybs.conductor.acp.presets import kind_of
from ybs.conductor.budget import Budget
from ybs.conductor.kinds import BUILT_IN, RESERVED, Kind, means
from ybs.config.document import Unusable, open_own
from ybs.config.front_matter import BadFrontMatter, Value, fields, name_of, split, text_of
from ybs.config.host import Host
from ybs.config.layers import Loaded
from ybs.config.paths import PERSONS_AGENTS, PROJECT_AGENTS
from ybs.config.review import Review
from ybs.config.schema import Mode
from ybs.core.cutting import shortened
from ybs.core.errors import ConfigError
from ybs.core.wording import listed
from ybs.security.incognito import Incognito
from ybs.security.policy.bound import BoundMode
from ybs.security.unicode import printable
from ybs.tools.listing import listing
from ybs.tools.registry import NAMES

MOST_BYTES: Final = 100_000
_MOST_FILES: Final = 200
_LONGEST_DESCRIPTION: Final = 500
_README: Final = "README.md"
#: Where the settings name kinds that are other agents.
ACP_PLACE: Final = "agents.acp"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
#: What Claude Code calls its modes.
_MODES: Mapping[str, BoundMode | None] = {
    **{mode: mode for mode in get_args(Mode)},
    "read-only": "read-only",
    "default": None,
    "acceptEdits": "accept-edits",
    "dontAsk": "deny",
    "bypassPermissions": "bypass",
}
_TOOLS: Mapping[str, str] = {theirs: own for own, known in KNOWN.items() for theirs in known.names}
#: Fields that other agents know and ybs does not use; naming them would help nobody.
_COSMETIC = frozenset({"color", "version", "author", "license", "metadata"})
#: `mcp__github`, as Claude Code calls a whole server.
_SERVER = re.compile(r"\Amcp__(?:(?!__|\*).)+\Z")
_ALL: Final = ("*",)
_OF_TOOLS = ("tools", "disallowedTools")
_FIELDS = frozenset({
    *("name", "description", "tools", "disallowedTools", "mode", "permissionMode", "model"),
    *("steps", "maxTurns", "tokens", "cost_usd", "seconds"),
})  # fmt: skip


class BadKind(Exception):
    """A file that cannot be used; the text says why."""


class _Problem(Struct, frozen=True):
    """What is wrong with a file. One that `is_fatal` is not used; of one that is not the person's alone they are told (`is_told`)."""

    place: str
    why: str
    is_fatal: bool = True
    is_told: bool = False


class Kinds(Struct, frozen=True):
    """The kinds there are by name, the built-in ones first, and what is wrong with files."""

    by_name: dict[str, Kind]
    problems: tuple[_Problem, ...] = ()
    #: Whether those that are other agents may be used here.
    allows_agents: bool = True

    @property
    def told(self) -> str:
        """What a model is told of the kinds that are not built in and can be used: all names, and what there is room for of their descriptions."""
        kinds = [kind for kind in self.by_name.values() if kind.place]
        return listing([kind for kind in kinds if self.allows_agents or kind.acp is None])


class _File(Struct, frozen=True, kw_only=True):
    """A file of a kind: its place as the person knows it, whether it is the person's own, and the plugin that it belongs to."""

    place: str
    data: bytes
    is_own: bool = False
    plugin: str = ""


def find_kinds(loaded: Loaded, folder: Path) -> Kinds:
    """Return the built-in kinds, the other agents of the person's settings, their own kinds, those of a trusted project, and those of plugins.

    Those of plugins are called `PLUGIN:NAME`. Of two with one name the first is used. The person's own take the place of built-in ones;
    a project's do not.
    """
    problems: list[_Problem] = []
    found = dict(_of_settings(loaded, problems))
    for file in _files(loaded, folder, problems):
        place = file.place
        try:
            kind = read_kind(file.data, place, is_own=file.is_own, plugin=file.plugin)
        except BadKind as error:
            problems.append(_Problem(place, str(error)))
            continue
        problems += [_Problem(place, remark, is_fatal=False) for remark in remarks_on(file.data)]
        if kind.name in found:
            problems.append(
                _Problem(place, f"{found[kind.name].place} has the same name, and is used")
            )
        elif kind.name in RESERVED and not file.is_own:
            problems.append(_Problem(place, f"{kind.name} is built in, and that one is used"))
        else:
            found[kind.name] = kind
    allows_agents = Incognito.of(loaded.config.incognito).allows_agents
    return Kinds({**BUILT_IN, **found}, tuple(problems), allows_agents)


def _of_settings(loaded: Loaded, problems: list[_Problem]) -> Iterator[tuple[str, Kind]]:
    """Yield the kinds that are other agents. Only the person's own settings name them: `ybs.trust` leaves out those of a project."""
    for name, agent in loaded.config.agents.acp.items():
        place = f"{ACP_PLACE}.{name}"
        if not _NAME.fullmatch(name):
            problems.append(
                _Problem(place, "its name may have lower-case letters, digits, - and _")
            )
            continue
        try:
            yield name, kind_of(name, agent, place)
        except ConfigError as error:
            problems.append(_Problem(place, str(error)))


def _files(loaded: Loaded, folder: Path, problems: list[_Problem]) -> Iterator[_File]:
    """Yield the files in the order in which they count. Folders within the folders are for order only."""
    host = loaded.host
    for each in host.persons(PERSONS_AGENTS):
        files = sorted(file for file in each.rglob("*.md") if file.name != _README)
        yield from _read_all(files[:_MOST_FILES], host, problems)
    yield from _of_project(loaded.review, folder, problems)
    for plugin in loaded.plugins:
        files = [plugin.folder / path for path in plugin.agents]
        yield from _read_all(files, host, problems, plugin.name)


def _of_project(review: Review | None, folder: Path, problems: list[_Problem]) -> Iterator[_File]:
    for name in PROJECT_AGENTS:
        if review is None or not review.is_trusted:
            if any((folder / name).rglob("*.md")):
                problems.append(_Problem(name, "this project is not trusted"))
            continue
        for path in review.paths(name):
            if path.endswith(".md") and Path(path).name != _README:
                yield _File(place=printable(path), data=review.data(path) or b"")


def _read_all(
    files: Iterable[Path], host: Host, problems: list[_Problem], plugin: str = ""
) -> Iterator[_File]:
    for file in files:
        place = host.short(str(file))
        try:
            with open_own(file) as opened:
                data = opened.read(MOST_BYTES + 1)
        except Unusable as error:
            problems.append(_Problem(place, f"it {error}", is_told=True))
            continue
        except OSError as error:
            problems.append(_Problem(place, f"it cannot be read: {error.strerror or error}"))
            continue
        if len(data) > MOST_BYTES:
            problems.append(_Problem(place, f"it has more than {MOST_BYTES // 1000} kB"))
        else:
            yield _File(place=place, data=data, is_own=not plugin, plugin=plugin)


def read_kind(data: bytes, place: str, *, is_own: bool = False, plugin: str = "") -> Kind:
    """Read a kind of its file. Raises BadKind."""
    said, body = _head_of(data)
    name = name_of(said, place)
    if not _NAME.fullmatch(name):
        raise BadKind(
            f"{shortened(printable(name), 60)!r} cannot be its name: lower-case letters, digits, - and _"
        )
    description = " ".join(text_of(said, "description").split())
    if not description:
        raise BadKind("it has no description, by which a model knows when to use it")
    if not body.strip():
        raise BadKind("there are no words below its front matter that say what to do")
    return Kind(
        name=f"{plugin}:{name}" if plugin else name,
        description=shortened(printable(description), _LONGEST_DESCRIPTION),
        prompt=body.strip(),
        tools=None if (tools := _tools_in(said, "tools")) in ((), _ALL) else tools,
        without=_tools_in(said, "disallowedTools"),
        mode=_mode_in(said),
        model=text_of(said, "model"),
        budget=_budget_in(said),
        place=place,
        is_own=is_own,
    )


def remarks_on(data: bytes) -> list[str]:
    """Say what of a file that can be read has no effect."""
    said, _ = _head_of(data)
    unknown = [key for key in said if key not in _FIELDS | _COSMETIC]
    remarks = [f"ybs does not know {listed(unknown)}"] * bool(unknown)
    parts = [name.strip() for key in _OF_TOOLS for name in _names_in(said, key) if "(" in name]
    if parts:
        remarks.append(
            f"{listed(parts)}: the part in brackets is ignored, and the whole tool is meant"
        )
    named = [name for key in _OF_TOOLS for name in _tools_in(said, key)]
    strange = [name for name in named if not any(means((name,), tool) for tool in NAMES)]
    if strange:
        remarks.append(
            f"{listed(strange)}: not built in; one is used where a program, a server or a plugin has it"
        )
    return remarks


def _head_of(data: bytes) -> tuple[Mapping[str, Value], str]:
    try:
        head, body = split(data.decode(errors="replace"))
        return fields(head), body
    except BadFrontMatter as error:
        raise BadKind(f"it {error}") from error


def _names_in(said: Mapping[str, Value], key: str) -> Sequence[str]:
    value = said.get(key, ())
    return value.split(",") if isinstance(value, str) else value


def _tools_in(said: Mapping[str, Value], key: str) -> tuple[str, ...]:
    """Return ybs's names of the tools, with `*` for any text; a server's name alone means all its tools."""
    plain = (name.partition("(")[0].strip() for name in _names_in(said, key))
    own = (_TOOLS.get(name, name) for name in plain if name)
    return tuple(dict.fromkeys(_SERVER.sub(r"\g<0>__*", "*" if n == "all" else n) for n in own))


def _mode_in(said: Mapping[str, Value]) -> BoundMode | None:
    word = text_of(said, "mode") or text_of(said, "permissionMode")
    if not word:
        return None
    if word not in _MODES:
        raise BadKind(
            f"{shortened(printable(word), 40)!r} is not a mode; there are: {', '.join(_MODES)}"
        )
    return _MODES[word]


def _budget_in(said: Mapping[str, Value]) -> Budget:
    steps = _number(said, "steps") or _number(said, "maxTurns")
    tokens = _number(said, "tokens")
    return Budget(
        steps=None if steps is None else max(1, round(steps)),
        tokens=None if tokens is None else round(tokens),
        cost_usd=_number(said, "cost_usd"),
        seconds=_number(said, "seconds"),
    )


def _number(said: Mapping[str, Value], key: str) -> float | None:
    text = text_of(said, key)
    if not text:
        return None
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise BadKind(f"its `{key}` is {shortened(printable(text), 40)!r}, not a number above 0")
    return value
