"""The toolbox: finds a call's tool, checks the arguments, lets it be confirmed, runs it and cuts the result.

It never raises: whatever goes wrong becomes a result that the model reads. Only cancellation passes.
"""

import logging
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any, Protocol, runtime_checkable

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ybs.core.errors import ToolError
from ybs.core.events import Emit, ToolPrinted
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Preview, Tool, ToolOutput, ToolSpec, schema_of
from ybs.security.confirm import Gate
from ybs.security.policy import Deny, Subject
from ybs.tools.arguments import decode
from ybs.tools.cut import cut

_log = logging.getLogger(__name__)
_HINT = "Ask for less: a part, or a narrower pattern"


@runtime_checkable
class Judged(Protocol):
    """A tool that says what the policy judges. One that does not is judged by name and arguments."""

    def subject(self, arguments: Any) -> Subject:
        """Say what the call is about. Raises ToolError."""
        ...


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


class LocalToolbox:
    """The tools of a session on this machine.

    `dry_run`: calls are checked and shown, never run. `is_short`: the specs are the short form, for small models.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        gate: Gate,
        *,
        max_output_chars: int = 10_000,
        dry_run: bool = False,
        is_short: bool = False,
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._gate = gate
        self._most_chars = max_output_chars
        self._dry_run = dry_run
        self._is_short = is_short
        self._specs: Sequence[ToolSpec] | None = None

    def specs(self) -> Sequence[ToolSpec]:
        """List the tools in the order they were given; the list stays the same for the session."""
        if self._specs is None:
            make = _short_spec if self._is_short else _spec
            self._specs = [make(tool) for tool in self._tools.values()]
        return self._specs

    def is_read_only(self, call: ToolCall) -> bool:
        """Tell whether the call changes nothing."""
        tool = self._tools.get(call.name)
        return tool is not None and tool.effect == "read"

    async def run(self, call: ToolCall, emit: Emit) -> ToolResult:
        """Run one call to its end."""
        started = monotonic()
        try:
            result = await self._run(call, emit)
        except ToolError as error:
            result = self._failed(call, str(error))
        except Exception as error:  # the edge: a bug in a tool must not end the turn
            _log.exception("the tool %s failed", call.name)
            problem = f"{type(error).__name__}: {error}"
            result = self._failed(call, f"{call.name} failed by a mistake of its own: {problem}")
        return replace(result, duration_seconds=monotonic() - started)

    async def _run(self, call: ToolCall, emit: Emit) -> ToolResult:
        tool = self._find(call)
        decoded = decode(tool, call)
        preview: Preview = tool.preview(decoded.value)
        if self._dry_run:
            body = f"\n{preview.body}" if preview.body else ""
            text = f"Not executed (dry run). It would: {preview.title}{body}"
            return self._result(call, ToolOutput(output=text, summary="not executed (dry run)"), ())
        subject = tool.subject(decoded.value) if isinstance(tool, Judged) else Subject()
        verdict = await self._gate.admit(call, tool.effect, preview, subject, emit)
        if isinstance(verdict, Deny):
            return replace(self._failed(call, verdict.reason, "refused"), is_refused=True)

        def print_live(text: str) -> None:
            emit(ToolPrinted(id=call.id, text=text))

        return self._result(call, await tool.run(decoded.value, print_live), decoded.notes)

    def _find(self, call: ToolCall) -> Tool:
        tool = self._tools.get(call.name)
        if tool is None:
            from difflib import get_close_matches  # only a wrong name needs it

            near = get_close_matches(call.name, self._tools, n=2, cutoff=0.5)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            names = ", ".join(self._tools) or "none"
            raise ToolError(f"There is no tool {call.name!r}.{hint} The tools are: {names}")
        return tool

    def _result(self, call: ToolCall, output: ToolOutput, notes: Sequence[str]) -> ToolResult:
        remarks = cut("".join(f"\n[note: {note}]" for note in notes), self._most_chars // 2)
        text = cut(output.output, max(self._most_chars - len(remarks), 0), _HINT) + remarks
        return ToolResult(
            call_id=call.id,
            name=call.name,
            output=text,
            is_error=output.is_error,
            summary=output.summary,
            display=Raw(msgspec.json.encode(output.display)),
            images=output.images,
        )

    def _failed(self, call: ToolCall, message: str, summary: str = "") -> ToolResult:
        display = {"success": False, "error": message}
        summary = summary or message.partition("\n")[0][:200]
        output = ToolOutput(output=message, summary=summary, display=display, is_error=True)
        return self._result(call, output, ())


def _spec(tool: Tool) -> ToolSpec:
    return ToolSpec(
        name=tool.name, description=tool.description, parameters=schema_of(tool.arguments)
    )


def _short_spec(tool: Tool) -> ToolSpec:
    """Make the short form: the first line of the prompt, and arguments by name and type only."""
    if not isinstance(tool, Short):
        return _spec(tool)
    schema = msgspec.json.decode(schema_of(tool.arguments))
    properties = {
        name: {key: value for key, value in line.items() if key not in ("description", "default")}
        for name, line in schema["properties"].items()
        if name not in tool.rare
    }
    kept = {"type": "object", "properties": properties, "required": schema["required"]}
    parameters = Raw(msgspec.json.encode(kept))
    return ToolSpec(name=tool.name, description=tool.short_description, parameters=parameters)
