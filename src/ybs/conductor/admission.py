"""Check whether a sub-agent's changes may be merged into the project: the file tools' rules apply, and the person is asked once.

What the person said yes to when the sub-agent's own tools wrote it is not asked about again, and neither is what a command
left that was allowed to run: it could have changed the same file in the project. But files that other programs run or read
by themselves, and those for which a rule says to ask, are asked about by their name; and what a rule forbids stays out.
What an agent that is another program changed without a word to ybs, or otherwise than it had said, is judged as though a tool of ybs's would change it now.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from ybs.checkpoints.states import ABSENT, Change, State, digest_of, state_at
from ybs.conductor.contents import path_in, plain
from ybs.conductor.differences import MOST_SHOWN_BYTES, Differences, is_made_executable
from ybs.conductor.merging import Clash
from ybs.conductor.origin import ParentProject
from ybs.core.errors import Refused, YbsError
from ybs.core.events import Emit
from ybs.core.hooks import CallJudge, CallToJudge
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Confirm, Effect, Preview, Question
from ybs.security.paths.autorun import part_of
from ybs.security.paths.git_names import plain as plain_name
from ybs.security.paths.named_paths import NamedPaths
from ybs.security.paths.names import real_name, shown_name
from ybs.security.paths.path_text import above, lies_in, quoted
from ybs.security.paths.roots import Roots
from ybs.security.paths.steps import steps
from ybs.security.policy.case import Subject
from ybs.security.policy.policy import Ask, Deny, Policy
from ybs.tools.calls.hooks import Judges
from ybs.tools.reading.files import read_if_there

_CHANGING: Sequence[Effect] = ("write", "edit", "delete")


class NamedFiles:
    """A hook that notes which files the tools of a sub-agent wrote in its copy, and what of that the person said yes to.

    `base` has what stood in the copy at first, by path there. The person is asked by `confirm`, through here.
    """

    name = "the copy of the project"
    loss = "the person is asked again before this reaches the project"

    def __init__(
        self, roots: Roots, origin: ParentProject, base: Mapping[str, State], confirm: Confirm
    ) -> None:
        self._roots, self._origin, self._base = roots, origin, base
        self._ask = confirm
        self._differences = Differences(origin.get, MOST_SHOWN_BYTES)
        #: The questions about calls that the person said yes to, by the calls' ids.
        self._agreed: dict[str, Question] = {}
        #: What was allowed of what tools wrote, by path in the copy.
        self._allowed: dict[str, set[_Content]] = {}
        #: What the person was shown the whole way to from what stood there at first, with the warnings that they read each time.
        self._confirmed: dict[str, tuple[State, frozenset[str]]] = {}

    @property
    def paths(self) -> set[str]:
        """What tools wrote, by path in the copy."""
        return set(self._allowed)

    async def confirm(self, question: Question) -> Answer:
        """Ask the person, and note a yes."""
        answer = await self._ask(question)
        if answer.is_allowed:
            self._agreed[question.call.id] = question
        return answer

    async def before_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Wait for what becomes of it."""

    async def after_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Look at what a tool left at the paths that it names."""
        question = self._agreed.pop(call.id, None)
        if effect in _CHANGING:
            await asyncio.to_thread(self._note, call, effect, paths, question)

    def allows(self, change: Change) -> bool:
        """Return whether a call was allowed that leaves this: this content, not just this path."""
        return _content(change.after) in self._allowed.get(change.path, ())

    def has_confirmed(self, change: Change, warnings: Sequence[str]) -> bool:
        """Return whether the person has said yes to this very change, with these warnings at least."""
        if change.path not in self._confirmed or is_made_executable(change.before, change.after):
            return False
        state, read = self._confirmed[change.path]
        return _content(state) == _content(change.after) and read.issuperset(warnings)

    def _note(
        self, call: ToolCall, effect: Effect, paths: Sequence[str], question: Question | None
    ) -> None:
        given = msgspec.json.decode(call.arguments, type=dict[str, Any])
        top, is_gone = path_in(self._roots.folder, ""), effect == "delete"
        found = {path[len(top) :]: Path(path) for path in paths}
        for name, path in found.items():
            texts = set[str]() if is_gone else texts_after(given, path, self._roots)
            self._allowed[name] = {("file", digest_of(each.encode())) for each in texts}
            self._allowed[name] |= {_content(ABSENT)} if is_gone else set()
        if question is not None:
            left = {
                name: ABSENT if is_gone else self._left(given, name, real)
                for name, real in found.items()
            }
            self._confirm(question, left)

    def _left(self, given: Mapping[str, Any], name: str, real: Path) -> State:
        """Return what a call leaves at a path: what its arguments say that is, or else what is there. Raises YbsError and OSError."""
        content = _content_in(given, real, self._roots)
        if content is None:
            return plain(state_at(self._roots, str(real), self._origin.take))
        data = content.encode()
        mode = self._known(name)[0].mode
        return State(kind="file", mode=mode, size=len(data), digest=self._origin.take(data))

    def _confirm(self, question: Question, left: Mapping[str, State]) -> None:
        """Note what is left if that, next to what stood there at first or was confirmed since, is what the question showed."""
        shown = [
            self._differences.text(self._known(name)[0], state, shown_name(name))
            for name, state in left.items()
        ]
        if "\n".join(shown) == question.preview.body:
            for name, state in left.items():
                _, read = self._known(name)
                warnings = frozenset(question.warnings)
                self._confirmed[name] = state, warnings if read is None else warnings & read

    def _known(self, name: str) -> tuple[State, frozenset[str] | None]:
        """Return what the person knows to be at a path, and the warnings that they read with it; None where it stood there at first."""
        return self._confirmed.get(name) or (self._base.get(name, ABSENT), None)


#: A state without its mode.
_Content: TypeAlias = tuple[str, str]


def _content(state: State) -> _Content:
    return state.kind, state.digest


class Admission:
    """Judges the changes of one sub-agent, whose copy has the roots `inside`; `named` knows what its tools wrote there."""

    def __init__(
        self,
        origin: ParentProject,
        inside: Roots,
        agent: str,
        named: NamedFiles,
        *,
        is_foreign: bool = False,
    ) -> None:
        self._origin, self._environment, self._inside = origin, origin.environment, inside
        self._gate = origin.environment.gate.of_agent(agent)
        self._judges = [hook for hook in origin.hooks if isinstance(hook, CallJudge)]
        self._agent, self._named, self._is_foreign = agent, named, is_foreign

    async def refused(
        self, changes: Sequence[Change], show: Callable[[Change], str], call: ToolCall, emit: Emit
    ) -> dict[str, Clash]:
        """Return the paths that may not reach the project, and why; `show` gives the difference to be shown."""
        found: dict[str, Clash] = {}
        links = MergedLinks(self._origin, self._inside, changes)
        for change in changes:
            try:
                self._check_place(change)
                later = await asyncio.to_thread(links.autorun_part, change)
                await self._check_policy(change, later, show, call, emit)
            except (YbsError, OSError) as error:
                found[change.path] = Clash(str(error))
        for (
            change
        ) in changes:  # what is written below a link of the project is judged by where that leads
            was_link = (change.before.kind, change.after.kind) == ("link", "folder")
            if was_link and any(lies_in(path, change.path) for path in found):
                why = "it is a link in the project, and what is in it now was refused"
                found.setdefault(change.path, Clash(why))
        return found

    def _policy_for(self, change: Change) -> Policy:
        """Return the policy: without the questions of the mode for what was allowed once already, in the copy."""
        policy = self._environment.policy
        was_allowed = not self._is_foreign or self._named.allows(change)
        is_auto = was_allowed and policy.mode not in ("plan", "bypass")
        return policy.tried(mode="auto") if is_auto else policy

    def _check_place(self, change: Change) -> None:
        """Raise Refused for a place that no tool may write to, and for a link that leads out of the project."""
        roots = self._environment.roots
        inner, outer = path_in(self._inside.folder, change.path), self._path(change)
        for each, path in ((self._inside, inner), (roots, outer)):
            if str(each.judge(path, is_write=True, is_link_followed=False)) != path:
                raise Refused("a link is on the way to it")
        if change.after.kind == "link":
            target = os.path.join(os.path.dirname(outer), real_name(change.after.target))  # noqa: PTH118, PTH120
            end = os.path.realpath(inner)  # over links of the same merge
            is_inside = lies_in(end, str(self._inside.folder)) or lies_in(end, str(roots.folder))
            if not (roots.judge(target).is_relative_to(roots.folder) and is_inside):
                raise Refused("it is a link that leads out of the project")

    async def _check_policy(
        self, change: Change, later: str, show: Callable[[Change], str], call: ToolCall, emit: Emit
    ) -> None:
        is_folder = {change.before.kind, change.after.kind} <= {"folder", "absent"}
        if is_folder or not change.after.is_kept:  # such a thing is never merged: `fate_of`
            return
        # What makes way for a folder is judged here, and what is in that by itself.
        if change.after.kind == "folder":
            change = msgspec.structs.replace(change, after=ABSENT)
        name, effect = _tool_for(change)
        roots, path = self._environment.roots, self._path(change)
        shown = roots.show(Path(path))
        named = NamedPaths(roots, ((path, Path(path)),))
        subject = Subject(
            paths=(shown,), named=named, is_seen=True, is_plain=True, autorun_part=later
        )
        asked = _call(f"{call.id}/{shown}", name, path=shown)
        what = f"the deletion of {quoted(shown)}" if effect == "delete" else quoted(shown)
        preview = Preview(
            title=f"Merge {what} from sub-agent {self._agent}", paths=(shown_name(path),)
        )
        reason = await self._check_hooks(change, asked.id)
        policy = self._policy_for(change)
        decision = (policy.tried(ask=(name,)) if reason else policy).decide(
            asked, effect, preview, subject
        )
        if isinstance(decision, Ask) and not self._is_confirmed(change, decision, reason):
            body = await asyncio.to_thread(show, change)
            preview = msgspec.structs.replace(preview, body=body, is_diff=True)
            with self._gate.wishing(asked.id, "ask" if reason else "", reason):
                decision = await self._gate.admit(asked, effect, preview, subject, emit)
        if isinstance(decision, Deny):
            raise Refused(decision.reason)

    def _is_confirmed(self, change: Change, asked: Ask, reason: str) -> bool:
        """Return whether the person said yes to the change in the copy, with all that they would read now; the `reason` of a hook first."""
        warnings = asked.question.warnings
        return self._named.has_confirmed(change, (reason, *warnings[1:]) if reason else warnings)

    async def _check_hooks(self, change: Change, call_id: str) -> str:
        """Ask the person's hooks, which saw the path in the copy; return why they want the person to be asked. Raises ToolError.

        What is there already may be written or edited, and a hook may know one of the two alone.
        """
        wishes: list[str] = []
        said = Preview(title="", writes=(shown_name(self._path(change)),))
        for call in self._calls(change, call_id) if self._judges else ():
            verdict = await Judges(self._judges).judge(CallToJudge(call=call, preview=said))
            if verdict.refusal:
                raise Refused(verdict.refusal)
            wishes += [verdict.reason] if verdict.wish == "ask" else []
        return next(iter(wishes), "")

    def _calls(self, change: Change, call_id: str) -> Iterator[ToolCall]:
        """Yield the calls that would make the change in the project."""
        path = shown_name(self._path(change))
        if change.after.kind == "absent":
            yield _call(call_id, "delete_file", path=path)
            return
        before, after = (self._text(state) for state in (change.before, change.after))
        yield _call(call_id, "write_file", path=path, content=after)
        if change.before.kind == "file":
            yield _call(call_id, "edit_file", path=path, old_text=before, new_text=after)

    def _text(self, state: State) -> str:
        """Return what a file holds, or where a link leads, as git has it."""
        return state.target or (self._origin.get(state.digest) or b"").decode(errors="replace")

    def _path(self, change: Change) -> str:
        return path_in(self._environment.folder, change.path)


#: Links of one merge give a path no more names.
_MOST_NAMES = 1000


class MergedLinks:
    """The links that a merge makes and replaces, by which paths of the project have other names: something may act on one of those later.

    So changes are judged by the project as it is and as it will be.
    """

    def __init__(self, origin: ParentProject, inside: Roots, changes: Sequence[Change]) -> None:
        self._roots, self._inside = origin.roots, inside
        #: The new links by what they lead to, and what replaced ones lead to now; relative paths.
        self._new: dict[str, list[str]] = {}
        self._old: dict[str, list[str]] = {}
        for change in changes:
            if change.after.kind == "link":
                for end in self._ends(change):
                    self._new.setdefault(end, []).append(change.path)
            if change.before.kind == "link":
                old = os.path.realpath(path_in(self._roots.folder, change.path))
                self._old[change.path] = [*_below(self._roots.folder, [old])]

    def autorun_part(self, change: Change) -> str:
        """Return what `Roots.autorun_part` does, for any name of the path. Raises Refused where it has too many."""
        roots, is_link = self._roots, change.after.kind == "link"
        names = self._names(change.path)
        outer = (Path(path_in(roots.folder, name)) for name in names)
        parts = (roots.autorun_part(path, is_link=is_link) for path in outer)
        return next(filter(None, parts), "") or (self._part_below(change, names) if is_link else "")

    def _part_below(self, change: Change, names: Iterable[str]) -> str:
        """Return the name of something autorun that only a new link gives to what it leads to, such as `.github/workflows`."""
        try:
            entries = os.listdir(path_in(self._inside.folder, change.path))  # noqa: PTH208 - a text
        except OSError:  # it leads to no folder
            return ""
        plain_names = [name for name in map(plain_name, entries) if not part_of([name])]
        tops = [plain_name(name.rpartition("/")[2]) for name in names]
        parts = (part_of([top, name]) for top in tops for name in plain_names)
        return next(filter(None, parts), "")

    def _names(self, path: str) -> list[str]:
        """Return the path and its other names: each link that leads to it, or to a folder that it lies in, gives it one."""
        passed: dict[str, frozenset[tuple[str, str]]] = {path: frozenset()}
        names = [path]
        for name in names:
            for folder in (name, *above(name)):
                rest = name[len(folder) :].strip("/")
                for place in (*self._new.get(folder, ()), *self._old.get(folder, ())):
                    other, way = "/".join(filter(None, (place, rest))), (folder, place)
                    if way not in passed[name] and other not in passed:
                        passed[other] = passed[name] | {way}
                        names.append(other)
            if len(names) > _MOST_NAMES:
                raise Refused(f"links of this merge give it more than {_MOST_NAMES} names")
        return names

    def _ends(self, change: Change) -> Iterator[str]:
        """Yield what a new link will lead to, and over: by its words, by what is in the project now, and by what is in the copy."""
        outer, inner = (path_in(r.folder, change.path) for r in (self._roots, self._inside))
        said = os.path.join(os.path.dirname(outer), real_name(change.after.target))  # noqa: PTH118, PTH120 - texts
        ends = {os.path.normpath(said), os.path.realpath(said), *steps(said, has_turns=False)}
        found = {*_below(self._roots.folder, ends)}
        found.update(_below(self._inside.folder, steps(inner, has_turns=False)))
        yield from found - {change.path}


def _below(folder: Path, paths: Iterable[str]) -> Iterator[str]:
    """Yield those absolute paths that lie in a folder as relative ones; the folder itself as an empty one."""
    for path in paths:
        if lies_in(path, str(folder)):
            yield path[len(path_in(folder, "")) :]


def texts_after(given: Mapping[str, Any], path: Path, roots: Roots) -> set[str]:
    """Return what a file may hold after a change with these arguments; nothing where they do not say."""
    if (content := _content_in(given, path, roots)) is not None:
        return {content}
    edits = _edits_of(given, path, roots)
    if not edits:
        return set()
    with suppress(OSError, YbsError), roots.held(path) as place:
        data, _ = read_if_there(place, path.name)
        texts = {(data or b"").decode(errors="replace")}
        for edit in edits:
            old, new = edit["old_text"], edit["new_text"]
            texts = {made for text in texts for made in _replaced(text, old, new)}
        return texts
    return set()


def _content_in(given: Mapping[str, Any], path: Path, roots: Roots) -> str | None:
    """Return all that a file holds after a change with these arguments; None where they name a part of it, or none."""
    if isinstance(content := given.get("content"), str):
        return content
    contents = [e["content"] for e in _edits_of(given, path, roots) if "content" in e]
    return contents[-1] if contents else None


def _edits_of(given: Mapping[str, Any], path: Path, roots: Roots) -> list[dict[str, Any]]:
    return [
        each
        for each in given.get("changes", [given])
        if isinstance(each.get("new_text"), str) and roots.resolve(each["path"]) == path
    ]


def _replaced(text: str, old: str, new: str) -> set[str]:
    return {text.replace(old, new, 1), text.replace(old, new)} if old and old in text else {new}


def _call(call_id: str, tool: str, **arguments: str) -> ToolCall:
    return ToolCall(id=call_id, name=tool, arguments=Raw(msgspec.json.encode(arguments)))


def _tool_for(change: Change) -> tuple[str, Effect]:
    if change.after.kind == "absent":
        return "delete_file", "delete"
    return ("edit_file", "edit") if change.before.kind == "file" else ("write_file", "write")
