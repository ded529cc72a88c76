"""The policy: whether a call may run, the person must be asked, or it is refused.

The order is fixed: deny rules, blocked commands, the mode `plan`, the mode `bypass`, rules that ask, then rules and
grants that allow, then what the mode asks about. Paths were judged before, by `Roots`. Where the sandbox can hold a command
to reading, any command runs unasked that way, but for what is known to write, destroys, or goes on in the background; the
person is asked once it was stopped. So a wrong reading of a command costs nothing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.schema import Mode, Safety
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect, Preview, Question
from ybs.security.policy.case import (
    BUILT_IN,
    BY_MODE,
    LASTS,
    NETWORK,
    OUTSIDE,
    Case,
    Sandboxing,
    Subject,
)
from ybs.security.policy.rules import Rule, outside_rules
from ybs.security.policy.standing import Standing, StandingRule
from ybs.trust.project_rules import ProjectRules

_LACKING: Mapping[Sandboxing, str] = {
    "none": "there is no sandbox",
    "reduced": "the sandbox cannot keep a command from writing",
    "off": "the sandbox is off",
}
#: Where a command can be kept from changing or sending anything.
_HOLDING: Collection[Sandboxing] = ("full", "held")

#: What lets a call run. `reading`: nobody was asked, so the command runs with the project read-only and without network.
#: `grant`: a rule or a grant covers it, or the settings ask about no command. `person`: they said yes.
AllowedBy: TypeAlias = Literal["mode", "grant", "person", "reading"]


class Allow(Struct, frozen=True):
    """The call may run, and what lets it.

    `with_network`: the person gave its command the network. `is_outside`: it runs outside the sandbox, as in their own shell.
    """

    by: AllowedBy = "mode"
    with_network: bool = False
    is_outside: bool = False


class Deny(Struct, frozen=True):
    """The call is refused; the model reads why."""

    reason: str


class Ask(Struct, frozen=True):
    """The person decides. `reason` says in one line why; `is_destructive`: something would be gone or public."""

    question: Question
    reason: str
    is_destructive: bool


Decision: TypeAlias = Allow | Deny | Ask


class _Chosen(Struct):
    """The mode that the person chose last; policies of one session have it in common."""

    mode: Mode


class Policy:
    """Mode, rules and grants. `project` has those that are kept for the project; the others live with the session."""

    def __init__(
        self,
        safety: Safety,
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        project: ProjectRules | None = None,
        find_sandbox: Callable[[], Sandboxing] = lambda: "none",
        asks_each_command: bool = False,
    ) -> None:
        """Read the rules. Raises ConfigError for an invalid rule.

        `find_sandbox` says what stands around commands; it is called for each command that is judged. `asks_each_command`: the
        person's own settings name `run_shell` among the tools to ask about, so even one that can change nothing is asked about.
        """
        self._chosen = _Chosen(safety.mode)
        self.find_sandbox = find_sandbox
        self._safety, self._asks_each_command = safety, asks_each_command
        self._outside = outside_rules(safety.outside_sandbox)
        #: The rules and grants in force.
        self.standing = Standing(safety, allow=allow, deny=deny, project=project)

    @property
    def mode(self) -> Mode:
        """What is allowed without asking."""
        return self._chosen.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._chosen.mode = mode

    def elsewhere(self, find_sandbox: Callable[[], Sandboxing]) -> "Policy":
        """Return this policy for commands in another sandbox; mode, rules and grants stay in common."""
        other = copy(self)
        other.find_sandbox = find_sandbox
        return other

    @property
    def sandbox(self) -> Sandboxing:
        """What stands around shell commands."""
        return self.find_sandbox()

    @property
    def grants(self) -> tuple[str, ...]:
        """What "always" stands for: what the person allowed for this session or project."""
        return tuple(sorted(self.standing.grants))

    def grant(self, rule: str, *, is_kept: bool = False) -> None:
        """Allow calls for the rest of this session, or in this project for good; `rule` is the `grant` of a question.

        Raises ConfigError and OSError where it cannot be kept; then it counts for this session.
        """
        from ybs.security.policy.scopes import scopes_in, text_of  # grants are rare

        for each in [text_of([scope]) for scope in scopes_in(rule)] or [rule]:
            self.standing.add(StandingRule("always", each, "project" if is_kept else "session"))

    def tried(
        self,
        *,
        mode: Mode | None = None,
        allow: Sequence[str] = (),
        ask: Sequence[str] = (),
        network: bool = False,
        without_grants: bool = False,
    ) -> "Policy":
        """Return a policy that differs in this alone. Raises ConfigError as the first one.

        `without_grants`: nothing is allowed but by the mode.
        """
        other = copy(self)
        other._chosen = _Chosen(mode or self.mode)
        standing = self.standing.without_grants() if without_grants else self.standing
        other.standing = standing.with_more(allow=allow, ask=ask)
        other._safety = replace(
            self._safety, sandbox_network=network or self._safety.sandbox_network
        )
        return other

    def blocked(self, command: str) -> str:
        """Return the entry of `safety.blocked_commands` that the command matches, or nothing."""
        from ybs.security.commands.dangers import blocked_entry  # only shell calls need it
        from ybs.security.commands.wrappers import read

        return blocked_entry(read(command), self._safety.blocked_commands)

    def decide(
        self, call: ToolCall, effect: Effect, preview: Preview, subject: Subject, *, needs: str = ""
    ) -> Decision:
        """Judge a call. It changes nothing, so it may be asked again.

        `needs`: the command was let run because it seems to read, and this is why that was not enough.
        """
        case = Case(call, effect, preview, subject, self._safety)
        if reason := self._refusal(case):
            return Deny(reason)
        if self.mode == "bypass":
            return Allow(is_outside=case.wants_outside or self._may_leave(case))
        if self.mode == "plan" and case.effect != "read":
            return self._planned(case, needs)
        if case.offers_network and self._granted_by(networked := case.with_network()) == "grant":
            return self._verdict(networked, needs)
        return self._verdict(case, needs)

    def _verdict(self, case: Case, needs: str) -> Decision:
        rule = next((rule for rule in self.standing.ask if case.is_touched_by(rule)), None)
        if rule is None and self._may_leave(case):
            return Allow("grant", is_outside=True)
        if rule is None and (by := self._allowed_by(case, needs)):
            return Allow(by, with_network=case.is_given_network)
        reason = f"the rule {rule.text} in safety.ask says to ask" if rule else self._question(case)
        reason = reason or needs
        if self.mode == "deny":
            return Deny(
                f"The mode is deny: {case.name} would need the person's yes, and nobody is asked. "
                "Go on without it, or say what you would have done."
            )
        grant = "" if rule or case.outside == "needed" else case.offered_grant
        question = case.question(reason, grant, by_rule=rule is not None)
        return Ask(question, reason, bool(case.dangers))

    def _refusal(self, case: Case) -> str:
        for rule, standing in self.standing.deny:
            if case.is_touched_by(rule):
                return (
                    f"The rule {rule.text}{standing.where} forbids this call. "
                    "Find another way, or ask the person."
                )
        if case.blocked:
            return (
                f"The command is blocked ({case.blocked!r} in safety.blocked_commands) and is refused in "
                "every mode. Find another way, or ask the person to run it."
            )
        return ""

    def _planned(self, case: Case, needs: str) -> Decision:
        """Judge what is more than reading in the mode `plan`: a command may look at anything and change nothing."""
        is_ruled = any(case.is_touched_by(rule) for rule in self.standing.ask)
        if not (needs or is_ruled or case.dangers or self._writes(case)) and self._is_held(case):
            return Allow("reading")
        because = f" The command was stopped: {needs}." if needs else ""
        return Deny(
            f"The mode is plan: nothing is changed.{because} "
            "Say what you would do instead; the person can switch the mode."
        )

    def _is_held(self, case: Case) -> bool:
        """Return whether the sandbox can keep this command from changing and sending anything."""
        is_shell = case.command is not None and case.name in BUILT_IN
        is_more = case.wants_network or case.wants_outside
        return is_shell and not is_more and self.sandbox in _HOLDING

    def _writes(self, case: Case) -> str:
        """Say why it is plain beforehand that reading will not be enough; nothing where that is not known."""
        if case.subject.in_background:
            return "it goes on in the background"
        return case.command.writes if case.command is not None else ""

    def _may_leave(self, case: Case) -> bool:
        """Return whether the person's own settings let the command run outside the sandbox, and nothing in it has to be looked at."""
        if not (self._outside and case.command and case.subject.offers_outside):
            return False
        if self.mode == "deny" or case.subject.detail or case.warnings:
            return False
        return case.command.may_leave(self._outside) and not case.subject.find_changed()

    def _question(self, case: Case) -> str:
        """Say why the call is asked about that no rule and no grant covers, or nothing."""
        named = case.name in self._safety.require_confirmation
        if case.effect == "read":
            asks = named and self.mode in ("ask", "deny")
            return f"your settings say to ask about {case.name}" * asks
        warnings = case.dangers if self._runs_held(case) else case.warnings
        if warnings:
            return warnings[0]
        if case.wants_outside:
            return OUTSIDE
        if case.effect == "execute":
            return self._question_about_command(case, is_named=named)
        return self._question_about_file(case, is_named=named)

    def _allowed_by(self, case: Case, needs: str) -> AllowedBy | None:
        """Say what lets the call run without a question, if anything does."""
        if case.wants_outside:
            return None
        by = self._granted_by(case)
        if by is None and not self._question(case):
            by = self._unasked_by(case)
        return None if by == "reading" and needs else by

    def _runs_held(self, case: Case) -> bool:
        """Return whether the command, unless something speaks against it, is to run with the project read-only."""
        if not self._is_held(case) or case.name not in self._safety.require_confirmation:
            return False
        return self.mode != "auto" or self.sandbox == "held"

    def _unasked_by(self, case: Case) -> AllowedBy:
        if case.command is None:
            return "mode"
        if self._runs_held(case):
            return "reading"
        return "mode" if self.mode == "auto" else "grant"

    def _granted_by(self, case: Case) -> AllowedBy | None:
        allow, grants = self.standing.allow, self.standing.grants
        if not allow and not grants:
            return None
        if case.needs_exact_rule and any(case.is_exactly(rule) for rule in allow):
            return "grant"
        if case.withheld and not case.subject.is_own:
            return None
        return self._covered_by(case, () if case.needs_exact_rule else allow, grants)

    def _covered_by(
        self, case: Case, rules: Sequence[Rule], grants: Collection[str]
    ) -> AllowedBy | None:
        if not case.grants.isdisjoint(grants) or any(case.is_allowed_by(rule) for rule in rules):
            return "grant"
        if (scopes := case.scope_grants) and all(scope in grants for scope in scopes):
            return "grant"
        if case.command is None or case.subject.detail or case.wants_network:
            return None
        return "grant" if case.command.is_covered_by(rules, grants) else None

    def _question_about_command(self, case: Case, *, is_named: bool) -> str:
        sandbox = self.sandbox
        runs_in_auto = self.mode == "auto" and sandbox in ("full", "off")
        if case.command is None:
            return case.subject.asks or ("" if runs_in_auto else f"{case.name} runs a program")
        if sandbox not in _HOLDING:
            return "" if runs_in_auto else f"{_LACKING[sandbox]}, so every command is asked about"
        if case.wants_network:
            return NETWORK
        return "" if runs_in_auto else self._question_about_held(case, is_named=is_named)

    def _question_about_held(self, case: Case, *, is_named: bool) -> str:
        """Say why a command is asked about although the sandbox can keep it from changing anything, or nothing."""
        if case.name not in BUILT_IN:
            return f"{case.name} runs a command"
        if self.mode == "deny":
            return case.command.unlisted if case.command else ""
        if self._asks_each_command:
            return "your settings say to ask before each command"
        return self._writes(case) if is_named else ""

    def _question_about_file(self, case: Case, *, is_named: bool) -> str:
        if case.subject.is_own:
            return LASTS
        if self.mode == "auto" or (self.mode == "accept-edits" and case.effect != "delete"):
            return ""
        if case.effect == "edit" and not case.subject.is_seen:
            return "the model has not read this file in this session"
        if case.effect == "edit":
            return BY_MODE if is_named or self._safety.ask_before_edits else ""
        asks = is_named or case.name not in BUILT_IN
        return BY_MODE if asks else ""
