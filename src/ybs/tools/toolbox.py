"""The toolbox: finds a call's tool, checks the arguments, lets it be confirmed, runs it and cuts the result.

It never raises: whatever goes wrong becomes a result that the model reads. Only cancellation passes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.core.errors import Refused, ToolError
from ybs.core.events import ConfirmationAnswered, Emit, Noticed
from ybs.core.hooks import CallHook, CallJudge, CallOpener, CallToJudge
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Preview, Tool, Toolbox, ToolOutput, ToolSpec
from ybs.security.paths.roots import OutsideRoots
from ybs.security.policy.case import Subject
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Allow, Deny
from ybs.security.sandbox.launch import Need
from ybs.tools.calls.arguments import Decoded, decode
from ybs.tools.calls.live import LiveOutput
from ybs.tools.calls.read_only import UNHELD, ReadOnlyFirst, ReadOnlyRun, held_back

if TYPE_CHECKING:
    from ybs.tools.calls.hooks import Judges
    from ybs.tools.calls.tool_names import FoundTool


_Value = TypeVar("_Value")
#: The effects of tools that change the files which their previews name.
_CHANGING = frozenset({"write", "edit", "delete"})
#: How long any call may take. run_shell ends by itself after 600 s at most, and other tools much sooner.
MOST_SECONDS = 660.0
#: How long a tool may look at a call before the person is asked.
PREPARE_SECONDS = 60.0
#: A run that was stopped after longer is not begun again without a word about it.
LONG_SECONDS = 20.0


@runtime_checkable
class Previewed(Protocol):
    """A tool that can say what a call would do. Of any other the person is shown the arguments."""

    def preview(self, arguments: Any) -> Preview:
        """Say what the call would do. Raises ToolError where it cannot work anyway."""
        ...


@runtime_checkable
class HasSubject(Protocol):
    """A tool that says what the policy judges. One that does not is judged by name and arguments."""

    def subject(self, arguments: Any) -> Subject:
        """Say what the call is about. Raises ToolError."""
        ...


@runtime_checkable
class Networked(HasSubject, Protocol):
    """A tool whose calls can be given the network."""

    def with_network(self, arguments: Any) -> Any:
        """Return the arguments of the same call with the network open."""
        ...


@runtime_checkable
class Unconfined(Protocol):
    """A tool whose calls can be let run outside the sandbox."""

    def outside(self, arguments: Any, subject: Subject, *, is_asked: bool) -> Any:
        """Return the arguments of the same call, which runs outside: nothing else does so. A rule alone lets it out where nobody `is_asked`."""
        ...


class CheckedCall(Struct, frozen=True):
    """A call that was checked: `call` has the tool's own name and its arguments as they were understood."""

    tool: Tool
    call: ToolCall
    decoded: Decoded
    preview: Preview
    subject: Subject

    @property
    def changes(self) -> bool:
        """Whether the call may change something that undo takes back."""
        subject = self.subject
        return self.tool.effect != "read" and not (subject.only_reads or subject.is_own)

    @property
    def to_judge(self) -> CallToJudge:
        """The call as hooks judge it. The tool itself says whether ybs brings it; its name does not."""
        takes_any = getattr(self.tool, "is_built_in", False) and not self.subject.is_own
        return CallToJudge(call=self.call, preview=self.preview, takes_any=takes_any)

    @property
    def touched(self) -> Sequence[str]:
        """The whole paths that the tool will use, as far as it says: hooks need not find out anew what a text of a model means."""
        return () if self.subject.named is None else self.subject.named.used


class LocalToolbox(Toolbox):
    """The tools of a session on this machine.

    `dry_run`: calls are checked and shown, never run.
    `limits` are the seconds that a call may take, by the tool's name; a tool may have its own `longest_seconds`.
    `hooks` run around each call that may change something; a `CallJudge` among them judges every call, a `CallOpener` hears of each first.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        gate: Gate,
        *,
        max_output_chars: int = 10_000,
        dry_run: bool = False,
        limits: Mapping[str, float] = MappingProxyType({}),
        hooks: Sequence[CallHook] = (),
    ) -> None:
        self._gate = gate
        self._most_chars = max_output_chars
        self._dry_run = dry_run
        self._limits, self._hooks = limits, hooks
        self._openers = [hook for hook in hooks if isinstance(hook, CallOpener)]
        self._judges: Judges | None = None
        if judges := [hook for hook in hooks if isinstance(hook, CallJudge)]:
            self._judges = _hooks().Judges(judges)  # few sessions have any
        self._emit: Emit | None = None
        #: What is wrong with tools that cannot be used, and whether that was reported.
        self._problems: dict[str, bool] = {}
        self.offer(tools)

    def offer(
        self,
        tools: Iterable[Tool],
        *,
        foreign: Iterable[Tool] = (),
        is_short: bool = False,
        unoffered: Collection[str] = (),
    ) -> None:
        """Have these tools from now on, told in the form that suits the model.

        `foreign` are tools that are not built in. They are looked at first; one that cannot be used, as its name is taken
        or its schema is not one, is left out and reported.

        `is_short`: the specs are the short form, for small models. `unoffered` names tools that can be called and that
        models are not told of by themselves.
        """
        self._tools = {tool.name: tool for tool in tools}
        self.is_short, self._unoffered = is_short, unoffered
        self._specs: Sequence[ToolSpec] | None = None
        for tool in foreign:
            self._add(tool)
        self._report()

    def _add(self, tool: Tool) -> None:
        """Have a tool that is not built in, if it can be used."""
        from ybs.tools.usable import problem_of  # most sessions have none

        if problem := problem_of(tool, self._tools):
            self._problems.setdefault(problem, False)
        else:
            self._tools[tool.name] = tool

    async def open(self, emit: Emit) -> None:
        """Report the tools that cannot be used, now and later."""
        self._emit = emit
        self._report()

    def _report(self) -> None:
        for text, is_told in self._problems.items():
            if self._emit is not None and not is_told:
                self._emit(Noticed(level="warning", text=text))
                self._problems[text] = True

    @property
    def names(self) -> Collection[str]:
        """The names of all tools, offered or not."""
        return self._tools.keys()

    def knows(self, name: str) -> bool:
        """Return whether a call of that name is a call of one of the tools."""
        from ybs.tools.calls.tool_names import find

        return find(name, self._tools) is not None

    def effect_of(self, name: str) -> str:
        """Return the effect of the tool that a call of this name means, offered or not; empty where there is none."""
        found = self._found(name)
        return "" if found is None else found.tool.effect

    def specs(self) -> Sequence[ToolSpec]:
        """Return the tools in the order they were given; the list stays the same as long as they do."""
        if self._specs is None:
            make = short_spec if self.is_short else spec
            tools = self._tools.values()
            self._specs = [make(tool) for tool in tools if tool.name not in self._unoffered]
        return self._specs

    def is_read_only(self, call: ToolCall) -> bool:
        """Return whether the call changes nothing."""
        return self.effect_of(call.name) == "read"

    def check(self, call: ToolCall) -> None:
        """Raise ToolError where no tool has just this name, or the arguments do not fit it."""
        from ybs.tools.calls.supervise import checked
        from ybs.tools.calls.tool_names import unknown

        if call.name not in self._tools:
            raise ToolError(unknown(call.name, self._tools))
        checked(lambda: self._understood(call), call.name)

    async def run(self, call: ToolCall, emit: Emit) -> ToolResult:
        """Run one call to its end. One that is cancelled ends with what its tool left, or passes the cancellation on."""
        started = monotonic()
        try:
            result = await self._run(call, emit)
        except (
            ToolError
        ) as error:  # a path, a place or a state of ybs may be forbidden as well as a call
            failed = self._failed(call, str(error))
            is_refused = isinstance(error, Refused)
            result = replace(failed, is_refused=is_refused, remedies=error.remedies)
        return replace(result, duration_seconds=monotonic() - started)

    async def _run(self, call: ToolCall, emit: Emit) -> ToolResult:
        try:
            ready = await self._checked(call)
        except OutsideRoots as refused:
            if self._dry_run or not self.is_read_only(call):
                raise
            with await self._gate.admit_reading(call, refused, emit):
                return await self._run(call, emit)
        if self._dry_run:
            preview = ready.preview
            body = f"\n{preview.body}" if preview.body else ""
            text = f"Not executed (dry run). It would: {preview.title}{body}"
            output = ToolOutput(output=text, summary="not executed (dry run)")
            return self._result(call, output, ready.decoded.notes)
        if self._judges is not None:
            return await self._run_with_verdict(self._judges, ready, emit)
        return await self._run_checked(call, ready, emit)

    async def _checked(self, call: ToolCall) -> CheckedCall:
        """Prepare a call, the model's or one that a hook has changed, once those have heard of it that hear of each first."""
        from ybs.tools.calls.supervise import awaited, called  # the first request needs none

        for opener in self._openers:
            await awaited(partial(opener.before_look, call), call.name, PREPARE_SECONDS)
        return await called(lambda: self._prepare(call), call.name, PREPARE_SECONDS)

    async def _run_with_verdict(
        self, judges: "Judges", ready: CheckedCall, emit: Emit
    ) -> ToolResult:
        """Let the judges among the hooks have their say before and after a call."""
        call = ready.call

        async def prepared(changed: ToolCall) -> CallToJudge:
            nonlocal ready
            ready = await self._checked(changed)
            return ready.to_judge

        verdict = await judges.judge(ready.to_judge, prepared)
        if verdict.refusal:
            emit(ConfirmationAnswered(id=call.id, is_allowed=False, reason=verdict.refusal))
            return replace(self._failed(call, verdict.refusal, "refused"), is_refused=True)
        with self._gate.wishing(call.id, verdict.wish, verdict.reason):
            try:
                result = await self._run_checked(call, ready, emit)
            except Refused:
                raise
            except ToolError as error:
                failed = replace(self._failed(call, str(error)), remedies=error.remedies)
                result = await judges.look_at(ready.call, failed)
        note = f"\n\n{verdict.note}" if verdict.note else ""
        return replace(result, output=result.output + note)

    async def _looked_at(self, ready: CheckedCall, result: ToolResult) -> ToolResult:
        return result if self._judges is None else await self._judges.look_at(ready.call, result)

    async def _run_checked(self, call: ToolCall, ready: CheckedCall, emit: Emit) -> ToolResult:
        tool, notes = ready.tool, ready.decoded.notes
        verdict = await self._admit(ready, emit)
        if isinstance(verdict, Deny):
            return replace(self._failed(call, verdict.reason, "refused"), is_refused=True)
        ready = self._widened(ready, verdict)
        if verdict.by == "reading":
            read = await self._read_only(ready, emit)
            if not isinstance(read, CheckedCall):
                return await self._looked_at(ready, read)
            ready = read
        notes = (*notes, *await self._keep(ready))
        live = LiveOutput(call.id, emit)

        async def act() -> ToolOutput:
            output = await tool.run(ready.decoded.value, live)
            live.leave(output)
            return output  # a cancellation that comes just now changes nothing about it

        try:
            output = await self._awaited(act, tool)
            # What a judge changes now is still part of the call, and is undone with it.
            return await self._looked_at(ready, self._result(call, output, notes))
        except asyncio.CancelledError:
            if live.left is None:
                raise
            return self._result(call, live.left, notes)
        finally:
            live.close()
            await self._look_after(ready, has_result=live.left is not None)

    async def _read_only(self, ready: CheckedCall, emit: Emit) -> ToolResult | CheckedCall:
        """Run a call that nobody allowed more than reading so that it changes nothing.

        Where that is not enough the person is asked. Returns what is to be run as any other call where they agree.
        """
        tool, value, notes = ready.tool, ready.decoded.value, ready.decoded.notes
        ran, started = ReadOnlyRun(output=ToolOutput(output=""), need=UNHELD), monotonic()
        if isinstance(tool, ReadOnlyFirst):
            live = LiveOutput(ready.call.id, emit)
            try:
                ran = await self._awaited(lambda: tool.run_read_only(value, live), tool)
            except asyncio.CancelledError:
                if live.left is None:
                    raise
                return self._result(ready.call, live.left, notes)
            finally:
                live.close()
        if ran.need is None:
            return self._result(ready.call, ran.output, notes)
        return await self._ask_for_more(ready, ran, ran.need, monotonic() - started, emit)

    async def _ask_for_more(
        self, ready: CheckedCall, ran: ReadOnlyRun, need: Need, seconds: float, emit: Emit
    ) -> ToolResult | CheckedCall:
        tool, needs = ready.tool, need.reason
        if seconds > LONG_SECONDS:
            needs += f"; it was stopped after {seconds:.0f} s, and begins again"
        if need.network and isinstance(tool, Networked):
            ready = self._with_network(ready, tool)
        if need.outside:
            ready = replace(ready, subject=replace(ready.subject, needs_outside=True))
        verdict = await self._admit(ready, emit, needs=needs)
        if isinstance(verdict, Allow):
            return self._widened(ready, verdict)
        output = held_back(ran, need, verdict.reason)
        result = self._result(ready.call, output, ready.decoded.notes)
        return replace(result, is_refused=True)

    def _widened(self, ready: CheckedCall, verdict: Allow) -> CheckedCall:
        """Return the call with what it was given beyond what it has by itself."""
        tool = ready.tool
        if verdict.is_outside and isinstance(tool, Unconfined):
            is_asked = verdict.by != "grant"
            value = tool.outside(ready.decoded.value, ready.subject, is_asked=is_asked)
            return replace(ready, decoded=replace(ready.decoded, value=value))
        if verdict.with_network and isinstance(tool, Networked):
            return self._with_network(ready, tool)
        return ready

    @staticmethod
    def _with_network(ready: CheckedCall, tool: Networked) -> CheckedCall:
        """Return the same call with the network open, as the person is asked about it."""
        value = tool.with_network(ready.decoded.value)
        ready = replace(ready, decoded=replace(ready.decoded, value=value))
        return replace(ready, preview=_preview_of(ready.tool, value), subject=tool.subject(value))

    def _prepare(self, call: ToolCall) -> CheckedCall:
        """Check a call and let its tool say what it is about. It may block: the tool looks at files here."""
        tool, decoded = self._understood(call)
        preview = _preview_of(tool, decoded.value)
        subject = Subject()
        if isinstance(tool, HasSubject) and not self._dry_run:
            subject = tool.subject(decoded.value)
        if decoded.notes or call.invalid:
            arguments = Raw(msgspec.json.encode(decoded.value))
            call = replace(call, name=tool.name, arguments=arguments, invalid="")
        return CheckedCall(tool, call, decoded, preview, subject)

    def _found(self, name: str) -> "FoundTool | None":
        from ybs.tools.calls.tool_names import find

        return find(name, self._tools)

    def _understood(self, call: ToolCall) -> tuple[Tool, Decoded]:
        from ybs.tools.calls.tool_names import unknown

        found = self._found(call.name)
        if found is None:
            raise ToolError(unknown(call.name, self._tools))
        tool = found.tool
        decoded = decode(tool, call)
        if found.is_alias and tool.effect != "read" and decoded.notes:
            raise ToolError(unknown(call.name, self._tools, tool))  # nothing may be guessed here
        if found.note:
            decoded = replace(decoded, notes=(found.note, *decoded.notes))
        return tool, decoded

    async def _admit(self, ready: CheckedCall, emit: Emit, *, needs: str = "") -> Allow | Deny:
        from ybs.tools.calls.supervise import awaited, checked

        call, effect = ready.call, ready.tool.effect
        preview, subject = ready.preview, ready.subject

        def allowed() -> Allow | None:
            return self._gate.allowed(call, effect, preview, subject, needs=needs)

        def ask() -> Any:
            return self._gate.admit(call, effect, preview, subject, emit, needs=needs)

        what = "the question to the person"
        try:
            return checked(allowed, what) or await awaited(ask, what, None)
        except ToolError as error:
            return Deny(f"Refused: {call.name} could not be confirmed; nothing was done. {error}")

    async def _keep(self, ready: CheckedCall) -> tuple[str, ...]:
        """Run the hooks before a change; return notes for the model where one failed."""
        if not self._hooks or not ready.changes:
            return ()
        effect, paths = ready.tool.effect, ready.touched
        return await _hooks().before_change(self._hooks, ready.call, effect, paths)

    async def _look_after(self, ready: CheckedCall, *, has_result: bool) -> None:
        """Run the hooks after a change. They come to their end; a call that has its result is not cancelled meanwhile."""
        if not self._hooks or not ready.changes:
            return
        try:
            effect, paths = ready.tool.effect, ready.touched
            await _hooks().after_change(self._hooks, ready.call, effect, paths)
        except asyncio.CancelledError:
            if not has_result:
                raise

    async def _awaited(self, act: Callable[[], Awaitable[_Value]], tool: Tool) -> _Value:
        """Return the output of a tool, within its time. Raises ToolError."""
        from ybs.tools.calls.supervise import awaited

        limit = self._limits.get(tool.name) or getattr(tool, "longest_seconds", MOST_SECONDS)
        return await awaited(act, tool.name, limit)

    def _result(self, call: ToolCall, output: ToolOutput, notes: Sequence[str]) -> ToolResult:
        return _results().result_of(call, output, notes, most_chars=self._most_chars)

    def _failed(self, call: ToolCall, message: str, summary: str = "") -> ToolResult:
        return _results().failed(call, message, summary, most_chars=self._most_chars)


def _results():  # noqa: ANN202 - the module, whose type has no name
    from ybs.tools.calls import results  # not before the first call

    return results


def _hooks():  # noqa: ANN202 - likewise
    from ybs.tools.calls import hooks  # not before the first change

    return hooks


def _preview_of(tool: Tool, arguments: Any) -> Preview:
    """Return the preview for the person: the tool's own, or the arguments."""
    if not isinstance(tool, Previewed):
        shown = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
        return Preview(title=f"Call {tool.name}", body="" if shown == "{}" else shown)
    preview = tool.preview(arguments)
    if not isinstance(preview, Preview):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's tool
        raise TypeError(f"its preview is {type(preview).__name__}, not Preview")
    if preview.writes is None and tool.effect in _CHANGING:
        preview = replace(preview, writes=preview.paths)
    return preview


@runtime_checkable
class Short(Protocol):
    """A tool with a short form for small models."""

    @property
    def short_description(self) -> str:
        """What a small model is told."""
        ...

    @property
    def rare(self) -> frozenset[str]:
        """The arguments that a small model does not hear of."""
        ...


def spec(tool: Tool) -> ToolSpec:
    """Return all that a tool says of itself."""
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        effect=tool.effect,
    )


def short_spec(tool: Tool) -> ToolSpec:
    """Return the short form: the first line of the prompt, and arguments by name and type only."""
    if not isinstance(tool, Short):
        return spec(tool)
    schema = msgspec.json.decode(tool.parameters)
    properties = {
        name: {key: value for key, value in line.items() if key not in ("description", "default")}
        for name, line in schema["properties"].items()
        if name not in tool.rare
    }
    kept = {**schema, "properties": properties}
    parameters = Raw(msgspec.json.encode(kept))
    return replace(spec(tool), description=tool.short_description, parameters=parameters)
