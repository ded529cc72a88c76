"""The parts of a plugin: commands, kinds of sub-agents, skills, hooks, tools and MCP servers, and the unsupported ones."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec
from msgspec import Struct

from ybs.config.document import visible
from ybs.config.tool_definition import Described, described_in, may_be_tool
from ybs.config.tree import is_list, is_object
from ybs.core.decoding import object_in
from ybs.plugins.content import BadPlugin, PluginFile, PluginFiles, checked_path

#: Where a plugin says what it is called; that of other agents counts as well.
MANIFESTS: Final = (".ybs-plugin/plugin.json", ".claude-plugin/plugin.json")
MARKETS: Final = (".claude-plugin/marketplace.json",)
#: What the entry of a collection may say in place of the plugin's own manifest.
_OF_A_MARKET: Final = (
    *(
        "name",
        "description",
        "version",
        "commands",
        "agents",
        "skills",
        "hooks",
        "mcpServers",
        "lspServers",
    ),
)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_TOOL = re.compile(r"tools/[^/.][^/]*")
_ODD = re.compile(r"[^a-z0-9_-]+")
#: Parts that plugins of other agents have and ybs does not use.
_UNUSED_FOLDERS = {
    "output-styles": "output styles",
    "themes": "themes",
    "monitors": "monitors",
    "bin": "programs for the PATH",
}
_UNUSED_FILES = {".lsp.json": "language servers", "settings.json": "settings"}
_UNUSED_FIELDS = {
    "lspServers": "language servers",
    "outputStyles": "output styles",
    "userConfig": "settings of its own",
}
_ADDRESSES: Final = ("http:", "https:", "git@")


class Parts(Struct, frozen=True, kw_only=True):
    """What is in a plugin, by paths within it. `tools` has with each program what the file beside it says, None where there is none; `hooks` and `servers` are trees as they stand in settings; `unused` is named to the person."""

    name: str
    description: str = ""
    version: str = ""
    commands: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    skill_folders: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    skill_files: tuple[str, ...] = ()
    tools: dict[str, Described | None] = {}
    hooks: dict[str, list[Any]] = {}
    servers: dict[str, Any] = {}
    unused: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it that ybs knows, used or not."""
        used = (self.commands, self.agents, self.skills, self.tools, self.hooks, self.servers)
        return not (any(used) or self.unused)


def parts_of(content: PluginFiles, name: str = "") -> Parts:
    """Return what is in a plugin. `name` stands in for the one of a manifest. Raises BadPlugin."""
    return _Inspection(content).parts(name)


def named_plugins(content: PluginFiles) -> list[tuple[str, str]]:
    """Return name and folder of each plugin that a collection of them has here."""
    return [(str(each.get("name", "")), folder) for each, folder in _offered(content)]


def plugin_in(content: PluginFiles, name: str) -> PluginFiles:
    """Return a plugin of a collection, by its name or folder; what the collection says of it stands in its manifest. Raises BadPlugin."""
    offered = (each for each in _offered(content) if each[0].get("name") == name)
    nothing: Mapping[str, Any] = {}
    entry, folder = next(offered, (nothing, name))
    if not entry and (address := next(_elsewhere(content, name), "")):
        raise BadPlugin(f"{visible(name)} lies elsewhere; its own address is {address}")
    inner = content.below(folder) if folder else content.copy()
    place = next((path for path in MANIFESTS if path in inner.files), MANIFESTS[0])
    file = inner.files.get(place)
    own = {} if file is None else object_in(file.data)
    said = {key: entry[key] for key in _OF_A_MARKET if key in entry}
    if own is not None and (whole := {**said, **own}) != own:
        inner.files[place] = PluginFile(msgspec.json.format(msgspec.json.encode(whole)))
    return inner


def _offered(content: PluginFiles) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the entry and the folder of each plugin that a collection has here."""
    for entry in _entries(content):
        source: Any = entry.get("source")
        if isinstance(source, str) and not source.startswith(_ADDRESSES):
            yield entry, source.removeprefix(".").strip("/")


def _elsewhere(content: PluginFiles, name: str) -> Iterator[str]:
    """Yield where a plugin of a collection lies that is not here: an address, and the folder there."""
    for entry in _entries(content):
        source: Any = entry.get("source")
        said: Mapping[str, Any] = source if is_object(source) else {"url": source}
        repository = f"https://github.com/{said.get('repo')}" if "repo" in said else ""
        words = (said.get("url") or repository or said.get("package"), said.get("path"))
        if entry.get("name") == name:
            yield visible(" ".join(each for each in words if isinstance(each, str)))


def _entries(content: PluginFiles) -> Iterator[Mapping[str, Any]]:
    """Yield what a collection says of each of its plugins."""
    for path in MARKETS:
        file = content.files.get(path)
        market = object_in(file.data) if file is not None else None
        plugins: Any = market.get("plugins") if market is not None else None
        yield from filter(is_object, plugins if is_list(plugins) else ())


class _Inspection:
    def __init__(self, content: PluginFiles) -> None:
        self._files = content.files
        self._problems: list[str] = []
        self._manifest: Mapping[str, Any] = {}

    def parts(self, name: str) -> Parts:
        for path in MANIFESTS:
            if (file := self._files.get(path)) is not None:
                manifest = object_in(file.data)
                if manifest is None:
                    raise BadPlugin(f"its {path} is not a JSON object")
                self._manifest = manifest
                break
        said = self._manifest
        named = _ODD.sub("-", _text(said.get("name") or name).lower()).strip("-_")
        if not _NAME.fullmatch(named):
            raise BadPlugin("it has no name that could be used")
        skill_folders, skill_files = self._skills()
        return Parts(
            name=named,
            description=_text(said.get("description")),
            version=_text(said.get("version")),
            commands=tuple(self._texts("commands")),
            agents=tuple(self._texts("agents")),
            skill_folders=skill_folders,
            skills=tuple(PurePosixPath(path).parent.name for path in skill_files),
            skill_files=skill_files,
            tools=self._tools(),
            hooks=self._hooks(),
            servers=self._servers(),
            unused=tuple(self._unused()),
            problems=tuple(self._problems),
        )

    def _texts(self, part: str) -> Iterator[str]:
        places = [part, *self._named(part)]
        for path in self._files:
            is_meant = any(path == place or path.startswith(f"{place}/") for place in places)
            if is_meant and path.endswith(".md") and PurePosixPath(path).name != "README.md":
                yield path

    def _skills(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        folders = ["skills", *self._named("skills")]
        found: dict[str, list[str]] = {}
        for path in self._files:
            pure = PurePosixPath(path)
            above = str(pure.parent.parent)
            if pure.name == "SKILL.md" and above in folders:
                found.setdefault(above, []).append(path)
        return tuple(found), tuple(path for paths in found.values() for path in paths)

    def _tools(self) -> dict[str, Described | None]:
        beside = described_in(self._files)
        files = {path: file for path, file in self._files.items() if _TOOL.fullmatch(path)}
        return {path: beside.get(path) for path, file in files.items() if may_be_tool(path, file)}

    def _hooks(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        trees = self._trees("hooks", "hooks/hooks.json")
        for tree in trees:
            inner = tree.get("hooks", tree)
            for event, groups in inner.items() if is_object(inner) else ():
                if is_list(groups):
                    found.setdefault(event, []).extend(groups)
        return found

    def _unused(self) -> Iterator[str]:
        tops = {path.partition("/")[0] for path in self._files}
        named = {**_UNUSED_FOLDERS, **_UNUSED_FILES}
        words = [named[top] for top in tops if top in named]
        words += [_UNUSED_FIELDS[key] for key in _UNUSED_FIELDS if self._manifest.get(key)]
        yield from sorted({*words})

    def _servers(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for tree in self._trees("mcpServers", ".mcp.json"):
            inner = tree.get("mcpServers", tree)
            found |= inner if is_object(inner) else {}
        return found

    def _trees(self, field: str, usual: str) -> list[dict[str, Any]]:
        """Return what a part is said to be: in the manifest itself, in a file that is usual, and in those that the manifest names."""
        given: Any = self._manifest.get(field)
        trees: list[dict[str, Any]] = [given] if is_object(given) else []
        for path in dict.fromkeys((usual, *self._named(field))):
            if (file := self._files.get(path)) is not None:
                tree = object_in(file.data)
                trees += [] if tree is None else [tree]
                self._problems += [f"{path} is not a JSON object"] * (tree is None)
        return trees

    def _named(self, field: str) -> list[str]:
        """Return the paths that the manifest gives for a part; one that leads out is left out and named."""
        given = self._manifest.get(field)
        texts = [given] if isinstance(given, str) else given if is_list(given) else []
        return list(self._inside(texts))

    def _inside(self, texts: Iterable[Any]) -> Iterator[str]:
        for text in texts:
            try:
                yield checked_path(text if isinstance(text, str) else "")
            except BadPlugin:
                self._problems.append(
                    f"{visible(str(text), 100)} lies outside of it, so it is ignored"
                )


def _text(value: Any) -> str:
    return visible(value.strip(), 300) if isinstance(value, str) else ""
