"""Routing: what the routed models of one session share: arms, pools, what was learned, and the models themselves."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from time import monotonic, time
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.core.errors import YbsError
from ybs.core.messages import Usage
from ybs.providers.registry import ProviderModel, create_model
from ybs.router.bandit import Arm, HierarchicalThompson, Thompson
from ybs.router.classifier import (
    TASK_KINDS,
    Features,
    ModelClassifier,
    TaskKind,
    chosen_classifier,
)
from ybs.router.database import Database
from ybs.router.feedback import CHECKED, Feedback
from ybs.router.pools import ArmAnswer, Estimate, Pools, Reservation, Shortage, Typical
from ybs.router.roster import Roster
from ybs.router.selection import Breaker, Decision, Router, Situation
from ybs.router.store import DecisionStore, Settled, Signal, StoredDecision, Told

#: The file, in the state folder.
FILE: Final = "router.sqlite3"
#: A model whose version changed keeps this share of what was learned of it.
TRUST_IN_NEW: Final = 0.5
#: A provider forgets a prompt that was not sent for so long, in seconds.
CACHE_SECONDS: Final = 300.0
OTHER: Final[TaskKind] = "other"


def database_file(host: Host) -> Path:
    """Return where the router keeps its decisions."""
    return host.state_folder / FILE


class Clocks(Struct, frozen=True, kw_only=True):
    """The time of day in seconds since 1970, a clock that never goes back, and a way to wait."""

    now: Callable[[], float] = time
    steady: Callable[[], float] = monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Answered(Struct, frozen=True, kw_only=True):
    """Who answered a request, at which kind of task (empty: in no turn), and in how many seconds (0: not to its end)."""

    arm: Arm
    kind: str = ""
    seconds: float = 0.0


class Routing:
    """Made once for a session; nothing is opened before the first choice.

    In incognito what was learned is read and nothing is added, and limits of pools are counted in memory.
    What goes wrong with the file stands in `warnings`, and routing goes on.
    """

    def __init__(
        self,
        host: Host,
        config: Config,
        roster: Roster,
        *,
        profile: str = "",
        clocks: Clocks | None = None,
    ) -> None:
        self.roster, self.config, self._host = roster, config, host
        self.arms = {arm.name: arm for arm in roster.arms}
        self.clocks = clocks or Clocks()
        self._profile, self._may_write = profile, not config.incognito.enabled
        self.breaker = Breaker(self.clocks.steady)
        #: What was learned, as far as this process has read it.
        self.learner = _learner(config.router.policy)
        self._router = Router(
            self.learner,
            breaker=self.breaker,
            rng=Random(config.router.seed),  # noqa: S311 - draws chances, guards nothing
            make_id=lambda: os.urandom(4).hex(),
        )
        #: The models of arms by name, made when they are needed; a program may put in its own.
        self.models: dict[str, ProviderModel] = {}
        self._database: Database | None = None
        self._opening = asyncio.Lock()
        self._learned_up_to = 0
        self._known: set[str] = set()
        #: What the person should be told: problems with the settings and the file.
        self.warnings: list[str] = list(roster.problems)
        self._classifier = chosen_classifier(host, config, self._made, self.warnings.append)
        #: What was seen of the turns of the main agent.
        self.feedback = Feedback()
        #: The last choice, for who asks.
        self.last: Decision | None = None

    # Models

    def model_of(self, arm: Arm) -> ProviderModel:
        """Return the model of an arm, made when it is first needed. Raises ConfigError, and AuthError where a key is missing."""
        if arm.name not in self.models:
            self.models[arm.name] = self._made(arm.provider, arm.model)
        return self.models[arm.name]

    def _made(self, provider: str, model: str, max_tokens: int = 0) -> ProviderModel:
        # Who can ask another model does not wait for this one; the routed model itself repeats.
        config = replace(self.config, agent=replace(self.config.agent, retry_attempts=0))
        if max_tokens:
            config = replace(config, llm=replace(config.llm, max_tokens=max_tokens))
        return create_model(
            self._host, config, provider=provider, model=model or None, is_persons=True
        )

    @property
    def shows_words(self) -> bool:
        """Whether a model reads the words of requests to sort them: secrets are to be masked before."""
        return isinstance(self._classifier, ModelClassifier)

    async def aclose(self) -> None:
        """Close all models and the file."""
        for model in self.models.values():
            await model.aclose()
        self.models.clear()
        await self._classifier.aclose()
        if self._database is not None:
            await asyncio.to_thread(self._database.close)
            self._database = None

    # Choosing

    async def explain(self, decision: str = "") -> Told | None:
        """Return what is known of a decision by the beginning of its id; of the newest for an empty one."""
        _, store = await self.opened()
        return await asyncio.to_thread(lambda: store.find(decision))

    async def choose(
        self,
        features: Features,
        *,
        current: str = "",
        cached_tokens: int = 0,
        excluded: frozenset[str] = frozenset(),
        beside: frozenset[str] = frozenset(),
    ) -> Decision:
        """Choose an arm for a turn, and write the choice down. The arm is None where none is suitable now.

        It is none of those `excluded`, and none of those that are to work `beside` it, for which its pool must have room too.
        """
        kind = await self._classifier.classify(features)
        await self.catch_up()
        pools, _ = await self.opened()
        names = self.roster.pools
        wanted = [(names[name], self._wanted(name, beside, features.tokens)) for name in self.arms]
        short, pressure, usual = await asyncio.to_thread(
            lambda: (
                pools.shortages(wanted),
                {name: pools.pressure(names[name]) for name in self.arms},
                pools.typical(self.arms, kind),
            )
        )
        arms = [self._as_seen(arm, usual[arm.name]) for arm in self.arms.values()]
        situation = Situation(
            current=current,
            cached_tokens=cached_tokens,
            pressure=pressure,
            empty=frozenset(a.name for a, why in zip(arms, short, strict=True) if why is not None),
            excluded=excluded | beside,
            only_local=self.config.incognito.only_here,
        )
        decision = self._router.choose(features, kind, arms, situation)
        if decision.arm is not None:
            self.last = decision
            await self._write_down(decision)
        return decision

    def _wanted(self, name: str, beside: frozenset[str], tokens: int) -> Estimate:
        """Return what an arm takes of its pool, with those beside it that draw on the same one."""
        pool = self.roster.pools[name]
        others = [each for each in beside - {name} if self.roster.pools[each] == pool]
        wanted = [self.estimate(self.arms[each], tokens) for each in (name, *others)]
        return sum(wanted[1:], wanted[0])

    def _as_seen(self, arm: Arm, usual: Typical) -> Arm:
        """Return the arm with the window that its server has told, and what its answers are expected to be."""
        model = self.models.get(arm.name)
        window = model.window if model is not None else arm.window
        return replace(arm, window=window, seconds=usual.seconds, answer_tokens=usual.tokens)

    def estimate(self, arm: Arm, tokens: int) -> Estimate:
        """Return the most that a request of so many tokens may use."""
        model = self.models.get(arm.name)
        answer = model.max_tokens if model is not None else self.config.llm.max_tokens
        usd = arm.cost_usd(tokens, 0, answer) or 0.0
        return Estimate(tokens=tokens + answer, usd=usd)

    async def _write_down(self, decision: Decision) -> None:
        arm = self.arms[decision.arm or ""]
        made = StoredDecision(
            id=decision.id,
            arm=arm.name,
            kind=decision.kind,
            reason=decision.reason,
            model_version=arm.version,
            considered=tuple(
                (
                    f"{each.arm}: {each.left_out}" if each.left_out else each.arm,
                    round(each.value, 4),
                )
                for each in decision.considered
            ),
        )
        _, store = await self.opened()
        await asyncio.to_thread(lambda: store.add(made))

    # Pools

    async def reserve(self, arm: Arm, tokens: int) -> Reservation | Shortage:
        """Take room in the arm's pool for one request. Who is cancelled meanwhile leaves nothing reserved. Raises YbsError."""
        pools, _ = await self.opened()
        pool, estimate = self.roster.pools[arm.name], self.estimate(arm, tokens)
        work = asyncio.ensure_future(
            asyncio.to_thread(lambda: pools.reserve(pool, arm.name, estimate))
        )
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            lease = await work  # a moment
            if isinstance(lease, Reservation):
                await asyncio.to_thread(lambda: pools.settle(lease, tokens=0, usd=0.0))
            raise

    async def settle(self, lease: Reservation, usage: Usage, answered: Answered) -> None:
        """Put what a request used in place of what was reserved for it, and learn how long whole answers are and take."""
        arm, tokens = answered.arm, usage.input_tokens + usage.output_tokens
        fresh = usage.input_tokens - usage.cached_tokens
        usd = usage.cost_usd
        if usd is None:
            usd = arm.cost_usd(fresh, usage.cached_tokens, usage.output_tokens) or 0.0
        answer = None
        if answered.seconds and answered.kind and usage.output_tokens:
            answer = ArmAnswer(
                arm=arm.name,
                kind=answered.kind,
                tokens=usage.output_tokens,
                seconds=answered.seconds,
            )
        pools, _ = await self.opened()
        await asyncio.to_thread(lambda: pools.settle(lease, tokens=tokens, usd=usd, answer=answer))

    # What came of it

    async def label(self, decision: str, signal: Signal) -> bool:
        """Note a signal of a decision. Return whether it is known and counts."""
        if not self._may_write:
            return False
        _, store = await self.opened()
        return await asyncio.to_thread(lambda: store.label(decision, signal))

    async def settle_decision(self, decision: str) -> None:
        """Have the signals of a decision count from now on."""
        if self._may_write:
            _, store = await self.opened()
            await asyncio.to_thread(lambda: store.settle(decision))

    async def note_feedback(self, feedback: Feedback | None = None) -> None:
        """Write down what was seen of the turns of the main agent, or by another `feedback`."""
        for label in (feedback or self.feedback).take():
            try:
                if label.void:
                    await self.void(label.decision, label.void)
                if label.signal is not None:
                    await self.label(label.decision, label.signal)
                if label.settles:
                    await self.settle_decision(label.decision)
            except YbsError as error:
                self.warnings.append(str(error))

    async def judge(self, *, is_good: bool) -> str:
        """Take the person's word on the last answer; return the decision that it is about, empty where it cannot count."""
        decision = self.feedback.last
        signal = Signal("your word", float(is_good), CHECKED)
        if not decision or not await self.label(decision, signal):
            return ""
        await self.settle_decision(decision)
        return decision

    async def void(self, decision: str, why: str) -> None:
        """Have a decision teach nothing, because it did not come to an answer."""
        _, store = await self.opened()
        await asyncio.to_thread(lambda: store.void(decision, why))

    def fail(self, arm: Arm, error: YbsError) -> None:
        """Let an arm rest that failed on the way; that says nothing of how good it is."""
        asked = getattr(error, "retry_after_seconds", None)
        self.breaker.fail(arm.name, asked)

    async def catch_up(self) -> None:
        """Learn what was settled since, by this process or another one."""
        _, store = await self.opened()
        if self._may_write:
            await asyncio.to_thread(store.settle_old)
        rows = await asyncio.to_thread(lambda: store.settled_since(self._learned_up_to))
        if self.config.router.policy == "heuristic" or not rows:
            return
        if any(row.id in self._known for row in rows):  # a later label changed one
            self.learner = _learner(self.config.router.policy)
            self._router.learn_by(self.learner)
            self._known.clear()
            rows = await asyncio.to_thread(lambda: store.settled_since(0))
        for row in rows:
            self._learn(row)

    def _learn(self, row: Settled) -> None:
        self._learned_up_to = row.number
        self._known.add(row.id)
        arm = self.arms.get(row.arm)
        if arm is None or row.weight <= 0:
            return
        trust = 1.0 if row.model_version == arm.version else TRUST_IN_NEW
        self.learner.learn(_kind(row.kind), arm, row.reward, row.weight * trust)

    # The file

    async def opened(self) -> tuple[Pools, DecisionStore]:
        """Return the pools and the store, whose file is opened once."""
        async with self._opening:
            if self._database is None:
                file, may_write = database_file(self._host), self._may_write
                try:
                    self._database = await asyncio.to_thread(
                        lambda: Database.open(file, may_write=may_write)
                    )
                except YbsError as error:
                    self.warnings.append(str(error))
                    self._database = Database.in_memory()
                if self._database.warning:
                    self.warnings.append(self._database.warning)
                self._pools = Pools(self._database, self.config.router.pools, self.clocks.now)
                self._store = DecisionStore(self._database, self._profile, self.clocks.now)
                await asyncio.to_thread(self._store.tidy)
        return self._pools, self._store


def _kind(name: str) -> TaskKind:
    return name if name in TASK_KINDS else OTHER


def _learner(policy: str) -> Thompson:
    return Thompson() if policy == "discounted" else HierarchicalThompson()
