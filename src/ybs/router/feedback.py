"""Feedback: what ybs can see by itself of how well a turn went, as signals of the decision that it was answered by.

Weights and values are those of field notes on bandits with delayed labels: a test that passes says more than silence.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from ybs.core import events
from ybs.core.events import Event
from ybs.router.store import Signal

#: Tests, builds and linters that ran after the last edit; the person's own word.
CHECKED: Final = 1.0
#: What was changed was kept, or taken back.
KEPT: Final = 0.7
#: The same was asked for again.
REPHRASED: Final = 0.6
#: Calls that could not be run, edits that were refused, a turn that was stopped, a command of the person's that they had to correct.
STUMBLED: Final = 0.4
#: After so many more turns nothing is expected to be said of a turn any more.
TURNS_WAITED: Final = 2
_EDITS: Final = frozenset(("edit_file", "write_file", "delete_file"))
_INVALID: Final = re.compile(r"The arguments of |There is no tool |.{1,80} is not an argument of ")
_CHECK: Final = re.compile(
    r"(?:^|[;&|(/\s])(?:pytest|tox|nox|jest|vitest|mocha|phpunit|rspec|ctest|ruff|flake8|pylint|mypy|pyright|basedpyright"
    r"|tsc|eslint|clippy|golangci-lint|unittest|rubocop|phpstan)\b"
    r"|\b(?:make|just|task|npm|npm run|pnpm|pnpm run|yarn|bun|cargo|go|dotnet|swift|zig|mix|gradle|gradlew|mvn|rake|composer)"
    r"\s+(?:-\S+\s+)*(?:test|tests|check|lint|build|vet|verify|compile|typecheck)\b"
)
_AGAIN: Final = re.compile(
    r"^\W*(?:no\b[,.! ]|wrong\b|that(?:'s| is) (?:wrong|not)|not what|still\b|it still|does(?:n'?t| not) work|try again|again\b"
    r"|you (?:did not|didn't|forgot|missed|broke)|undo (?:this|that)|revert\b)",
    re.IGNORECASE,
)
#: Two prompts with so large a share of words in common ask for the same.
_SAME_SHARE: Final = 0.6
_FEWEST_WORDS: Final = 3


class TurnSignals(Struct, kw_only=True):
    """What was seen of one turn. `check` is how the last test, build or linter after the last edit ended.

    `is_of_command`: it is one of the person's commands, which went well before; `is_corrected`: they said more while it ran.
    """

    decision: str
    words: str = ""
    calls: int = 0
    invalid: int = 0
    refused_edits: int = 0
    edits: int = 0
    check: bool | None = None
    checkpoints: list[str] = field(default_factory=list)
    was_taken_back: bool = False
    is_of_command: bool = False
    is_corrected: bool = False
    age: int = 0


class Label(Struct, frozen=True):
    """A signal for a decision; with `settles` it is to count from now on."""

    decision: str
    signal: Signal | None
    settles: bool = False
    void: str = ""


class Feedback:
    """Watches the events of a session's main agent. What it has seen is taken with `take`."""

    def __init__(self) -> None:
        self._now: TurnSignals | None = None
        self._past: list[TurnSignals] = []
        self._labels: list[Label] = []
        self._words = ""
        self._commands: dict[str, str] = {}
        self._ended: events.TurnFinished | None = None
        self._credited = ""
        self._is_of_command = False

    @property
    def last(self) -> str:
        """The decision that did the work of the running turn, or else of the last one; empty before the first."""
        if self._credited:
            return self._credited
        if self._now is not None:
            return self._now.decision
        return self._past[-1].decision if self._past else ""

    @property
    def has_edits(self) -> bool:
        """Whether the running turn has changed files, as far as the model that answers now is concerned."""
        return self._now is not None and self._now.edits > 0

    def expect_command(self) -> None:
        """Note that the next turn is one of the person's commands."""
        self._is_of_command = True

    def begin(self, words: str) -> None:
        """Note that a turn begins with the person's words."""
        self._words, self._ended, self._now, self._credited = words, None, None, ""
        self._commands.clear()
        for each in self._past:
            if each.age < TURNS_WAITED and asks_again(words, each.words):
                self._say(each, Signal("asked again", 0.0, REPHRASED))
                break

    def credit(self, decision: str) -> None:
        """Note that what this turn changes is the work of another decision, which the person's word is about, too."""
        self._credited = decision

    def end(self) -> None:
        """Say what the turn showed, which is over, and settle what waited long enough."""
        now, self._now, self._is_of_command = self._now, None, False
        for each in self._past:
            each.age += 1
        if now is not None:
            self._conclude(now)
            self._past.append(now)
        for each in [each for each in self._past if each.age >= TURNS_WAITED]:
            self._settle(each)

    def close(self) -> None:
        """Settle all turns: the session ends, and nothing more will be said of them."""
        self.end()
        for each in list(self._past):
            self._settle(each)

    def take(self) -> list[Label]:
        """Return what was seen since the last time."""
        labels, self._labels = self._labels, []
        return labels

    def add(self, event: Event) -> None:
        """Take an event."""
        match event:
            case events.RequestStarted() if event.decision:
                self._now = self._continued(event.decision)
            case events.ToolStarted(name="run_shell"):
                self._commands[event.id] = _command_in(event)
            case events.ToolFinished():
                self._look_at(event)
            case events.TurnFinished():
                self._ended = event
            case events.UserSaid(origin="person") if self._now is not None:
                self._now.is_corrected = True
            case events.FilesChanged() | events.FilesRestored() | events.Rewound():
                self._look_at_past(event)
            case _:
                pass

    def _look_at_past(
        self, event: events.FilesChanged | events.FilesRestored | events.Rewound
    ) -> None:
        """Note which turn changed files, which may be told when it is over, and which ones were taken back."""
        recent = self._now or (self._past[-1] if self._past else None)
        if recent is None:
            return
        match event:
            case events.FilesChanged() if not self._credited:
                recent.checkpoints.append(event.checkpoint)
            case events.FilesRestored():
                for each in self._past:
                    if not set(each.checkpoints).isdisjoint(event.checkpoints):
                        self._take_back(each, is_undone=not event.is_redo)
            case events.Rewound():
                if event.keeps and self._now is None:
                    self._take_back(recent)
            case _:
                pass

    def _continued(self, decision: str) -> TurnSignals:
        """Return the outcome of another decision in the same turn: what came before it was not its work."""
        if self._now is not None and self._now.decision == decision:
            return self._now
        return TurnSignals(decision=decision, words=self._words, is_of_command=self._is_of_command)

    def _look_at(self, event: events.ToolFinished) -> None:
        now, command = self._now, self._commands.pop(event.id, "")
        if now is None:
            return
        now.calls += 1
        if event.name in _EDITS:
            if event.success:
                now.edits, now.check = now.edits + 1, None
            elif not _INVALID.match(event.output):
                now.refused_edits += 1
        if not event.success and _INVALID.match(event.output):
            now.invalid += 1
        if command and now.edits and not event.is_refused and _CHECK.search(command):
            now.check = event.success

    def _conclude(self, now: TurnSignals) -> None:
        ended = self._ended
        if ended is None or ended.reason in ("error", "dry_run"):
            self._labels.append(Label(now.decision, None, void="the turn came to no end"))
            return
        for signal in _signals(now, ended):
            self._say(now, signal)
        if now.check is not None:
            self._labels.append(Label(now.decision, None, settles=True))

    def _take_back(self, outcome: TurnSignals, *, is_undone: bool = True) -> None:
        outcome.was_taken_back = is_undone
        self._say(outcome, Signal("kept", float(not is_undone), KEPT))

    def _settle(self, outcome: TurnSignals) -> None:
        self._past.remove(outcome)
        if outcome.checkpoints and not outcome.was_taken_back:
            self._say(outcome, Signal("kept", 1.0, KEPT))
        self._labels.append(Label(outcome.decision, None, settles=True))

    def _say(self, outcome: TurnSignals, signal: Signal) -> None:
        self._labels.append(Label(outcome.decision, signal))


def _signals(now: TurnSignals, ended: events.TurnFinished) -> Iterator[Signal]:
    if now.check is not None:
        yield Signal("checked", float(now.check), CHECKED)
    if now.invalid:
        yield Signal("invalid calls", 1 - now.invalid / now.calls, STUMBLED)
    if now.refused_edits:
        share = now.refused_edits / (now.refused_edits + now.edits)
        yield Signal("refused edits", 1 - share, STUMBLED)
    if now.is_of_command:
        yield Signal("as before", float(not now.is_corrected), STUMBLED)
    if ended.reason == "interrupted":
        yield Signal("cancelled", 0.0, STUMBLED)
    if ended.reason in ("loop", "limit"):
        yield Signal(ended.reason, 0.0, STUMBLED)


def asks_again(words: str, before: str) -> bool:
    """Return whether a prompt says that the one before was not answered well, or asks for the same in other words."""
    if not words.strip() or words.startswith(("!", "/")):
        return False
    if _AGAIN.match(words):
        return True
    new, old = (set(re.findall(r"\w+", each.lower())) for each in (words, before))
    if min(len(new), len(old)) < _FEWEST_WORDS:
        return new == old and bool(new)
    return len(new & old) / len(new | old) >= _SAME_SHARE


def _command_in(event: events.ToolStarted) -> str:
    try:
        given = msgspec.json.decode(event.arguments, type=dict[str, Any])
    except msgspec.DecodeError:
        return ""
    command = given.get("command", "")
    return command if isinstance(command, str) else ""
