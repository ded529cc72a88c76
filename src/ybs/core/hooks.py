"""Hooks around a tool call."""

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from msgspec import Raw, Struct

from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Effect, Preview


class CallHook(Protocol):
    """Runs around every call that may change something.

    Hooks are an ordered list: `before_change` runs from the first to the last, `after_change` from the last to the first.
    """

    #: What the hook does, for messages about it.
    name: str = "a hook"
    #: What it means where `before_change` fails, as the model and the person read it.
    loss: str = "a hook failed"

    async def before_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Prepare for a change that is about to be made; `paths` are those that are known, whole as the tool will use them.

        Where it raises, the later hooks and the tool run all the same, and the model reads `loss` and the error.
        """

    async def after_change(self, call: ToolCall, effect: Effect, paths: Sequence[str]) -> None:
        """Look at what the call left, however it ended. It runs to its end; what it raises is ignored."""


class CallToJudge(Struct, frozen=True, kw_only=True):
    """A call that can be run, as its toolbox has understood it: its tool says what the `preview` does.

    `takes_any`: what lets the call pass is for whatever arguments; not where its tool is not ybs's own, or writes what later sessions read.
    `is_changed`: somebody else than the person has given these arguments, so what guards for the person judges once more, and changes nothing.
    """

    call: ToolCall
    preview: Preview
    takes_any: bool = True
    is_changed: bool = False


class CallVerdict(Struct, frozen=True, kw_only=True):
    """What a judge says about a call before anybody else is asked.

    `refusal` ends it, and the model reads why. `arguments` stand in for those of the model (`by_others`: not the person gave them). `wish` is to be asked about it (`ask`), or
    that a rule `--allow TOOL` counted for this one call (`allow`); `reason` says why. `note` is added to the result for the model.
    """

    refusal: str = ""
    arguments: Raw | None = None
    by_others: bool = False
    wish: Literal["", "allow", "ask"] = ""
    reason: str = ""
    note: str = ""


@runtime_checkable
class CallOpener(Protocol):
    """A hook that hears of every call before anything looks at the files that the call names."""

    async def before_look(self, call: ToolCall) -> None:
        """Prepare for the tool to look at files: to preview the call, or to run it."""
        ...


@runtime_checkable
class CallJudge(Protocol):
    """A hook that judges every call, also those that only read: it can refuse, change, or have the person asked."""

    async def judge(self, case: CallToJudge) -> CallVerdict:
        """Judge a call. It may take as long as it needs."""
        ...

    async def look_at(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return the result of a call that was run, as the model is to read it."""
        ...
