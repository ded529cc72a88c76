"""What a learner knows, as plain numbers that are added up: cells by kind and arm, shifts of arms and of kinds.

Numbers fade as evidence comes in. Each remembers the step that it was last written at, and is faded from there when it is
read, so that learning touches three rows and not all; two processes that add their increments to one state lose nothing.
"""

from msgspec import Struct, field


class Cell(Struct):
    """Weighed successes and failures of an arm at one kind of task, as they were at that kind's step `at`."""

    s: float = 0.0
    f: float = 0.0
    at: float = 0.0


class Shift(Struct):
    """How far results lie from the prior, in logits: the sum `e` over the weight `v`, as they were at the step `at`."""

    e: float = 0.0
    v: float = 0.0
    at: float = 0.0


class Increment(Struct, frozen=True, kw_only=True):
    """What one result adds to a state: to a cell, to its arm's shift, and to its kind's (`te`, `tv`)."""

    kind: str
    arm: str
    weight: float = 1.0
    s: float = 0.0
    f: float = 0.0
    e: float = 0.0
    v: float = 0.0
    te: float = 0.0
    tv: float = 0.0


class Learned(Struct, kw_only=True):
    """All that a learner knows. A step is one result of full weight: `steps` counts all, `kind_steps` those of a kind."""

    gamma: float = 0.995
    steps: float = 0.0
    kind_steps: dict[str, float] = field(default_factory=dict)
    cells: dict[str, dict[str, Cell]] = field(default_factory=dict)
    arms: dict[str, Shift] = field(default_factory=dict)
    kinds: dict[str, Shift] = field(default_factory=dict)

    def add(self, increment: Increment) -> None:
        """Take a increment in: the steps advance by its weight, older numbers fade, its own are added."""
        kind, arm = increment.kind, increment.arm
        self.steps += increment.weight
        step = self.kind_steps[kind] = self.kind_steps.get(kind, 0.0) + increment.weight
        cell = self.cells.setdefault(kind, {}).setdefault(arm, Cell(at=step))
        kept = self.gamma ** (step - cell.at)
        cell.s, cell.f, cell.at = cell.s * kept + increment.s, cell.f * kept + increment.f, step
        self._shift(self.arms, arm, increment.e, increment.v)
        self._shift(self.kinds, kind, increment.te, increment.tv)

    def counts(self, kind: str, arm: str) -> tuple[float, float]:
        """Return successes and failures, faded to now."""
        cell = self.cells.get(kind, {}).get(arm)
        if cell is None:
            return 0.0, 0.0
        kept = self.gamma ** (self.kind_steps[kind] - cell.at)
        return cell.s * kept, cell.f * kept

    def arm_shift(self, arm: str) -> tuple[float, float]:
        """Return the sum and the weight of an arm's shift, faded to now."""
        return self._faded(self.arms.get(arm))

    def kind_shift(self, kind: str) -> tuple[float, float]:
        """Return the sum and the weight of a kind's shift, faded to now."""
        return self._faded(self.kinds.get(kind))

    def _shift(self, shifts: dict[str, Shift], name: str, e: float, v: float) -> None:
        shift = shifts.setdefault(name, Shift(at=self.steps))
        kept = self.gamma ** (self.steps - shift.at)
        shift.e, shift.v, shift.at = shift.e * kept + e, shift.v * kept + v, self.steps

    def _faded(self, shift: Shift | None) -> tuple[float, float]:
        if shift is None:
            return 0.0, 0.0
        kept = self.gamma ** (self.steps - shift.at)
        return shift.e * kept, shift.v * kept
