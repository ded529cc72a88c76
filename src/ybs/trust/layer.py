"""The layer of a project's own files: the harmless part always, the powerful part once the person trusts it."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ybs.config.document import (
    SettingsDocument,
    Unusable,
    parse,
    place_of,
    text_of,
    visible,
)
from ybs.config.host import Host
from ybs.config.key_store import known_keys
from ybs.config.layers import BLOCKED_PATHS
from ybs.config.review import REPLACED, Item, ProjectFile, Review, RunTrust, VariableUse
from ybs.config.schema import Config
from ybs.config.shape import Fitting, current_of
from ybs.config.tool_definition import Described, described_in
from ybs.config.tree import Leaf, Tree, ValueOrigin, is_object, label, merge
from ybs.trust.decision import judge
from ybs.trust.files import CLAUDE_SETTINGS, MCP_FILE, Untrustable, gather
from ybs.trust.grants import (
    add_to,
    check_servers,
    hooks_in,
    joined,
    key_variables,
    marked,
    marked_servers,
    rules_of,
    take_powerful,
    variables_of,
    variables_of_tools,
)
from ybs.trust.project_settings import take_harmless, take_tighter
from ybs.trust.reach import reach, within
from ybs.trust.shown import items_of_servers
from ybs.trust.wording import (
    Find,
    commands_in,
    items_of_commands,
    items_of_files,
    items_of_rules,
    items_of_settings,
)

_SERVERS = "mcpServers"
_MOST_NAMED = 8
_NOT_ITS_OWN = (
    "a project can only block places in it, so the others are ignored: your programs may need them"
)


class ProjectLayer:
    """What a project's files say, read once, and what of it holds."""

    def __init__(
        self, file: Path, text: str | None, *, run_trust: RunTrust | None, host: Host
    ) -> None:
        self.file, self.united = file, dict[tuple[str, ...], Leaf]()
        self._early: list[str] = []
        self._host = host
        self.document = self._parse(file, text) or SettingsDocument(str(file))
        self.servers: SettingsDocument | None = None
        #: By the file that they stand in.
        self._claude_hooks: dict[str, dict[str, Any]] = {}
        self.powerful = take_powerful(self.document)
        self.review = self._review(text or "", run_trust, host)

    @property
    def warnings(self) -> list[str]:
        """Everything that the person should know."""
        servers = self.servers.all_warnings() if self.servers else []
        return [*self._early, *self.document.all_warnings(), *servers]

    def bind_keys(self, tree: Tree, own: Sequence[Tree]) -> list[str]:
        """Take the keys that the person's `own` files and all settings name away from what the project names; return warnings."""
        if self.review is None:
            return []
        keys = key_variables(tree, own, self._host.environ, self._kept_keys(self.review))
        self.review = replace(self.review, keys=keys, rules=rules_of(tree, own))
        if not self._is_trusted:
            return []
        return check_servers(tree, self.review)

    def _kept_keys(self, review: Review) -> list[str]:
        """Return the keys that the person saved, where a variable may hold one of them; those of the keyring only before a grant."""
        uses, environ = review.variables, self._host.environ
        waits = any(use.name in environ and use not in review.granted for use in uses)
        return known_keys(self._host, asks_keyring=waits) if uses else []

    def lay_over(self, user: Tree) -> Tree:
        """Return the user's settings with the project's over them."""
        if self._is_trusted:
            user = self._lay_powerful(user)
        else:
            self._warn_of_distrust()
        return self._lay_harmless(user)

    @property
    def _is_trusted(self) -> bool:
        return self.review is not None and self.review.is_trusted

    def _lay_harmless(self, user: Tree) -> Tree:
        document = self.document
        origin = _origin_of(document)
        fitting = Fitting(document.warn, may_address=False).section(take_harmless(document), Config)
        kept, united = take_tighter(document, fitting, lambda path: current_of(user, path))
        if named := united.get(BLOCKED_PATHS):
            united[BLOCKED_PATHS] = [*filter(self._lies_here, named)]
            if united[BLOCKED_PATHS] != named:
                document.warn(BLOCKED_PATHS, _NOT_ITS_OWN)
        self.united = {path: Leaf([*added], origin) for path, added in united.items()}
        return merge(user, label(kept, origin))

    def _lies_here(self, name: str) -> bool:
        """Return whether a path of the settings, links resolved, is one in the project: about others no project has a say."""
        folder = self.file.parent
        try:
            return self._host.expand(name, folder).resolve().is_relative_to(folder.resolve())
        except (ValueError, OSError, RuntimeError):  # it is no path, or a circle of links
            return False

    def _lay_powerful(self, user: Tree) -> Tree:
        document = self.document
        self.powerful.warn(document)
        values = Fitting(document.warn, may_address=False).section(self.powerful.values, Config)
        also = self._claude_hooks.values()
        if hooks := joined(*map(marked, (values.get("hooks", {}), *also))):
            values = {**values, "hooks": hooks}
        if _SERVERS in values:
            values = {**values, _SERVERS: marked_servers(values[_SERVERS])}
        project = label(values, _origin_of(document))
        if self.servers is not None:
            described = {_SERVERS: marked_servers(self.servers.tree.get(_SERVERS))}
            named = Fitting(self.servers.warn).section(described, Config)
            project = merge(label(named, _origin_of(self.servers)), project)
        merged, taken = add_to(user, project)
        if taken:
            document.warn_of_all(taken, "ignored, because your own settings already define it")
        return merged

    def _warn_of_distrust(self) -> None:
        review = self.review
        if review is None:  # nothing waits for trust, so that is not what is missing
            self.powerful.warn(self.document)
            return
        is_other = REPLACED in review.changes
        was = " any more: it has changed" if review.changes else ""
        was = " any more: another folder lies there now" if is_other else was
        why = f"ignored, because this project is not trusted{was}"
        if review.problem:
            why = f"ignored, because this project cannot be trusted ({review.problem})"
        if waiting := self.powerful.paths:
            self.document.warn_of_all(waiting, why)
        self.powerful.warn(self.document)
        asking = {item.place for item in review.items if item.asks or is_other}
        files = sorted(asking - {self.file.name})
        if files or review.problem:
            more = f" and {len(files) - _MOST_NAMED} more" if len(files) > _MOST_NAMED else ""
            named = ", ".join(files[:_MOST_NAMED]) or "its programs"
            self._early.append(f"{visible(str(self.file.parent))}: {why}: {named}{more}")

    def _review(self, text: str, run_trust: RunTrust | None, host: Host) -> Review | None:
        """Read the rest of what could do something, and compare it with what was trusted."""
        folder, path = self.file.parent, host.environ.get("PATH", os.defpath)
        items = list(items_of_settings(self.file.name, self.powerful.values))
        try:
            folder = folder.resolve()
            reached = cache(partial(reach, folder=folder, home=host.home, path=path))
            files = gather(folder, lambda files: self._reached(files, reached))
        except (Untrustable, OSError) as error:
            words = str(error) if isinstance(error, Untrustable) else error.strerror or "?"
            return Review(folder=folder, items=tuple(items), files={}, problem=words)
        if items:
            files[self.file.name] = ProjectFile(text.encode())
        items += [
            *items_of_commands(self.file.name, self.powerful.values, reached),
            *items_of_rules(self.file.name, self.powerful.values, within(folder, path)),
            *items_of_servers(self.file.name, self.powerful.values, host, folder),
        ]
        for name in CLAUDE_SETTINGS:
            if hooks := self._claude_hooks.get(name):
                wanted = [*items_of_settings(name, {"hooks": hooks})]
                wanted += items_of_commands(name, {"hooks": hooks}, reached)
                items += [replace(item, asks=False) for item in wanted]  # common, as commands are
            else:
                files.pop(name, None)
        if not files:
            return None
        if self.servers is not None:
            servers = {_SERVERS: self.servers.tree.get(_SERVERS)}
            items += [
                *items_of_settings(MCP_FILE, servers),
                *items_of_commands(MCP_FILE, servers, reached),
                *items_of_servers(MCP_FILE, servers, host, folder),
            ]
        elif MCP_FILE in files:
            items.append(Item(place=MCP_FILE, words="cannot be read"))
        described = described_in(files)
        items += items_of_files(files, described)
        once = run_trust is not None and run_trust.covers(folder, files)
        review = judge(host, folder, files, tuple(items), once=once)
        variables = tuple(dict.fromkeys(self._variables(described)))
        return replace(review, variables=variables, described=described)

    def _variables(self, described: Mapping[str, Described]) -> Iterator[VariableUse]:
        """Yield what of the person's variables its servers and tools read."""
        servers = self.servers.tree if self.servers else {}
        yield from variables_of(servers.get(_SERVERS))
        yield from variables_of(self.powerful.values.get(_SERVERS))
        yield from variables_of_tools(described)

    def _reached(self, files: Mapping[str, ProjectFile], find: Find) -> Iterable[str]:
        """Yield the files of the project that its settings reach, after reading what else has settings."""
        self.servers = self._parse_servers(files.get(MCP_FILE))
        found = {name: self._parse_file(name, files.get(name)) for name in CLAUDE_SETTINGS}
        self._claude_hooks = {
            n: hooks for n, d in found.items() if d and (hooks := hooks_in(d.tree))
        }
        servers = self.servers.tree if self.servers else {}
        also = [{"hooks": hooks} for hooks in self._claude_hooks.values()]
        for tree in (self.powerful.values, *also, servers):
            for words in commands_in(tree):
                yield from find(words).files

    def _parse_servers(self, file: ProjectFile | None) -> SettingsDocument | None:
        document = self._parse_file(MCP_FILE, file)
        servers: Any = document.tree.get(_SERVERS) if document else None
        if document is None or not is_object(servers):
            return None
        # An entry that two files make would be one that neither of them shows.
        others: Any = self.powerful.values.get(_SERVERS)
        for name in [each for each in servers if is_object(others) and each in others]:
            del servers[name]
            why = f"ignored, because {self.file.name} has a server of this name too"
            document.warn((_SERVERS, name), why)
        return document

    def _parse_file(self, name: str, file: ProjectFile | None) -> SettingsDocument | None:
        return self._parse(self.file.parent / name, file and file.data)

    def _parse(self, path: Path, text: str | bytes | None) -> SettingsDocument | None:
        try:
            text = text_of(text) if isinstance(text, bytes) else text
            return None if text is None else parse(path, text)
        except Unusable as error:
            self._early.append(f"{place_of(path, error)}: IGNORED as a whole, because it {error}")
            return None


def _origin_of(document: SettingsDocument) -> ValueOrigin:
    return ValueOrigin("project", document.source)
