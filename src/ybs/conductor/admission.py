"""Check whether a sub-agent's changes may be merged into the project: the file tools' rules apply, and the person is asked once.

What the person said yes to when the sub-agent's own tools wrote it is not asked about again, and neither is what a command
left that was allowed to run: it could have changed the same file in the project. But files that other programs run or read
by themselves, and those for which a rule says to ask, are asked about by their name; and what a rule forbids stays out.
What an agent that is another program changed without a word to ybs, or otherwise than it had said, is judged as though a tool of ybs's would change it now.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from ybs.checkpoints.states import ABSENT, Change, State, digest_of, state_at
from ybs.conductor.contents import lies_below, path_in, plain
from ybs.conductor.merging import Clash
from ybs.conductor.origin import ParentProject
from ybs.core.errors import Refused, YbsError
from ybs.core.events import Emit
from ybs.core.hooks import CallJudge
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect, Preview
from ybs.security.paths.named_paths import NamedPaths
from ybs.security.paths.names import real_name, shown_name
from ybs.security.paths.path_text import quoted
from ybs.security.paths.roots import Roots
from ybs.security.policy.policy import Ask, Deny, Policy, Subject
from ybs.tools.calls.hooks import Judges
from ybs.tools.reading.files import read_if_there

_CHANGING: Sequence[Effect] = ("write", "edit", "delete")


class NamedFiles:
    """A hook that notes which files the tools of a sub-agent wrote, and what of that was in the call: that was confirmed."""

    name = "the copy of the project"
    loss = "the person is asked again before this reaches the project"

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        #: What was agreed to of what tools wrote: the digests that a file may have, by path in the copy.
        self._agreed: dict[str, set[str]] = {}
        #: What of it has the content that a call named. A command in the background may have put something else there.
        self.confirmed: dict[str, State] = {}

    @property
    def paths(self) -> set[str]:
        """What tools wrote, by path in the copy."""
        return set(self._agreed)

    async def before_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Wait for what becomes of it."""

    async def after_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Look at what a tool left at the paths that it names."""
        if effect in _CHANGING:
            await asyncio.to_thread(self._note, call, effect, paths)

    def agrees(self, change: Change) -> bool:
        """Return whether a call was allowed that leaves this: what was shown to the person, not just its path."""
        return change.after.digest in self._agreed.get(change.path, ())

    def _note(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        wanted = ABSENT.digest if effect == "delete" else _content_in(call)
        given = msgspec.json.decode(call.arguments, type=dict[str, Any])
        for path in paths:
            real = self._roots.resolve(path, is_write=True, is_link_followed=effect != "delete")
            name = str(real)[len(path_in(self._roots.folder, "")) :]
            is_gone = effect == "delete"
            texts = set[str]() if is_gone else texts_after(given, real, self._roots)
            self._agreed[name] = {digest_of(each.encode()) for each in texts}
            self._agreed[name] |= {ABSENT.digest} if is_gone else set()
            state = plain(state_at(self._roots, str(real)))
            if state.digest == wanted:
                self.confirmed[name] = state
            else:
                self.confirmed.pop(name, None)


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
        for change in changes:
            try:
                self._check_place(change)
                await self._check_policy(change, self._policy_for(change), show, call, emit)
            except (YbsError, OSError) as error:
                found[change.path] = Clash(str(error))
        for (
            change
        ) in changes:  # what is written below a link of the project is judged by where that leads
            was_link = (change.before.kind, change.after.kind) == ("link", "folder")
            if was_link and any(lies_below(path, [change.path]) for path in found):
                found[change.path] = Clash(
                    "it is a link in the project, and what is in it now was refused"
                )
        return found

    def _policy_for(self, change: Change) -> Policy:
        """Return the policy: without the questions of the mode for what was allowed once already, in the copy."""
        policy = self._environment.policy
        was_allowed = not self._is_foreign or self._named.agrees(change)
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
            if not roots.judge(target).is_relative_to(roots.folder):
                raise Refused("it is a link that leads out of the project")

    async def _check_policy(
        self,
        change: Change,
        policy: Policy,
        show: Callable[[Change], str],
        call: ToolCall,
        emit: Emit,
    ) -> None:
        kinds = (change.before.kind, change.after.kind)
        if kinds[1] == "folder" or kinds == ("folder", "absent"):
            return
        name, effect = _tool_for(change)
        roots, path = self._environment.roots, self._path(change)
        shown = roots.show(Path(path))
        subject = Subject(
            paths=(shown,),
            named=NamedPaths(roots, ((path, Path(path)),)),
            is_seen=True,
            is_plain=True,
            autorun_part=roots.autorun_part(Path(path)),
        )
        asked = _call(f"{call.id}/{shown}", name, path=shown)
        preview = Preview(
            title=f"Merge {quoted(shown)} from sub-agent {self._agent}", paths=(shown_name(path),)
        )
        reason = await self._check_hooks(change, asked.id)
        if reason:
            policy = policy.tried(ask=(name,))
        decision = policy.decide(asked, effect, preview, subject)
        is_confirmed = self._named.confirmed.get(change.path) == change.after and not reason
        if isinstance(decision, Ask) and not is_confirmed:
            preview = msgspec.structs.replace(preview, body=show(change))
            with self._gate.wishing(asked.id, "ask" if reason else "", reason):
                decision = await self._gate.admit(asked, effect, preview, subject, emit)
        if isinstance(decision, Deny):
            raise Refused(decision.reason)

    async def _check_hooks(self, change: Change, call_id: str) -> str:
        """Ask the person's hooks, which saw the path in the copy; return why they want the person to be asked. Raises ToolError.

        What is there already may be written or edited, and a hook may know one of the two alone.
        """
        wishes: list[str] = []
        for call in self._calls(change, call_id) if self._judges else ():
            verdict = await Judges(self._judges).judge(call)
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
        return (self._origin.get(state.digest) or b"").decode(errors="replace")

    def _path(self, change: Change) -> str:
        return path_in(self._environment.folder, change.path)


def texts_after(given: Mapping[str, Any], path: Path, roots: Roots) -> set[str]:
    """Return what a file may hold after a change with these arguments; nothing where they do not say."""
    if isinstance(content := given.get("content"), str):
        return {content}
    edits = [
        each
        for each in given.get("changes", [given])
        if isinstance(each.get("new_text"), str) and roots.resolve(each["path"]) == path
    ]
    if contents := [each["content"] for each in edits if "content" in each]:
        return {contents[-1]}
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


def _replaced(text: str, old: str, new: str) -> set[str]:
    return {text.replace(old, new, 1), text.replace(old, new)} if old and old in text else {new}


def _content_in(call: ToolCall) -> str | None:
    """Return the digest of the content that a call writes; None where it names a part of it, or none."""
    content = msgspec.json.decode(call.arguments, type=dict[str, Any]).get("content")
    return digest_of(content.encode()) if isinstance(content, str) else None


def _call(call_id: str, tool: str, **arguments: str) -> ToolCall:
    return ToolCall(id=call_id, name=tool, arguments=Raw(msgspec.json.encode(arguments)))


def _tool_for(change: Change) -> tuple[str, Effect]:
    if change.after.kind == "absent":
        return "delete_file", "delete"
    return ("edit_file", "edit") if change.before.kind == "file" else ("write_file", "write")
