"""The rules and grants in force, each with where it comes from: the session, the project, the settings, the start."""

from collections.abc import Sequence
from copy import copy
from typing import Literal, TypeAlias

from msgspec import Struct

from ybs.config.schema import Safety
from ybs.core.errors import ConfigError
from ybs.security.policy.rules import Rule, rule_of
from ybs.trust.project_rules import KeptKind, ProjectRules

#: `always` is what that answer stored, which is narrower than a rule that reads alike.
RuleKind: TypeAlias = Literal["allow", "ask", "deny", "always"]
#: `start`: an option of the command line. `project`: kept by ybs for this project. `settings`: a configuration file.
RuleOrigin: TypeAlias = Literal["start", "settings", "project", "session"]
_WHERE = {
    "start": " given at the start",
    "settings": " of safety.deny",
    "project": " kept for this project",
    "session": " of this session",
}
_KEPT_AS: dict[RuleKind, KeptKind] = {"always": "grants", "allow": "allow", "deny": "deny"}


class StandingRule(Struct, frozen=True):
    """One rule or grant in force."""

    kind: RuleKind
    text: str
    origin: RuleOrigin

    @property
    def where(self) -> str:
        """The origin, as it stands behind the rule in a sentence."""
        return _WHERE[self.origin]


class Standing:
    """All rules of one session. Raises ConfigError for a rule of the start or the settings that makes no sense."""

    def __init__(
        self,
        safety: Safety,
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        project: ProjectRules | None = None,
    ) -> None:
        self._project, self._is_project_read = project, False
        self._rules: dict[StandingRule, Rule | None] = {}
        self._put("allow", "settings", safety.allow)
        self._put("allow", "start", allow)
        self._put("ask", "settings", safety.ask)
        self._put("deny", "start", deny)
        self._put("deny", "settings", safety.deny)

    def _of(self, kind: RuleKind) -> list[tuple[Rule, StandingRule]]:
        self._read_project()
        rules = self._rules.items()
        return [(rule, key) for key, rule in rules if key.kind == kind and rule is not None]

    @property
    def allow(self) -> list[Rule]:
        """The rules that allow."""
        return [rule for rule, _ in self._of("allow")]

    @property
    def ask(self) -> list[Rule]:
        """The rules that ask, whatever allows."""
        return [rule for rule, _ in self._of("ask")]

    @property
    def deny(self) -> list[tuple[Rule, StandingRule]]:
        """The rules that deny."""
        return self._of("deny")

    @property
    def grants(self) -> set[str]:
        """What "always" has stored."""
        self._read_project()
        return {rule.text for rule in self._rules if rule.kind == "always"}

    @property
    def listed(self) -> list[StandingRule]:
        """All of them: those of the session first."""
        self._read_project()
        order: list[RuleOrigin] = ["session", "project", "start", "settings"]
        return sorted(self._rules, key=lambda rule: order.index(rule.origin))

    @property
    def can_keep(self) -> bool:
        """Whether something can be kept for the project."""
        return self._project is not None and self._project.may_write

    @property
    def warning(self) -> str:
        """Why what is kept for the project is ignored, once it was needed; empty where it is not."""
        return self._project.warning if self._project is not None else ""

    def add(self, rule: StandingRule) -> None:
        """Have one more rule; one of the project is kept. Raises ConfigError and OSError."""
        self._put(rule.kind, rule.origin, (rule.text,))
        if rule.origin == "project" and self._project is not None:
            self._project.add(_kept_as(rule.kind), rule.text)

    def remove(self, rule: StandingRule) -> None:
        """Forget a rule, for good where it was kept. Raises ConfigError and OSError."""
        if rule.origin == "project" and self._project is not None:
            self._project.remove(_kept_as(rule.kind), rule.text)
        self._rules.pop(rule, None)

    def tried(self, allow: Sequence[str], ask: Sequence[str], *, has_grants: bool) -> "Standing":
        """Return these rules and a few more; without `has_grants` those alone that ask or deny. Raises ConfigError."""
        self._read_project()
        other = copy(self)
        rules = self._rules.items()
        other._rules = {k: v for k, v in rules if has_grants or k.kind in ("ask", "deny")}
        other._put("allow", "start", allow)
        other._put("ask", "start", ask)
        return other

    def _put(self, kind: RuleKind, origin: RuleOrigin, texts: Sequence[str]) -> None:
        for text in texts:
            rule = None if kind == "always" else rule_of(text)
            self._rules[StandingRule(kind, text, origin)] = rule

    def _read_project(self) -> None:
        """Read what is kept for the project, the first time."""
        if self._project is None or self._is_project_read:
            return
        self._is_project_read = True
        for kind, name in _KEPT_AS.items():
            for text in getattr(self._project.record, name):
                try:
                    self._put(kind, "project", (text,))
                except ConfigError as error:
                    warning = f"A rule that is kept for this project is ignored: {error}"
                    self._project.warning = warning


def _kept_as(kind: RuleKind) -> KeptKind:
    if kind not in _KEPT_AS:
        raise ConfigError("Only what is allowed or denied can be kept for a project.")
    return _KEPT_AS[kind]
