"""Turn hooks: what runs around a turn, and around each change in it, in the order of a list.

Checkpoints, commits and the title of a session are one hook; a user's own hooks are others. A hook is handed to the
session (`Session.open(hooks=[...])`); the loop does not know of hooks.
"""

from collections.abc import Sequence

from ybs.core.events import Emit
from ybs.core.hooks import CallHook


class TurnHook(CallHook):
    """Runs around a turn and around each change in it. Override what is needed; by itself it does nothing.

    `before_turn`, `before_change`, `after_change` and `after_turn` come in this order; a turn without changes has the
    first and the last alone.
    """

    async def before_turn(self, emit: Emit) -> None:
        """Prepare for a turn; `emit` takes events of the hook's own until `after_turn` has returned."""

    async def after_turn(self) -> None:
        """Keep what should outlive the turn. It is called however the turn ended, also where a `before_turn` raised."""


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
