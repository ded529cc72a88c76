"""Turn hooks: what runs around a turn, and around each change in it, in the order of a list.

Checkpoints, commits and the title of a session are one hook; a user's own hooks are others. A hook is handed to the
session (`Session.open(hooks=[...])`); the loop does not know of hooks.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ybs.core.events import Emit
from ybs.core.hooks import CallHook
from ybs.core.messages import Message
from ybs.core.ports import Confirm


class TurnHook(CallHook):
    """Runs around a turn and around each change in it. Override what is needed; by itself it does nothing.

    `before_turn`, `before_change`, `after_change` and `after_turn` come in this order; a turn without changes has the
    first and the last alone.
    """

    async def before_turn(self, emit: Emit) -> None:
        """Prepare for a turn; `emit` takes events of the hook's own until `after_turn` has returned."""

    async def after_turn(self) -> None:
        """Keep what should outlive the turn. It is called however the turn ended, also where a `before_turn` raised."""


class PersonsHooks(TurnHook):
    """The programs of the person's that run around prompts and calls, as the environment of these calls knows them: `UserHooks`, which stands on it.

    There is nothing that they could do by themselves.
    """

    def elsewhere(self, environment: Any) -> "PersonsHooks":
        """Return them for an agent in a copy of the project, whose environment it is."""
        raise NotImplementedError

    def asked_before(self, confirm: Confirm) -> Confirm:
        """Return what asks them about a question, and `confirm` where none of them answers."""
        raise NotImplementedError

    async def aclose(self, reason: str) -> None:
        """End what they have started; `reason` is what they are told."""
        raise NotImplementedError


class HookFacts(Struct, frozen=True, kw_only=True):
    """What the person's hooks are told of a session. `source` says how it began: `startup`, `resume`, or `clear` after another one."""

    name: str = "no-session"
    source: str = "startup"
    messages: Sequence[Message] = ()


async def before_turn(hooks: Sequence[TurnHook], emit: Emit) -> None:
    """Run every hook before a turn, the first one first; where one raises, there is no turn."""
    for hook in hooks:
        await hook.before_turn(emit)


async def after_turn(hooks: Sequence[TurnHook]) -> None:
    """Run every hook after a turn, the last one first; one that fails does not keep the others from it."""
    failure: BaseException | None = None
    for hook in reversed(hooks):
        try:
            await hook.after_turn()
        except BaseException as error:  # the other hooks come first; then it is raised
            failure = failure or error
    if failure is not None:
        raise failure
