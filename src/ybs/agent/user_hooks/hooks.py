"""The hooks of a session: told what happens, asked what they say to it, and joined to calls, turns and compaction."""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from ybs.agent.environment import Person, ToolEnvironment
from ybs.agent.hooks import HookFacts, PersonsHooks
from ybs.agent.user_hooks.definitions import (
    OWN,
    SOURCES,
    EventName,
    Hook,
    HookAnswer,
    HookedCall,
    Source,
    merged,
    names_of,
    names_of_kind,
    own_arguments,
    read,
)
from ybs.agent.user_hooks.running import run_hook
from ybs.agent.user_hooks.transcript import HookTranscript
from ybs.config.tree import is_list, is_object
from ybs.context.document_text import framed
from ybs.core.errors import StopTurn, ToolError, YbsError
from ybs.core.events import CompactionReason, Emit, Noticed
from ybs.core.hooks import CallToJudge, CallVerdict
from ybs.core.messages import AssistantMessage, Text, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Answer, Confirm, Guard, Preview, Question, Turn
from ybs.core.wording import listed
from ybs.security.own_programs import IN_PROJECT
from ybs.security.paths.named_paths import NamedPaths
from ybs.security.paths.names import real_name
from ybs.security.paths.path_text import lies_in
from ybs.security.paths.roots import OutsideRoots
from ybs.tools.shell.path_leases import paused

#: What hooks know the modes by.
_MODES = {
    "ask": "default",
    "accept-edits": "acceptEdits",
    "deny": "dontAsk",
    "bypass": "bypassPermissions",
}
_MOST_IN_RESPONSE = 100_000  # characters of a result
_UNCHANGED = "A PermissionRequest hook allows the call with other arguments, which only a PreToolUse hook may give, so you are asked"


_WAITS = (
    "Your hooks that are told of a file ({hooks}) wait until you trust {place}, for formatters run code "
    'that lies beside the file. "sandbox": true in an entry has it run in every project, in the sandbox.'
)
_IN_OPEN = (
    "Your hooks that are told of a file ({hooks}) do not run on the work of sub-agents: others may write in {place}, above their copies "
    'of the project, and formatters look there for code. "sandbox": true in an entry has it run there, in the sandbox.'
)
_MOVES = (
    "Your hook `{hook}` did not run: something in the sandbox may change where the path of the file leads (such as a job in the background, "
    'or a command of another ybs, which cannot be paused for it). "sandbox": true in its entry has it run all the same, in the sandbox.'
)
_ELSEWHERE = "the other folder that the file lies in, or may lie in"
#: The events after a call.
_AFTER: tuple[EventName, ...] = ("PostToolUse", "PostToolUseFailure")


class PromptBlocked(YbsError):
    """A hook did not let the person's words pass; the text says why."""


class _InCommon(Struct):
    """What the hooks of a session have in common wherever they run: why a turn is to end, whether the session has begun, the project's `copies`."""

    transcript: HookTranscript
    why: str | None = None
    has_begun: bool = False
    has_told_waiting: bool = False
    has_told_moving: bool = False
    copies: list[str] = field(default_factory=list[str])
    background: set[asyncio.Task[HookAnswer]] = field(default_factory=set[asyncio.Task[HookAnswer]])


class UserHooks(PersonsHooks):
    """The hooks in force of one session."""

    name = "your hooks"

    def __init__(
        self,
        hooks: Collection[Hook],
        environment: ToolEnvironment,
        emit: Emit,
        session: Callable[[], HookFacts],
        project: "UserHooks | None" = None,
    ) -> None:
        self._hooks, self._environment, self._emit = hooks, environment, emit
        self._session, self._project = session, project or self
        mask = partial(environment.mask, place="a transcript")
        own = _InCommon(HookTranscript(environment.folder, mask))
        self._common = project._common if project else own

    def elsewhere(self, environment: ToolEnvironment) -> "UserHooks":
        """Return these hooks for an agent that works in a copy of the project; one that ends a turn there ends it for all.

        Before a call they are asked about the one in the project that it stands for, and run as they do there; after it they are told of the copy.
        """
        self._common.copies.append(str(environment.folder))
        return UserHooks(self._hooks, environment, self._emit, self._session, self._project)

    @property
    def ending(self) -> str | None:
        """Why the turn is to end, said by a hook; None as long as none did."""
        return self._common.why

    async def fire(
        self,
        event: EventName,
        facts: Mapping[str, Any],
        names: Collection[str] = (),
        call: HookedCall | None = None,
        sources: Collection[Source] = SOURCES,
    ) -> HookAnswer:
        """Run the hooks of an event side by side, those whose matcher fits one of the names; return what they say together."""
        meant = [
            hook
            for hook in map(self._as_run, self._hooks)
            if hook.event == event and hook.source in sources and hook.fits(names)
        ]
        if call is not None and any(hook.condition for hook in meant):
            command, files = str(call.arguments.get("command", "")), call.files
            paths = None if files is None else NamedPaths(self._environment.roots, files)
            meant = [hook for hook in meant if hook.allows(call.tool, command, paths, call.also)]
        is_trusted = any(each.source == "own" for each in meant)
        is_trusted = is_trusted and await asyncio.to_thread(self._trusts, call)
        if not is_trusted and event in _AFTER and call is not None and call.places != ():
            meant = self._without_waiting(meant)
        # One that stands in several groups runs once; one of the project's never takes the place of the person's.
        fitting = {replace(hook, matcher="", condition=""): hook for hook in meant}
        if not fitting:
            return HookAnswer()
        given = await asyncio.to_thread(self._input, event, facts)
        paths, is_after = self._opened(call), event in _AFTER
        tasks = [
            asyncio.create_task(
                self._run(hook, given, paths, is_after=is_after, is_trusted=is_trusted)
            )
            for hook in fitting.values()
        ]
        waited = [
            task for task, hook in zip(tasks, fitting.values(), strict=True) if not hook.is_async
        ]
        self._let_go(set(tasks) - set(waited))
        try:
            answer = merged(await asyncio.gather(*waited))
        except asyncio.CancelledError:
            await asyncio.wait(waited)  # each ends its program first
            raise
        for note in answer.notes:
            self._emit(Noticed(level="warning", text=note))
        if answer.ending is not None:
            self._common.why = answer.ending or "it gives no reason"
        return answer

    def _as_run(self, hook: Hook) -> Hook:
        """Return a hook as it runs where the sandbox may be off: then one of the person's own has no other place than theirs."""
        if hook.source == "own-sandboxed" and self._environment.sandbox.is_off:
            return replace(hook, source="own")
        return hook

    def _opened(self, call: HookedCall | None) -> tuple[str, ...]:
        """Return the paths that a hook may open for a call: all in the folders that tools may write in, where the call may be about any."""
        if call is None or call.places == ():
            return ()
        return tuple(map(str, call.places or self._environment.roots.folders))

    async def _run(
        self, hook: Hook, given: bytes, paths: tuple[str, ...], *, is_after: bool, is_trusted: bool
    ) -> HookAnswer:
        """Run a hook. While one of the person's own does, nothing in the sandbox changes where the paths lead; after a call it does not run without that.

        One before a call whose sandbox could not be built is run once more, while nothing in the sandbox runs that may be the reason.

        `"cwd": "project"` says that it may run the code of any project, so nothing is gained for it.
        """
        is_held = hook.source == "own" and hook.cwd != IN_PROJECT
        opened = paths if is_held else ()
        async with paused(opened, may_pause=not hook.is_async) as pause:
            is_same = pause.is_sure and [*map(os.path.realpath, opened)] == [*opened]
            if is_same or not is_after:
                run = partial(run_hook, hook, given, self._environment)
                answer = await run(trusts_files=is_trusted and is_same, paused=pause.paused)
                if answer.is_unbuilt and not hook.is_async:  # a job may have moved a folder
                    folders = [*map(str, self._environment.roots.folders)]
                    async with paused(folders, may_begin=True):
                        answer = await run()
                return answer
        if not self._common.has_told_moving:
            self._common.has_told_moving = True
            self._emit(Noticed(level="warning", text=_MOVES.format(hook=hook.shown)))
        return HookAnswer()

    def _trusts(self, call: HookedCall | None) -> bool:
        """Return whether the person trusts all places that a call is about; of what may be about any file, all folders that tools may write in."""
        environment, named = self._environment, call and call.places
        folders = (environment.original or environment).roots.folders
        kept = environment.workspace.shells.outputs.folder  # ybs alone writes there
        trusts = environment.workspace.own_programs.trusts
        return all(each.is_relative_to(kept) or trusts(each) for each in named or folders)

    def _without_waiting(self, hooks: Sequence[Hook]) -> list[Hook]:
        """Leave out the person's own where a file is not in a trusted place: what formats or checks it loads the code of settings beside it."""
        waiting = [each for each in hooks if each.source == "own" and each.cwd != IN_PROJECT]
        if waiting and not self._common.has_told_waiting:
            self._common.has_told_waiting = True
            place = _ELSEWHERE if self._environment.trusts_project else "this project"
            names = [f"`{each}`" for each in dict.fromkeys(hook.shown for hook in waiting)]
            opened = self._environment.workspace.own_programs.opened_above
            words = _WAITS if opened is None else _IN_OPEN
            text = words.format(hooks=listed(names, 3), place=opened or place)
            self._emit(Noticed(level="warning", text=text))
        return [each for each in hooks if each not in waiting]

    def _call(self, call: ToolCall, told: Sequence[str] = ()) -> HookedCall:
        """Return what hooks are told of a call. Its tool has `told` the paths that it will use; where it has not, they are found out as it would."""
        arguments = _decoded(call)
        several = arguments.get("paths")
        named = several if is_list(several) else map(arguments.get, ("file_path", "path"))
        names = [str(name) for name in named if name]
        try:
            if len(names) == len(told) == 1:
                used = [Path(real_name(told[0]))]
            else:
                used = [self._used(call.name, name) for name in names]
        except ToolError:
            used = None
        files = None if used is None else tuple(zip(names, used, strict=True))
        return HookedCall(call.id, call.name, arguments, files, self._environment.folder)

    def _used(self, tool: str, name: str) -> Path:
        """Return the path that a tool uses for a name. Raises ToolError for a text that is not a path."""
        try:
            return self._environment.roots.resolve(name, is_link_followed=tool != "delete_file")
        except OutsideRoots as outside:
            return Path(outside.path)

    def _let_go(self, tasks: set[asyncio.Task[HookAnswer]]) -> None:
        for task in tasks:
            self._common.background.add(task)
            task.add_done_callback(self._common.background.discard)

    def _input(self, event: EventName, facts: Mapping[str, Any]) -> bytes:
        session, mode = self._session(), self._environment.policy.mode
        common = {
            "session_id": session.name,
            "transcript_path": self._written(session),
            "cwd": str(self._environment.folder),
            "permission_mode": _MODES.get(mode, mode),
            "hook_event_name": event,
        }
        return msgspec.json.encode({**common, **facts})

    def _written(self, session: HookFacts) -> str:
        """Return the path of the conversation as hooks read it; empty where nothing may be written."""
        if not self._environment.incognito.may_write:
            return ""
        try:
            path = self._environment.workspace.shells.outputs.place_of(f"{session.name}.jsonl")
        except OSError:
            return ""
        return self._common.transcript.write(path, session.name, session.messages)

    async def before_turn(self, emit: Emit) -> None:
        """Begin without an end that an earlier turn was given."""
        del emit
        self._common.why = None

    async def submitted(self, message: UserMessage) -> UserMessage:
        """Return the person's words with what hooks add to them; the first ones begin the session. Raises PromptBlocked."""
        context = ""
        if not self._common.has_begun:
            self._common.has_begun = True
            source = self._session().source
            context = (await self.fire("SessionStart", {"source": source}, (source,))).context
        if message.origin == "person":
            answer = await self.fire("UserPromptSubmit", {"prompt": message.words})
            why = answer.ending if answer.blocked is None else answer.blocked
            if why is not None:
                raise PromptBlocked(f"Your message was not sent, as a hook blocks it: {why}")
            context = "\n".join(filter(None, (context, answer.context)))
        if not context:
            return message
        clean = self._environment.mask(context, "the answer of a hook")
        said = Text(text=f"\n\n<hook-context>\n{framed(clean)}\n</hook-context>")
        return replace(message, content=(*message.content, said))

    async def judge(self, case: CallToJudge) -> CallVerdict:
        """Ask the hooks before a call is run; the person's own alone where others have changed it, which then can only be stricter."""
        sources = OWN if case.is_changed else SOURCES
        answer = await self._asked("PreToolUse", case.call, case.preview, sources)
        if answer.blocked is not None or self.ending is not None:
            why = answer.blocked if answer.blocked is not None else self.ending
            return CallVerdict(refusal=f"Refused by a hook: {why}")
        given, wish, why = (
            None if case.is_changed else answer.arguments,
            answer.permission,
            answer.reason or "it gives no reason",
        )
        if case.is_changed and wish != "ask":
            wish = ""
            if not case.takes_any:  # it may reach anything: a rule is about what the model says
                wish, why = "ask", "it is not your own, and gave other arguments"
        return CallVerdict(
            arguments=None if given is None else self._given(case.call.name, given),
            by_others=answer.are_others,
            wish="" if wish == "deny" else wish,
            reason=f"a hook says to ask: {why}",
            note=answer.context and f"[hook] {answer.context}",
        )

    async def _asked(
        self,
        event: EventName,
        call: ToolCall,
        preview: Preview,
        sources: Collection[Source] = SOURCES,
    ) -> HookAnswer:
        """Ask about a call: once, or about each of its files, as a hook goes by one path. An `allow` is one for all of them.

        Then about what it does besides: that can be refused or asked about, and is neither allowed nor changed by itself.
        """
        told, project = self._told(call, preview.paths), self._project
        writes = [self._in_project(real_name(path)) for path in preview.writes or ()]
        calls = told.before(writes, preview.command_line)
        own = [each for each in calls if not each.real_tool]
        answers = [await project.fire(event, each.facts, each.names, each, sources) for each in own]
        answer = merged(answers)
        if answer.permission == "allow" and any(not each.permission for each in answers):
            answer = replace(answer, permission="")
        for each in calls[len(own) :]:
            if answer.blocked is not None:
                break
            said = await project.fire(event, each.facts, each.names, each, sources)
            held = "" if said.permission == "allow" else said.permission
            answer = merged((answer, replace(said, permission=held, arguments=None)))
        return answer

    def _told(self, call: ToolCall, paths: Sequence[str]) -> HookedCall:
        """Return what hooks before a call are told of it: of one in a copy, the call in the project that it stands for, as rules are judged."""
        found, moved, project = self._call(call, paths), self._in_project, self._project
        files = found.files and tuple((moved(n), Path(moved(str(used)))) for n, used in found.files)
        arguments = _moved(found.arguments, moved)
        copy = "" if self is project else str(found.folder)
        folder = project._environment.folder
        return replace(found, arguments=arguments, files=files, folder=folder, copy=copy)

    def _in_project(self, path: str) -> str:
        """Return the path in the project that one in a copy of it stands for; any other as it is."""
        project = str(self._project._environment.folder)
        copy = next((each for each in self._common.copies if lies_in(path, each)), "")
        return _there(path, copy, project) if copy else path

    def _given(self, tool: str, shown: Mapping[str, Any]) -> Raw:
        """Return the arguments that a hook gave for a call; in a copy, with its paths in place of the project's."""
        here, project = str(self._environment.folder), str(self._project._environment.folder)

        def moved(path: str) -> str:
            return _there(path, project, here) if lies_in(path, project) else path

        own = own_arguments(tool, shown)
        return Raw(msgspec.json.encode(own if here == project else _moved(own, moved)))

    async def answer_to(self, question: Question) -> Answer | None:
        """Return the hooks' answer to a question in the person's place; None if the person has to be asked.

        An `allow` counts where the person could say that such calls are always allowed: not where something would be destroyed,
        not where it is for other arguments, and not for a tool whose needs nobody was shown.
        """
        if question.choices is not None:
            return None  # the model's own
        answer = await self._asked("PermissionRequest", question.call, question.preview)
        if answer.blocked is not None:
            return Answer(is_allowed=False, reason=f"a hook says: {answer.blocked}")
        if answer.permission != "allow" or not question.grant or question.is_unshown:
            return None
        # Other arguments would be unjudged.
        told = self._told(question.call, question.preview.paths)
        if answer.arguments not in (None, told.facts["tool_input"]):
            self._emit(Noticed(level="warning", text=_UNCHANGED))
            return None
        return Answer(is_allowed=True)

    def asked_before(self, confirm: Confirm) -> Confirm:
        """Return what asks the hooks about a question, and `confirm` where none of them answers."""

        async def ask(question: Question) -> Answer:
            if (answer := await self.answer_to(question)) is not None:
                return answer
            self.notify("permission_prompt", f"ybs asks: {question.preview.title}")
            return await confirm(question)

        return ask

    async def look_at(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Tell the hooks of a call that was run, and add what they say to its result."""
        ran, names = self._call(call), names_of(call.name)
        facts = ran.facts
        if result.is_error:
            error = {"error": result.output[:_MOST_IN_RESPONSE], "is_interrupt": False}
            answer = await self.fire("PostToolUseFailure", {**facts, **error}, names, ran)
            return _with_said(result, answer)
        display: Any = msgspec.json.decode(result.display)
        output = result.output[:_MOST_IN_RESPONSE]
        response = {**(display if is_object(display) else {}), "success": True, "output": output}
        if path := facts["tool_input"].get("file_path"):
            response["filePath"] = path
        facts["tool_response"] = response
        answer = await self.fire("PostToolUse", facts, names, ran)
        return _with_said(result, answer)

    async def before_compaction(self, reason: CompactionReason, focus: str) -> str:
        """Tell the hooks that the conversation is about to be compacted; return why it is not to be, or nothing."""
        trigger = "manual" if reason == "asked" else "auto"
        facts = {"trigger": trigger, "custom_instructions": focus}
        return (await self.fire("PreCompact", facts, (trigger,))).blocked or ""

    def notify(self, kind: str, message: str) -> None:
        """Tell the hooks that the person is waited for; nobody waits for the hooks."""
        if any(hook.event == "Notification" for hook in self._hooks):
            facts = {"message": message, "notification_type": kind}
            self._let_go({asyncio.create_task(self.fire("Notification", facts, (kind,)))})

    async def aclose(self, reason: str) -> None:
        """Tell the hooks that the session ends, if it has begun, and end those that nobody waits for."""
        if self._common.has_begun:
            self._common.has_begun = False
            await self.fire("SessionEnd", {"reason": reason}, (reason,))
        left = tuple(self._common.background)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)


def hooked(
    environment: ToolEnvironment, person: Person
) -> "tuple[ToolEnvironment, UserHooks | None]":
    """Return an environment with the hooks of its settings, and these: they judge all its calls, and answer questions before the person is asked.

    What is wrong with some of them is among its warnings. Calls that are never run have none.
    """
    found = read(environment.config.hooks)
    loaded = environment.loaded
    loaded = replace(loaded, warnings=(*loaded.warnings, *found.problems))
    if not found.hooks or environment.permissions.is_dry_run:
        return replace(environment, loaded=loaded), None
    made = replace(environment, loaded=loaded)
    hooks = UserHooks(found.hooks, made, person.emit, person.facts)
    made.use_hooks(hooks)
    return made, hooks


def _with_said(result: ToolResult, answer: HookAnswer) -> ToolResult:
    said = [f"[hook] {text}" for text in (answer.blocked, answer.context) if text]
    return replace(result, output="\n\n".join((result.output, *said))) if said else result


def _decoded(call: ToolCall) -> dict[str, Any]:
    return msgspec.json.decode(call.arguments, type=dict[str, Any])


#: The arguments of built-in tools that are paths.
_PLACES = ("path", "file_path", "paths", "working_dir")


def _moved(arguments: Mapping[str, Any], move: Callable[[str], str]) -> dict[str, Any]:
    """Return arguments with their paths moved."""

    def moved(value: Any) -> Any:
        if is_list(value):
            return [*map(moved, value)]
        return move(value) if isinstance(value, str) else value

    return {name: moved(each) if name in _PLACES else each for name, each in arguments.items()}


def _there(path: str, here: str, there: str) -> str:
    """Return the path in another folder that stands where one does `here`."""
    return f"{there.rstrip('/')}/{path[len(here) :].lstrip('/')}".rstrip("/")


#: A hook that never lets a turn end is not asked for ever.
MOST_IN_A_ROW = 8


class HookGuard(Guard):
    """Asks hooks whether a turn may end, and ends one where they say so. It stands behind all others.

    An agent that works for another one has a name and is of a `kind`; hooks hear of its beginning as well.
    """

    def __init__(self, hooks: UserHooks, name: str = "", kind: str = "") -> None:
        self._hooks = hooks
        self._event: EventName = "SubagentStop" if kind else "Stop"
        self._names = names_of_kind(kind)
        self._facts = {"agent_id": name, "agent_type": self._names[0]} if self._names else {}
        self._turn: Turn | None = None
        self._count = 0

    async def before_step(self, turn: Turn) -> None:
        """End the turn where a hook said so. Raises StopTurn."""
        if self._hooks.ending is not None:
            raise StopTurn("limit", f"A hook ended the turn: {self._hooks.ending}")
        if turn is not self._turn:
            self._turn, self._count = turn, 0
            if self._facts:
                answer = await self._hooks.fire("SubagentStart", self._facts, self._names)
                if answer.context:
                    turn.say(UserMessage.of(answer.context, origin="context"))

    async def wants_more(self, turn: Turn) -> bool:
        """Go on where a hook blocks the end, with what it says."""
        last = turn.messages[-1] if turn.messages else None
        if not isinstance(last, AssistantMessage) or self._count >= MOST_IN_A_ROW:
            return False  # another guard goes on already
        facts = {"stop_hook_active": self._count > 0, "last_assistant_message": last.text}
        answer = await self._hooks.fire(self._event, {**facts, **self._facts}, self._names)
        if answer.blocked is None or answer.ending is not None:
            return False
        self._count += 1
        turn.say(UserMessage.of(f"A hook says: {answer.blocked}", origin="guard"))
        return True
