"""A sub-agent that is another agent: its program runs as long as its task takes, and ybs is the client that it talks with."""

import asyncio
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ybs.agent.environment import ToolEnvironment
from ybs.conductor.acp.presets import PRESETS, method_of, problem_with, title_of
from ybs.conductor.home import Home, Workplace
from ybs.conductor.models import ChosenModel
from ybs.conductor.sub_agent import PART, SubAgent, narrowed
from ybs.config.sections import AcpAgent
from ybs.core.errors import ToolError
from ybs.core.events import Emit, UserSaid
from ybs.core.to_its_end import to_its_end
from ybs.guards.limits import TurnDeadline

if TYPE_CHECKING:
    from ybs.conductor.acp.program import AcpTransport
    from ybs.core.events import TurnFinished

_INCOGNITO: Final = "it keeps records of its own and its model may be anywhere, so it is not used in incognito or where only models on this machine may be used"
_NOT_TRUSTED: Final = (
    "it goes by the project's own settings and runs what they name, with its login and the network, so it works only in a "
    "project that the person trusts"
)
_NOT_HELD: Final = "it is to read only, and nothing but the sandbox could keep it from writing, which is off for it"
_DRY_RUN: Final = "this is a dry run, and what it does cannot be held back"


class AcpSubAgent(SubAgent):
    """A sub-agent of a kind with `acp`."""

    _deadline: TurnDeadline | None = None

    def paused(self) -> AbstractContextManager[None]:
        """Stop its clock, as long as the person is asked."""
        return nullcontext() if self._deadline is None else self._deadline.paused()

    async def _work(
        self, home: Home, place: Workplace, chosen: ChosenModel | None, tell: Emit
    ) -> None:
        del chosen  # it has a model of its own
        agent = self.kind.acp
        assert agent is not None  # noqa: S101 - who makes one has looked
        await asyncio.to_thread(_check, agent, place.environment)
        own = narrowed(place.environment, self.kind, self.task, self.budget)
        words = await self._words(home, own)
        told = "\n\n".join(filter(None, (PART, self.kind.prompt, words.text)))
        tell(UserSaid(content=words.text))
        deadline = self._deadline = TurnDeadline(self.budget.seconds or inf)
        try:
            with deadline.running():
                async with deadline.timeout():
                    masked = own.mask(told, f"the task of {self.name}")
                    await self._talk(home, replace(place, environment=own), masked, tell)
        except TimeoutError as error:
            raise ToolError(
                f"it did not come to its end within the {deadline.max_seconds:g} s that it has"
            ) from error
        finally:
            self._deadline = None
            await to_its_end(own.workspace.shells.aclose())

    async def _talk(self, home: Home, place: Workplace, words: str, tell: Emit) -> "TurnFinished":
        own, agent = place.environment, self.kind.acp
        assert agent is not None  # noqa: S101 - as above
        program = await asyncio.to_thread(import_module, "ybs.conductor.acp.program")
        client = await asyncio.to_thread(import_module, "ybs.conductor.acp.client")
        requests = await asyncio.to_thread(import_module, "ybs.conductor.acp.requests")
        held = is_held(agent, own)
        transport: AcpTransport = program.AcpTransport(
            lambda: program.launched(self.kind.name, agent, own, is_held=held),
            own.workspace.shells.watch,
        )
        is_done = False
        try:
            await transport.open()
            asked = requests.Requests(self.name, place, home.call_ids, tell, agent, is_held=held)
            title, model = title_of(agent), agent.model
            turn = client.AcpTurn(title, transport, asked, self.budget, tell, model=model)
            end = await turn.run(str(own.folder), words, method_of(agent, own.host))
            is_done = end.reason == "done"
            return end
        except client.NotLoggedIn as error:
            raise ToolError(
                f"{title_of(agent)} is not logged in: {str(error).rstrip('.')}{_login_of(agent)}"
            ) from error
        except OSError as error:
            raise ToolError(f"it cannot be started: {error.strerror or error}") from error
        finally:
            await to_its_end(transport.stop(is_hurried=not is_done))


def _check(agent: AcpAgent, environment: ToolEnvironment) -> None:
    """Raise ToolError where an agent may not work here, or cannot."""
    if environment.permissions.is_dry_run:
        raise ToolError(_DRY_RUN)
    if not environment.incognito.allows_agents:
        raise ToolError(_INCOGNITO)
    if not environment.trusts_project:
        raise ToolError(_NOT_TRUSTED)
    if agent.read_only and not is_held(agent, environment):
        raise ToolError(_NOT_HELD)
    if problem := problem_with(agent, environment.host):
        raise ToolError(problem)


def is_held(agent: AcpAgent, own: ToolEnvironment) -> bool:
    """Return whether the sandbox is to stand around the agent."""
    return agent.sandbox and not own.sandbox.is_off


def _login_of(agent: AcpAgent) -> str:
    return "" if agent.preset is None else f"; {PRESETS[agent.preset].login_fix}"
