"""The rules and grants in force, each with where it comes from: the session, the project, the settings, the start."""

from collections.abc import Sequence
from copy import copy
from typing import Literal, TypeAlias

from msgspec import Struct

from ybs.config.schema import Safety
from ybs.core.errors import ConfigError
from ybs.security.policy.rules import Rule, rule_of
from ybs.trust.project_rules import ProjectRules

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
        self._project = project
        self._is_project_read = False
        self._rules: dict[StandingRule, Rule | None] = {}
        for text in safety.allow:
            self._put(StandingRule("allow", text, "settings"))
        for text in allow:
            self._put(StandingRule("allow", text, "start"))
        for text in safety.ask:
            self._put(StandingRule("ask", text, "settings"))
        for text in deny:
            self._put(StandingRule("deny", text, "start"))
        for text in safety.deny:
            self._put(StandingRule("deny", text, "settings"))
        self._sort()

    @property
    def allow(self) -> list[Rule]:
        """The rules that allow."""
        return self._read_project()._allow

    @property
    def ask(self) -> list[Rule]:
        """The rules that ask, whatever allows."""
        return self._ask

    @property
    def deny(self) -> list[tuple[Rule, StandingRule]]:
        """The rules that deny."""
        return self._read_project()._deny

    @property
    def grants(self) -> set[str]:
        """What "always" has stored."""
        return self._read_project()._grants

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
        self._put(rule)
        try:
            if rule.origin == "project" and self._project is not None:
                self._project.add(_kept_as(rule.kind), rule.text)
        finally:
            self._sort()

    def remove(self, rule: StandingRule) -> None:
        """Forget a rule, for good where it was kept. Raises ConfigError and OSError."""
        if rule.origin == "project" and self._project is not None:
            self._project.remove(_kept_as(rule.kind), rule.text)
        self._rules.pop(rule, None)
        self._sort()

    def with_more(self, *, allow: Sequence[str], ask: Sequence[str]) -> "Standing":
        """Return these rules and a few more. Raises ConfigError."""
        other = copy(self._read_project())
        other._rules = dict(self._rules)
        for text in allow:
            other._put(StandingRule("allow", text, "start"))
        for text in ask:
            other._put(StandingRule("ask", text, "start"))
        other._sort()
        return other

    def without_grants(self) -> "Standing":
        """Return those of these rules that ask or deny."""
        other = copy(self._read_project())
        other._rules = {k: v for k, v in self._rules.items() if k.kind in ("ask", "deny")}
        other._sort()
        return other

    def _put(self, rule: StandingRule) -> None:
        self._rules[rule] = None if rule.kind == "always" else rule_of(rule.text)

    def _sort(self) -> None:
        made = [(key, rule) for key, rule in self._rules.items() if rule is not None]
        self._allow = [rule for key, rule in made if key.kind == "allow"]
        self._ask = [rule for key, rule in made if key.kind == "ask"]
        self._deny = [(rule, key) for key, rule in made if key.kind == "deny"]
        self._grants = {rule.text for rule in self._rules if rule.kind == "always"}

    def _read_project(self) -> "Standing":
        """Read what is kept for the project, the first time."""
        if self._project is not None and not self._is_project_read:
            self._is_project_read = True
            self._take_kept(self._project)
            self._sort()
        return self

    def _take_kept(self, project: ProjectRules) -> None:
        kinds: list[RuleKind] = ["always", "allow", "deny"]
        for kind in kinds:
            for text in getattr(project.record, _kept_as(kind)):
                try:
                    self._put(StandingRule(kind, text, "project"))
                except ConfigError as error:
                    project.warning = f"A rule that is kept for this project is ignored: {error}"


def _kept_as(kind: RuleKind) -> Literal["grants", "allow", "deny"]:
    match kind:
        case "always":
            return "grants"
        case "allow" | "deny":
            return kind
        case _:
            raise ConfigError("Only what is allowed or denied can be kept for a project.")
