"""The turns of a session whose model is routed: the model picked before each, the agent fitted to it, and what came of it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from ybs.agent.environment import ToolEnvironment
from ybs.agent.hooks import TurnHook
from ybs.config.sections import CascadeSettings
from ybs.core.errors import ModelError, ToolError
from ybs.core.events import Emit, Event, TurnFinished
from ybs.router.classifier import Features
from ybs.router.ensemble import CascadeGuard, Checked
from ybs.router.feedback import Feedback
from ybs.router.model import RoutedModel


class RoutedTurns(TurnHook):
    """Picks the model before each turn, has the agent rebuilt for another one (`fit`), and gathers signals of how turns went.

    `mask` takes the secrets out of words that a model is to read that sorts requests.
    """

    name = "the router"

    def __init__(
        self,
        model: RoutedModel,
        tokens: Callable[[], int],
        fit: Callable[[], Awaitable[None]],
        mask: Callable[[str], str],
    ) -> None:
        self.model, self._tokens, self._fit, self._mask = model, tokens, fit, mask
        self.feedback = model.routing.feedback
        self._words = ""
        self._turns = 0
        self._fitted = model.arm

    def expect(self, words: str) -> None:
        """Take the words that the next turn begins with."""
        self._words = words

    def add(self, event: Event) -> None:
        """Take an event of the main agent."""
        self.feedback.add(event)

    async def before_turn(self, emit: Emit) -> None:
        """Pick the model. Where none can be used, the first request says so."""
        del emit
        self.feedback.begin(self._words)
        await self.model.routing.note_feedback()
        self._turns += 1
        words = self._mask(self._words) if self.model.routing.shows_words else self._words
        features = Features.of(words, tokens=self._tokens(), turn=self._turns)
        with suppress(ModelError):
            await self.model.begin(features)
        await self._fit_to_arm()

    async def after_turn(self) -> None:
        """Note what the turn showed."""
        self.model.end()
        self.feedback.end()
        await self._fit_to_arm()  # another one may have gone on in the middle of the turn
        await self.model.routing.note_feedback()

    async def _fit_to_arm(self) -> None:
        if self.model.arm is not self._fitted:
            self._fitted = self.model.arm
            await self._fit()

    async def aclose(self) -> None:
        """Settle what is still open."""
        self.feedback.close()
        await self.model.routing.note_feedback()


class RoutedTask:
    """The task of a sub-agent whose model is routed: its one turn, and what came of it. Nobody says more of it later."""

    def __init__(self, model: RoutedModel) -> None:
        self._model, self._feedback = model, Feedback()

    def add(self, event: Event, *, is_stopped: bool) -> None:
        """Take an event of the sub-agent. Ending with the turn of the main agent says nothing of its model; being stopped by name does."""
        if isinstance(event, TurnFinished) and event.reason == "interrupted" and not is_stopped:
            return
        self._feedback.add(event)

    async def end(self) -> None:
        """Note what the task showed; that counts from now on."""
        self._model.end()
        self._feedback.close()
        await self._model.routing.note_feedback(self._feedback)


#: The end of what a check printed says why it failed; so many characters of it are told.
_TAIL = 4_000


def cascade(
    model: RoutedModel, settings: CascadeSettings, environment: ToolEnvironment
) -> CascadeGuard:
    """Return the guard that checks the work of a routed model."""
    return CascadeGuard(model, settings, lambda: run_check(settings, environment))


async def run_check(settings: CascadeSettings, environment: ToolEnvironment) -> Checked | None:
    """Run the check in an environment; None where it may not be run. Nobody is asked: the person's own settings name the command."""
    from ybs.tools.builtin.run_shell import RunShell, RunShellArguments

    if environment.permissions.is_dry_run or environment.policy.mode == "plan":
        return None
    if environment.policy.blocked(settings.check):
        return None
    shell = RunShell(environment.workspace)
    arguments = RunShellArguments(command=settings.check, timeout=settings.timeout_seconds)
    try:
        shell.preview(arguments)
        ran = await shell.run(arguments, lambda _text: None)
    except ToolError as error:
        return Checked(is_good=False, output=str(error))
    return Checked(is_good=not ran.is_error, output=ran.output[-_TAIL:])
