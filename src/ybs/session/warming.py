"""Load the likely next steps of a session while it waits for a model or for git."""

import asyncio
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from threading import Thread

from ybs.core.ports import Model
from ybs.providers.watched import AwaitedModel

#: What a first edit needs, in the order in which it does.
FOR_EDITS = (
    *("ybs.tools.calls.supervise", "ybs.tools.calls.live", "ybs.tools.calls.hooks"),
    "ybs.tools.reading.content",
    *("ybs.tools.editing.matcher", "ybs.session.undoing", "ybs.checkpoints.keeping"),
    *("ybs.git.committer", "ybs.git.client", "ybs.security.sandbox.child"),
    *("ybs.agent.project_walk", "hashlib"),
)
#: What a first command needs.
FOR_COMMANDS = (
    *(
        "ybs.security.commands.options",
        "ybs.security.commands.syntax",
        "ybs.security.commands.wrappers",
    ),
    "ybs.security.commands.dangers",
    *("ybs.security.policy.command_case", "ybs.security.paths.autorun_watch"),
    *("ybs.tools.shell.output", "ybs.tools.shell.process"),
)
#: What the end of a first turn needs.
FOR_ENDS = ("ybs.transcripts.title", "ybs.checkpoints.store")
#: A model that answers sooner is not kept waiting.
MODEL_SECONDS = 0.005
#: Delay before the sandbox is probed, so that it does not compete with sending the request.
SENDING_SECONDS = 0.001
#: Between two steps: what is waited for most likely comes in several pieces, and each of them goes first.
PAUSE_SECONDS = 0.0007


class Warming:
    """Takes one step after the other, each of a few milliseconds, while somebody says that they are waiting.

    `has_sandbox`: which sandbox this machine has is found out as well, beside the first answer: that is another process's work.
    """

    def __init__(self, *, has_sandbox: bool) -> None:
        self._steps, self._tries_sandbox = _steps(), has_sandbox

    @contextmanager
    def waiting(self, after_seconds: float = 0.0) -> Generator[None]:
        """Take steps from now on, or a little later, until this is left. The loop has its turn between them."""
        loop = asyncio.get_running_loop()

        def step() -> None:
            nonlocal timer
            if next(self._steps, None) is not None:
                timer = loop.call_later(PAUSE_SECONDS, step)

        timer: asyncio.Handle = loop.call_later(after_seconds, step)
        try:
            yield
        finally:
            timer.cancel()

    def awaiting(self, model: Model) -> Model:
        """Return a model that runs the steps while it waits for an answer."""
        return AwaitedModel(model, self._until_answered)

    def _until_answered(self) -> AbstractContextManager[None]:
        if self._tries_sandbox:
            self._tries_sandbox = False
            thread = Thread(target=_try_sandbox, name="ybs-sandbox", daemon=True)
            asyncio.get_running_loop().call_later(SENDING_SECONDS, thread.start)
        return self.waiting(MODEL_SECONDS)


def _try_sandbox() -> None:
    from ybs.security.sandbox.choice import try_machine

    try_machine()  # where a command is quicker, that one tries for itself


def _steps() -> Iterator[str]:
    """Yield the name of each thing that is ready now."""
    for name in (*FOR_EDITS, *FOR_COMMANDS, *FOR_ENDS):
        import_module(name)
        yield name
