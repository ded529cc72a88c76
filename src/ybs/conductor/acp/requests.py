"""Requests of another agent as tool calls: the policy and the person's hooks judge them, and they stay in ybs's folders.

A permission that it asks for becomes a call that does nothing but pass the checks; files that it reads and writes through ybs are calls of ybs's own tools.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.agent.environment import ToolEnvironment
from ybs.conductor.acp.presets import reads_missing
from ybs.conductor.home import Workplace
from ybs.config.sections import AcpAgent
from ybs.core.call_ids import CallIds
from ybs.core.changes import FileChange
from ybs.core.cutting import first_words
from ybs.core.errors import ToolError
from ybs.core.events import Emit, ToolFinished, ToolStarted
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.security.paths.named_paths import NamedPaths
from ybs.security.paths.names import shown_name
from ybs.security.paths.path_text import quoted
from ybs.security.paths.roots import Roots
from ybs.security.policy.case import Subject
from ybs.security.policy.confirm import Gate
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.builtin.delete_file import DeleteFile, DeleteFileArguments
from ybs.tools.builtin.write_file import WriteFile
from ybs.tools.calls.describing import one_line, title_of
from ybs.tools.editing.changes import FileEdit, file_change, text_diff
from ybs.tools.reading.document import TextFile, is_binary
from ybs.tools.reading.files import content_at, read_if_there
from ybs.tools.toolbox import LocalToolbox
from ybs.tools.workspace import Workspace

#: A file that an agent reads through ybs has no more characters.
MOST_CHARS: Final = 5_000_000
_MOST_SHOWN: Final = 20_000  # characters of an output
_LONGEST_TITLE: Final = 120
#: The tool of ybs's that does the same, and the most that it may do, by the kind that an agent gives its call, which `Wish.tool` takes at its word
#: only where that means more than what the call holds.
_TOOLS: Final[Mapping[str, tuple[str, Effect]]] = {
    "read": ("read_file", "read"),
    "search": ("search_files", "read"),
    "think": ("set_thought", "read"),
    "edit": ("edit_file", "edit"),
    "delete": ("delete_file", "delete"),
    "move": ("delete_file", "delete"),
    "execute": ("run_shell", "execute"),
    "fetch": ("web_fetch", "execute"),
}
_OTHER: Final[tuple[str, Effect]] = ("agent_request", "execute")
_CHANGING: Final = ("write", "edit")
_VERBS: Final[Mapping[Effect, str]] = {
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "delete": "Delete",
}


class ProposedChange(Struct, frozen=True, kw_only=True):
    """A file as an agent wants to change it; no `before`: it is new. `content` is all that the file would hold, as ybs has worked it out."""

    path: str
    before: str | None
    after: str
    content: str | None = None

    @property
    def texts(self) -> dict[str, str]:
        """The texts as a call of the tool that edits has them, and what they come to."""
        texts = {"old_text": self.before or "", "new_text": self.after}
        return texts if self.content is None else texts | {"content": self.content}

    def told(self, roots: Roots) -> FileChange:
        """Return it as ybs tells it."""
        before = None if self.before is None else self.before.encode(errors="replace")
        return file_change(before, self.after.encode(errors="replace"), roots.show(Path(self.path)))


class Wish(Struct, frozen=True, kw_only=True):
    """What an agent wants to do, in its own words: the kind and the title of its call, a command, the files that it touches, and its raw input."""

    kind: str = ""
    title: str = ""
    command: str = ""
    folder: str = ""
    paths: tuple[str, ...] = ()
    changes: tuple[ProposedChange, ...] = ()
    raw: Raw = Raw(b"null")

    def place(self, roots: Roots) -> Path:
        """Return the folder that its command runs in, as the agent says."""
        return Path(os.path.normpath(roots.folder / self.folder))

    @property
    def is_new(self) -> bool:
        """Whether none of the files is there, whatever the agent says."""
        return bool(self.paths) and not any(map(os.path.lexists, self.paths))

    @property
    def tool(self) -> tuple[str, Effect]:
        """The tool of ybs's that would do it, and the most that it may do: a command runs, and changes change, whatever the agent calls them."""
        if self.command:
            return _TOOLS["execute"]
        name, effect = _TOOLS.get(self.kind, _OTHER)
        if effect != "edit" and not (self.changes and effect == "read"):
            return name, effect
        return ("write_file", "write") if self.is_new else _TOOLS["edit"]

    def split(self) -> "list[Wish]":
        """Return the wish in parts that are one tool's each: changes of files that are there, and new ones."""
        if self.tool[1] not in _CHANGING:
            return [self]
        parts: list[Wish] = []
        for is_there in (True, False):
            changes = [each for each in self.changes if os.path.lexists(each.path) == is_there]
            paths = tuple(dict.fromkeys(each.path for each in changes))
            parts += [replace(self, changes=tuple(changes), paths=paths)] * bool(changes)
        return parts or [self]

    @property
    def arguments(self) -> dict[str, Any]:
        """What a call of that tool would have; hooks of the person read it."""
        if self.command:
            return {"command": self.command}
        given: dict[str, Any] = {}
        if len(self.changes) > 1:
            given["changes"] = [{"path": each.path} | each.texts for each in self.changes]
        if self.paths:
            given["path"] = self.paths[0]
        if len(self.paths) > 1:
            given["paths"] = list(self.paths)
        if len(self.changes) == 1:
            change = self.changes[0]
            given |= {"content": change.after} if self.is_new else change.texts
        return given or {"title": self.title, "request": self.raw}


class _Permission:
    """A tool that does nothing: its call passes the checks, or does not."""

    description = "asks for a permission"
    is_built_in = True
    parameters = Raw(b'{"type":"object","additionalProperties":true}')

    def __init__(
        self, wish: Wish, edits: Sequence[FileEdit], own: ToolEnvironment, *, only_reads: bool
    ) -> None:
        self._wish, self._edits, self._own, self._only_reads = wish, edits, own, only_reads
        self.name, self.effect = wish.tool
        self._given = msgspec.json.decode(msgspec.json.encode(wish.arguments))

    def preview(self, arguments: Any) -> Preview:
        """Show what is judged, as a tool of ybs's would: the agent's words for it stand beside that, as what it says."""
        said = first_words(one_line(self._wish.title), _LONGEST_TITLE)
        return replace(self._shown(arguments), said=said)

    def _shown(self, arguments: Any) -> Preview:
        wish, roots = self._wish, self._own.roots
        if wish.command:
            folder = wish.place(roots)
            if folder == roots.folder:
                return Preview(title="Run a shell command", body=wish.command)
            title = f"Run a shell command in {quoted(roots.show(folder))}"
            return Preview(title=title, body=wish.command, paths=(str(folder),))
        if self._edits:
            shown = [each.preview for each in self._edits]
            return Preview(
                title=", ".join(each.title for each in shown),
                body="\n".join(each.body for each in shown),
                is_diff=True,
                paths=tuple(path for each in shown for path in each.paths),
            )
        found = self._found()
        names = ", ".join(quoted(roots.show(path)) for path in found)
        paths = tuple(shown_name(str(path)) for path in found)
        if self.effect == "delete" and found:
            shown = [*map(self._removal, wish.paths)]
            return Preview(
                title=f"Delete {names}",
                body="\n".join(each.body for each in shown),
                is_diff=all(each.is_diff for each in shown),
                paths=paths,
            )
        if names and self.effect in _VERBS:
            return Preview(title=f"{_VERBS[self.effect]} {names}", paths=paths)
        body = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
        return Preview(title=f"Call {self.name}", body=body, paths=paths)

    def _removal(self, path: str) -> Preview:
        """Show what would be gone, or say why that cannot be shown."""
        tool = DeleteFile(self._own.workspace)
        try:
            return tool.preview(DeleteFileArguments(path=path))
        except ToolError as error:
            return Preview(title="", body=str(error))

    def _found(self) -> list[Path]:
        """Return the paths that it is about, a link that would be deleted as itself. Raises ToolError for one that tools may not touch."""
        roots, is_write = self._own.roots, self.effect != "read"
        is_followed = self.effect != "delete"
        return [
            roots.resolve(path, is_write=is_write, is_link_followed=is_followed)
            for path in self._wish.paths
        ]

    def subject(self, arguments: Any) -> Subject:
        """Say what the policy judges. Raises ToolError for a path that tools may not touch."""
        del arguments
        wish, roots = self._wish, self._own.roots
        if wish.command:
            folder = wish.place(roots)
            return Subject(
                command=wish.command,
                folder="" if folder == roots.folder else roots.show(folder),
                is_elsewhere=True,
                only_reads=self._only_reads,
            )
        found = self._found()
        named = tuple(zip(wish.paths, found, strict=True))
        later = (roots.autorun_part(path, name) for name, path in named if self.effect != "read")
        return Subject(
            paths=tuple(map(roots.show, found)),
            named=NamedPaths(roots, named),
            is_seen=bool(self._edits) and all(each.replacements for each in self._edits),
            is_plain=bool(wish.paths),
            autorun_part=next(filter(None, later), ""),
        )

    async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        """Let the agent do it. Raises ToolError where a hook wants something else to be done: the agent cannot be told."""
        del print_live
        if arguments != self._given:
            raise ToolError(
                "a hook changed what another agent asked for, and that cannot be handed on"
            )
        return ToolOutput(output="allowed")


class _ReadArguments(Struct, frozen=True, kw_only=True):
    path: str
    line: int | None = None
    limit: int | None = None


class _ReadText(BuiltInTool):
    """Reads a text as it is, without the numbers that models are shown; its result object holds it."""

    name: str = "read_file"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = _ReadArguments

    def __init__(self, workspace: Workspace, missing: str | None) -> None:
        super().__init__(workspace)
        self._missing = missing

    def preview(self, arguments: _ReadArguments) -> Preview:
        """Name the file."""
        return Preview(title=f"Read {self.target(arguments)[1]}")

    async def run(self, arguments: _ReadArguments, print_live: Callable[[str], None]) -> ToolOutput:
        """Read the lines asked for."""
        del print_live
        path, shown = self.target(arguments)
        text = await asyncio.to_thread(self._read, path, shown)
        if arguments.line is not None or arguments.limit is not None:
            first = max((arguments.line or 1) - 1, 0)
            lines = text.splitlines(keepends=True)
            text = "".join(
                lines[first : None if arguments.limit is None else first + max(arguments.limit, 0)]
            )
        if len(text) > MOST_CHARS:
            raise ToolError(f"{shown} is too large to be read at once; ask for a part of its lines")
        return ToolOutput(output="read", display={"content": text})

    def _read(self, path: Path, shown: str) -> str:
        with self.workspace.roots.held(path) as place:
            data, status = read_if_there(place, shown)
        if data is None or status is None:
            if self._missing is not None:
                return self._missing
            raise ToolError(f"{shown} does not exist")
        if is_binary(data):
            raise ToolError(f"{shown} is binary")
        self.workspace.reads.note(path, status, data)
        return TextFile(data).text


class Requests:
    """Answers what an agent of this name asks. `is_held`: the sandbox stands around its program.

    Where it is and the agent is to read only, it sees the project read-only, so that no command of it changes anything.
    """

    def __init__(
        self,
        name: str,
        place: Workplace,
        call_ids: CallIds,
        tell: Emit,
        agent: AcpAgent,
        *,
        is_held: bool,
    ) -> None:
        self._name, self._own, self._hooks = name, place.environment, place.hooks
        self._call_ids, self._tell = call_ids, tell
        self._only_reads = is_held and agent.read_only
        self._missing = "" if reads_missing(agent) else None
        gate = self._own.gate.of_agent(name)
        self._gate = gate if is_held else gate.by(gate.policy.elsewhere(lambda: "none"))
        #: The files that it was allowed to change, and has not changed through ybs yet, with what they may hold then.
        self._allowed: dict[Path, bytes] = {}
        self._written: set[str] = set()

    def new_id(self, given: str) -> str:
        """Return an id for a call to which the agent gave this one."""
        return self._call_ids.take(given, self._name)

    def begun(
        self, wish: Wish, call_id: str, tool: tuple[str, Effect] | None = None
    ) -> ToolStarted:
        """Return the event of a call that begins, of the agent's own or with a `tool` of ybs's."""
        name, effect = tool or wish.tool
        paths = tuple(self._own.roots.show(Path(path)) for path in wish.paths)
        subject = {"path": paths[0]} if paths else wish.arguments
        return ToolStarted(
            id=call_id,
            name=name,
            arguments=Raw(msgspec.json.encode(wish.arguments)),
            effect=effect,
            title=one_line(wish.title) or title_of(name, msgspec.json.encode(subject)),
            paths=paths,
        )

    def changed(self, wish: Wish) -> tuple[FileChange, ...]:
        """Return what a call of the agent's own changed, but for what it wrote through ybs: that was told already."""
        changes = (each.told(self._own.roots) for each in wish.changes)
        return tuple(each for each in changes if each.path not in self._written)

    async def allows(self, wish: Wish, call_id: str) -> bool:
        """Return whether the agent may do what it asks for in a call that has this id here."""
        for part in wish.split():
            try:
                meant, edits = await asyncio.to_thread(self._worked_out, part)
            except (ToolError, OSError):
                return False
            arguments = Raw(msgspec.json.encode(meant.arguments))
            call = ToolCall(id=call_id, name=meant.tool[0], arguments=arguments)
            permission = _Permission(meant, edits, self._own, only_reads=self._only_reads)
            if (await self._run(call, permission)).is_error:
                return False
            self._allowed |= {edit.path: edit.after for edit in edits}
        return True

    def _worked_out(self, wish: Wish) -> tuple[Wish, list[FileEdit]]:
        """Return changes with all that their files would hold, and how that differs from now: this is judged, shown, and agreed to. Raises ToolError and OSError."""
        if wish.tool[1] not in _CHANGING:
            return wish, []
        roots = self._own.roots
        places = [roots.resolve(each.path, is_write=True) for each in wish.changes]
        before = {path: content_at(roots, path) for path in places}
        texts = {path: (data or b"").decode(errors="replace") for path, data in before.items()}
        found = dict.fromkeys(places, 1)
        for path, change in zip(places, wish.changes, strict=True):
            old, text = change.before or "", texts[path]
            is_found = old != "" and old in text
            texts[path] = text.replace(old, change.after, 1) if is_found else change.after
            found[path] *= is_found
        edits = [
            FileEdit(
                path=path,
                shown=(shown := roots.show(path)),
                before=data,
                after=(after := texts[path].encode(errors="replace")),
                diff=text_diff(data, after, shown),
                replacements=found[path],
            )
            for path, data in before.items()
        ]
        pairs = zip(places, wish.changes, strict=True)
        changes = tuple(replace(each, content=texts[path]) for path, each in pairs)
        return replace(wish, changes=changes), edits

    async def read(self, path: str, line: int | None, limit: int | None) -> str:
        """Return the text of a file, its secrets masked. Raises ToolError."""
        call = self._call("read_file", {"path": path, "line": line, "limit": limit})
        result = await self._run(call, _ReadText(self._own.workspace, self._missing))
        if result.is_error:
            raise ToolError(result.output)
        return str(msgspec.json.decode(result.display, type=dict[str, Any])["content"])

    async def write(self, path: str, content: str) -> None:
        """Write a file; a placeholder in it stands for the secret that was read there. Raises ToolError."""
        call = self._call("write_file", {"path": path, "content": content})
        new = ProposedChange(path=path, before=None, after=content)
        wish = Wish(kind="edit", changes=(new,), paths=(path,))
        self._tell(self.begun(wish, call.id, (call.name, "write")))
        gate = self._gate
        if self._take_allowed(path, content) and gate.policy.mode != "plan":
            gate = gate.by(gate.policy.tried(mode="bypass"))  # rules that deny hold in it, too
        result = await self._run(call, WriteFile(self._own.workspace), gate)
        self._tell(ToolFinished.of(result))
        self._written.update(change.path for change in result.changes)
        if result.is_error:
            raise ToolError(result.output)

    def _take_allowed(self, path: str, content: str) -> bool:
        """Return whether the person or the policy has let the agent put this into the file; that counts once."""
        try:
            real = self._own.roots.resolve(path, is_write=True)
        except ToolError:
            return False
        return content.encode(errors="replace") == self._allowed.pop(real, None)

    def _call(self, name: str, arguments: dict[str, Any]) -> ToolCall:
        if "\0" in arguments["path"]:
            raise ToolError("the path has a null character in it")
        given = Raw(msgspec.json.encode(arguments))
        return ToolCall(id=self.new_id("request"), name=name, arguments=given)

    async def _run(self, call: ToolCall, tool: Any, gate: Gate | None = None) -> ToolResult:
        environment = self._own
        toolbox = LocalToolbox(
            [tool],
            gate or self._gate,
            max_output_chars=_MOST_SHOWN,
            dry_run=environment.permissions.is_dry_run,
            hooks=environment.around(self._hooks),
        )
        return await environment.secrets.guarded(toolbox).run(call, self._tell)
