"""Attachments: the files, folders and pictures that the person's words name, read as the tools read them."""

import asyncio
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.core.errors import Failure, Refused, ToolError
from ybs.core.events import Emit, Level, Noticed
from ybs.core.messages import Text, ToolCall, UserPart
from ybs.core.ports import Confirm, Preview, Question, ToolOutput
from ybs.core.remedies import Remedy
from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.structs import masked
from ybs.security.paths.named_paths import NamedPaths
from ybs.security.paths.names import shown_name
from ybs.security.paths.path_text import quoted
from ybs.security.paths.roots import BlockedPath, OutsideRoots, Roots
from ybs.security.policy.case import Subject
from ybs.security.policy.confirm import nobody
from ybs.security.policy.policy import Deny, Policy
from ybs.session.mentions import (
    MOST_MENTIONS,
    Mention,
    MentionReading,
    NamedInWords,
    is_picture_name,
    looks_like_path,
)
from ybs.session.reply import NotSent
from ybs.tools.calls.cut import cut
from ybs.tools.workspace import Workspace

if TYPE_CHECKING:
    from ybs.tools.mcp.servers import Servers

MOST_FILES = 20
#: All attachments together may have so many times the characters of one tool result.
BUDGET = 4
_FOLDER_ENTRIES = 100
#: Mentions that fit nothing are named up to this many, each cut at so many characters.
_MOST_MISSING, _LONGEST_NAME = 5, 80
_FAR = 10**9
_PRIVATE_KEY = "[ybs:secret:private-key#"


#: Why the person is asked about what it is not sure that they named.
UNSURE = (
    "it lies outside of the project, and others may have named it: in a long text, in one of your "
    "editor, or in one that was put back into your prompt"
)
#: Why the person is asked about a link that they named.
LINK = "it is a link in the project that leads out of it"


#: A resource of an MCP server: the server's name, and its address there.
_Address: TypeAlias = tuple[str, str]


class Target(Struct, frozen=True):
    """What is to be attached: the resolved path and the lines of it (0: all)."""

    path: Path
    first: int = 0
    last: int = 0
    is_folder: bool = False
    is_picture: bool = False
    #: Why the person is asked before it is read; empty where naming it is enough.
    doubt: str = ""


class ServerResources:
    """Finds the resources that words name, and reads them."""

    def __init__(self, servers: "Servers") -> None:
        self._servers = servers

    @property
    def servers(self) -> Sequence[str]:
        """The names of the servers that are switched on."""
        connections = self._servers.connections.items()
        return [name for name, each in connections if each.state != "off"]

    def named_in(self, mentions: Sequence[Mention]) -> list[_Address]:
        """Return server and address of each, once."""
        found = (self._named(each.readings) for each in mentions if not each.is_confined)
        return list(dict.fromkeys(each for each in found if each))[:MOST_MENTIONS]

    def _named(self, readings: Sequence[MentionReading]) -> _Address | None:
        """Return what a mention means: a resource that is known, or else the shortest way to read it."""
        meant = None
        for reading in readings:
            name, _, uri = reading.path.partition(":")
            connection = self._servers.connections.get(name)
            if connection is None or not uri or connection.state == "off":
                continue
            meant = name, uri
            if any(resource.uri == uri for resource in connection.offer.resources):
                break
        return meant

    async def read(self, server: str, uri: str) -> ToolOutput:
        """Read one. Raises ToolError."""
        link = await self._servers.connections[server].link()
        return await link.read(uri)


class Attacher:
    """Reads what a person names, wherever it lies. `ask` asks them about places of credentials, and about what failed."""

    def __init__(
        self,
        workspace: Workspace,
        policy: Policy,
        firewall: Firewall,
        tell: Emit,
        ask: Confirm = nobody,
        *,
        resources: ServerResources | None = None,
    ) -> None:
        self._workspace, self._policy, self._resources = workspace, policy, resources
        self._firewall, self._tell, self._ask = firewall, tell, ask

    async def parts(self, named: NamedInWords) -> list[UserPart]:
        """Return what to send behind words that name this; the person is told what was attached.

        Raises NotSent where something was not, and they do not want to send their words without it.
        """
        servers = () if self._resources is None else self._resources.servers
        finder = AttachmentFinder(self._workspace.roots, servers)
        targets = await asyncio.to_thread(finder.targets, named)
        addresses, unsure = self._addresses_in(named)
        if (finder.unsure or unsure) and await self._let_unsure(finder.unsure, unsure):
            targets, addresses = targets + finder.unsure, addresses + unsure
        parts, names, problems = await self._attached(targets)
        await self._attach_resources(addresses, parts, names, problems)
        failures = list(dict.fromkeys([*problems, *finder.problems[:MOST_FILES]]))
        if finder.missing:
            missing = ", ".join(finder.missing[:_MOST_MISSING])
            failures.append(Failure(message=f"there is no file that matches {missing}"))
        if failures:
            await self._confirm(failures)
        if names:
            self._say("info", f"Attached: {', '.join(names)}")
        for failure in failures:
            self._say("warning", f"Not attached: {failure.message}", failure.remedies)
        return parts

    async def _attached(
        self, targets: Sequence[Target]
    ) -> tuple[list[UserPart], list[str], list[Failure]]:
        """Return the parts of a message, what they are, and what could not be read."""
        parts: list[UserPart] = []
        names: list[str] = []
        left_out: list[str] = []
        problems: list[Failure] = []
        room = BUDGET * self._workspace.max_output_chars
        for target in targets:
            shown = self._workspace.roots.show(target.path)
            if len(names) >= MOST_FILES or room <= 0:
                left_out.append(shown)
                continue
            try:
                await self._let(target, shown)
                output = await self._read(target, shown)
            except ToolError as error:
                problems.append(_reason(error, shown))
                continue
            names.append(f"{shown} ({output.summary.removeprefix(f'{shown}: ')})")
            new = self._spoken(output, _title(target, shown))
            room -= sum(len(part.text) for part in new if isinstance(part, Text))
            parts += new
        return parts, names, [*self._left_out(left_out), *problems[:MOST_FILES]]

    def _addresses_in(self, named: NamedInWords) -> tuple[list[_Address], list[_Address]]:
        """Return the resources that words name: those that the person meant for sure, and others."""
        if self._resources is None:
            return [], []
        mentions = named.mentions
        found = self._resources.named_in([each for each in mentions if named.is_sure(each)])
        rest = self._resources.named_in([each for each in mentions if not named.is_sure(each)])
        return found, [each for each in rest if each not in found]

    async def _attach_resources(
        self,
        addresses: Sequence[_Address],
        parts: list[UserPart],
        names: list[str],
        problems: list[Failure],
    ) -> None:
        """Attach what MCP servers have under these addresses."""
        if (resources := self._resources) is None:
            return
        for server, uri in addresses:
            shown = f"{server}:{uri}"
            try:
                output = await resources.read(server, uri)
            except ToolError as error:
                problems.append(_reason(error, shown))
                continue
            text = cut(output.output, self._workspace.max_output_chars, "It is longer")
            parts += self._spoken(replace(output, output=text), f"Resource {shown}")
            names.append(f"{shown} ({output.summary.removeprefix(f'{uri}: ')})")

    async def _let_unsure(self, targets: Sequence[Target], addresses: Sequence[_Address]) -> bool:
        """Ask the person once whether they mean all of these; where not, say how one of them is attached."""
        names = [self._workspace.roots.show(each.path) for each in targets]
        names += [":".join(each) for each in addresses]
        count = len(names) - _MOST_MISSING
        shown = ", ".join(quoted(_short(each)) for each in names[:_MOST_MISSING])
        shown += f" and {count} more" * (count > 0)
        title = f"attach {shown} to your words, which go to the model's provider"
        body = "\n".join(names) * (count > 0 or len(max(names, key=len)) > _LONGEST_NAME)
        answer = await self._ask(_question(title, body=body, warnings=(UNSURE,)))
        if not answer.is_allowed:
            why = "Not attached, as others may have named it and it lies outside of the project"
            way = "To attach it, say yes, name it in a short message, or link it in your editor"
            self._say("warning" if answer.is_unattended else "info", f"{why}: {shown}. {way}.")
        return answer.is_allowed

    async def _let(self, target: Target, shown: str) -> None:
        """Ask the person where naming a file is not enough. Raises Refused."""
        if not target.doubt:
            return
        title = f"attach {quoted(shown)} to your words, which go to the model's provider"
        answer = await self._ask(_question(title, warnings=(target.doubt,)))
        if not answer.is_allowed:
            why = "there is nobody to ask" if answer.is_unattended else "you did not want it"
            raise Refused(f"{shown} is not read: {target.doubt}, and {why}")

    async def _confirm(self, failures: Sequence[Failure]) -> None:
        """Ask whether the words are sent without what could not be attached. Raises NotSent."""
        lines = [self._firewall.mask(failure.message) for failure in failures]
        title = "send your message without the failed attachments"
        answer = await self._ask(_question(title, body="\n".join(lines)))
        if not answer.is_allowed:
            remedies = tuple(remedy for failure in failures for remedy in failure.remedies)
            raise NotSent(
                f"Nothing was sent, because not all was attached: {'; '.join(lines)}",
                remedies=remedies,
            )

    async def _read(self, target: Target, shown: str) -> ToolOutput:
        """Read one. Raises ToolError."""
        self._check(shown, target.path)
        if target.is_picture:
            return await asyncio.to_thread(picture, self._workspace.roots, target.path)
        workspace = self._workspace_of(target)
        # A name may begin with what means something in an argument.
        path = shown if shown.startswith("/") else f"./{shown}"
        if target.is_folder:
            from ybs.tools.builtin import list_files  # not needed before the first folder

            look = list_files.ListFilesArguments(
                pattern="*", path=path, max_results=_FOLDER_ENTRIES
            )
            return await list_files.ListFiles(workspace).run(look, _nothing)
        from ybs.tools.builtin import read_file

        last = target.last or _FAR
        asked = read_file.ReadFileArguments(
            path=path, offset=target.first or 1, limit=last - (target.first or 1) + 1
        )
        return await read_file.ReadFile(workspace).run(asked, _nothing)

    def _workspace_of(self, target: Target) -> Workspace:
        """Return where a target is read: the session's own place, or one that has all of a person's files."""
        roots = self._workspace.roots
        if roots.holds(target.path) and not target.doubt:
            return self._workspace
        wide = roots.everywhere()
        if target.doubt:  # they were asked
            wide.add(target.path, is_read_only=True)
        here = self._workspace
        return Workspace(wide, max_output_chars=here.max_output_chars, learn_keys=here.learn_keys)

    def _check(self, shown: str, path: Path) -> None:
        """Raise Refused where a rule denies reading this. What would be asked was answered by the person's words."""
        arguments = Raw(msgspec.json.encode({"path": shown}))
        call = ToolCall(id="mention", name="read_file", arguments=arguments)
        named = NamedPaths(self._workspace.roots, ((str(path), path),))
        subject = Subject(paths=(shown,), named=named)
        decision = self._policy.decide(call, "read", Preview(title=f"Read {shown}"), subject)
        if isinstance(decision, Deny):
            raise Refused(f"{shown} was not read: {decision.reason}")

    def _spoken(self, output: ToolOutput, title: str) -> list[UserPart]:
        """Return the parts of a message, with secrets masked as in a tool's result."""
        text = f"\n\n[{title}]\n{output.output}".rstrip()
        place = f"the attached {title}"
        clean = masked(self._firewall, text, place)
        if _PRIVATE_KEY in clean and _PRIVATE_KEY not in text:
            self._say(
                "warning", f"{place} contains a private key; the model sees a placeholder instead."
            )
        images = masked(self._firewall, output.images, place)
        return [Text(text=clean), *images]

    def _left_out(self, names: list[str]) -> list[Failure]:
        if not names:
            return []
        more = f"at most {MOST_FILES} files and {BUDGET * self._workspace.max_output_chars:,} characters go along"
        return [Failure(message=f"{', '.join(names)}; {more}")]

    def _say(self, level: Level, text: str, remedies: Sequence[Remedy] = ()) -> None:
        text = self._firewall.mask(text)
        self._tell(Noticed(level=level, text=text, remedies=tuple(remedies)))


class AttachmentFinder:
    """Finds what words name. It looks at the disk: call it in a thread."""

    def __init__(self, roots: Roots, servers: Collection[str] = ()) -> None:
        self._roots, self._wide, self._servers = roots, roots.everywhere(), servers
        self.problems: list[Failure] = []
        #: What lies outside, and may have been named by others.
        self.unsure: list[Target] = []
        #: What was mentioned as a path is, and leads nowhere.
        self.missing: list[str] = []

    def targets(self, named: NamedInWords) -> list[Target]:
        """Return the existing files that may be read, each once; `problems` names those that may not."""
        targets = [(self._mentioned(each), named.is_sure(each)) for each in named.mentions]
        targets += [(self._pictured(each), named.is_sure(each)) for each in named.pictures]
        found: dict[tuple[Path, int, int], Target] = {}
        unsure = dict(found)
        for target, is_sure in targets:
            if target is not None:
                is_meant = is_sure or self._roots.holds(target.path)
                place = target.path, target.first, target.last
                (found if is_meant else unsure).setdefault(place, target)
        self.unsure = [target for place, target in unsure.items() if place not in found]
        return list(found.values())

    def _mentioned(self, mention: Mention) -> Target | None:
        """Return what the first reading means that fits something which exists."""
        for reading in mention.readings:
            name = self._roots.host.with_home(reading.path)
            try:
                path, doubt = self._found(name, mention)
            except Refused as error:
                if not self._exists(name):
                    continue
                self.problems.append(_reason(error, shown_name(name)))
                return None
            except ToolError:
                continue  # no path at all
            if self._exists(str(path)) and not (reading.first and path.is_dir()):
                if is_picture_name(name) and not reading.first and not self._roots.holds(path):
                    return Target(path, is_picture=True, doubt=doubt)
                return Target(path, reading.first, reading.last, path.is_dir(), doubt=doubt)
        self._miss(mention.readings[-1].path)
        return None

    def _found(self, name: str, mention: Mention) -> tuple[Path, str]:
        """Return where a name leads, and why the person is asked about it. Raises ToolError."""
        if mention.is_confined:
            return self._roots.resolve(name), ""
        try:
            return self._roots.resolve(name), ""
        except OutsideRoots as error:
            return Path(error.path), LINK if self._roots.leads_out(name) else ""
        except BlockedPath as error:
            return Path(error.path), error.reason

    def _miss(self, name: str) -> None:
        """Note a mention that fits nothing, where it can only have been meant as a path."""
        if name.partition(":")[0] in self._servers:
            return  # a resource of an MCP server, whose address may end as a file does
        folder, slash, _ = name.partition("/")
        if (slash and folder and self._exists(folder)) or looks_like_path(name):
            shown = _short(f"@{shown_name(name)}")
            if shown not in self.missing:
                self.missing.append(shown)

    def _pictured(self, name: str) -> Target | None:
        """Return the picture that a path leads to, outside the roots too, or None where nothing is there."""
        name = self._roots.host.with_home(name)
        if not self._exists(name):
            return None
        try:
            path = self._wide.judge(name)
        except Refused as error:
            self.problems.append(_reason(error, shown_name(name)))
            return None
        doubt = LINK if self._roots.leads_out(name) else ""
        return None if path.is_dir() else Target(path, is_picture=True, doubt=doubt)

    def _exists(self, name: str) -> bool:
        path = name if name.startswith("/") else f"{self._roots.folder}/{name}"
        try:
            return os.path.lexists(path)
        except (OSError, ValueError):
            return False  # a NUL, or a letter that no name can have


def picture(roots: Roots, path: Path) -> ToolOutput:
    """Read a picture, wherever it lies. Raises ToolError for what is not a picture, too large, damaged or blocked."""
    from ybs.tools.reading.files import failure, open_regular  # not needed before the first picture
    from ybs.tools.reading.images import MOST_BYTES, image_of, media_type_of

    shown = roots.show(path)
    try:
        with roots.everywhere().held(path) as place:
            descriptor, status = open_regular(place, shown)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - it wraps the descriptor
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise failure(error, shown) from error
    media_type = media_type_of(data)
    if not media_type:
        raise ToolError(f"{shown} is not a PNG, JPEG, GIF or WebP picture")
    image, pixels = image_of(data, max(status.st_size, len(data)), media_type, shown)
    return ToolOutput(output="", summary=f"{shown}: {pixels}", images=(image,))


def _short(name: str) -> str:
    """Return a name; a long one cut, with a sign that says so."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _question(title: str, *, body: str = "", warnings: tuple[str, ...] = ()) -> Question:
    call = ToolCall(id="attachment", name="ybs", arguments=Raw(b"{}"))
    return Question(
        call=call, effect="read", preview=Preview(title=title, body=body), warnings=warnings
    )


def _title(target: Target, shown: str) -> str:
    if any(sign in shown for sign in ']"'):  # the line would seem to end in it
        shown = '"' + shown.replace('"', '\\"') + '"'
    if target.is_picture:
        return f"Picture {shown}"
    if target.is_folder:
        return f"Folder {shown}"
    if not target.first:
        return f"File {shown}"
    if target.last == target.first:
        return f"File {shown}, line {target.first}"
    return f"File {shown}, lines {target.first}-{target.last}"


def _reason(error: ToolError, shown: str) -> Failure:
    """Return the first sentence of words that were written for a model, and what the person can do."""
    said = str(error)
    first = re.split(r"; (?=use |run_shell|list_files)|\. (?=\w)", said)[0].rstrip(".")
    message = first if shown in first else f"{shown}: {first}"
    return Failure(message=message, remedies=error.remedies)


def _nothing(_text: str) -> None:
    pass
