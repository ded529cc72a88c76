"""The policy: whether a call may run, the person must be asked, or it is refused.

Where rules that deny may be missing, whatever would be allowed is asked about. The order is fixed: deny rules, blocked commands, the mode `plan`, the mode `bypass`, rules that ask, then rules and
grants that allow, then what the mode asks about. Paths were judged before, by `Roots`. Where the sandbox can hold a command
to reading, any command runs unasked that way, but for what is known to write, destroys, or goes on in the background, and unless the person's settings ask about
each command, in the mode `plan` as well; the person is asked once it was stopped. Where the sandbox is whole, `auto` asks only about what is seen to destroy or to be run
later. So a wrong reading of a command costs nothing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.schema import Mode, SafetySettings
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect, Preview, Question
from ybs.security.policy.case import (
    BUILT_IN,
    BY_MODE,
    CHANGING,
    LASTS,
    NETWORK,
    OUTSIDE,
    Case,
    Subject,
)
from ybs.security.policy.rules import (
    WHERE,
    PolicyRule,
    PolicyRules,
    Rule,
    outside_rules,
    replaces_nothing,
)
from ybs.trust.project_rules import ProjectRules

#: Those that a rule of a project's own settings may be about.
_IN_PROJECT = BUILT_IN | {"git"}
#: What stands around shell commands. `full`: whatever they do stays in the project. `held`: they can be kept from writing and
#: from the network, but where they may write more is left open. `off`: the person turned it off.
Sandboxing: TypeAlias = Literal["full", "held", "reduced", "none", "off"]
#: Why a command cannot be held to reading: nothing looks at what it tried once the call has ended.
GOES_ON = "it goes on in the background"
_LACKING: Mapping[Sandboxing, str] = {
    "none": "there is no sandbox",
    "reduced": "the sandbox cannot keep a command from writing",
    "off": "the sandbox is off",
}
#: Why each command of an agent that is another program is asked about.
ELSEWHERE = (
    "another agent runs it, with the network, and ybs cannot keep one of its commands from writing"
)
_EACH_COMMAND = "your settings say to ask before each command"
_OPEN_WORD = "A word that is only known when it runs counts as any that the rule names: write what it stands for, and `--` before names. "
_NOT_TRUSTED = "safety.outside_sandbox counts only in a project that you trust"
_NOT_BY_RULE = "safety.outside_sandbox does not count: {}"
#: Where a command can be kept from changing or sending anything.
_HOLDING: tuple[Sandboxing, ...] = ("full", "held")

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
    """The person decides. `reason` says in one line why; `is_destructive`: something would be gone or public.

    `is_held`: a yes is `Allow("reading")`, as no more is allowed there.
    """

    question: Question
    reason: str
    is_destructive: bool
    is_held: bool = False


Decision: TypeAlias = Allow | Deny | Ask


class _Chosen(Struct):
    """The mode that the person chose last, and whether it asks before edits; policies of one session have it in common."""

    mode: Mode
    asks_before_edits: bool


class Policy:
    """Mode, rules and grants. `project` has those that are kept for the project; the others live with the session."""

    def __init__(  # noqa: PLR0913 - what the person set, and what is found out when it is needed
        self,
        safety: SafetySettings,
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        project: ProjectRules | None = None,
        find_sandbox: Callable[[], Sandboxing] = lambda: "none",
        asks_each_command: bool = False,
        trusts_project: Callable[[], bool] = lambda: False,
        chosen: _Chosen | None = None,
        rules: PolicyRules | None = None,
        projects_rules: Collection[str] = (),
    ) -> None:
        """Read the rules, unless `rules` gives them. Raises ConfigError for an invalid rule.

        `find_sandbox` says what stands around commands; it is called for each command that is judged. `asks_each_command`: the
        person's own settings name `run_shell` among the tools to ask about, so even one that can change nothing is asked about.
        `trusts_project` is asked before a command leaves the sandbox unasked: what it does there, the project's own files say.
        `projects_rules` are those that the project's own settings allow by: see `_allowing`.
        """
        self._projects_rules = projects_rules
        self._chosen = chosen or _Chosen(safety.mode, safety.ask_before_edits)
        self.find_sandbox = find_sandbox
        self._safety, self._asks_each_command = safety, asks_each_command
        self._outside, self._trusts_project = outside_rules(safety.outside_sandbox), trusts_project
        #: The rules and grants in force.
        self.rules = rules or PolicyRules(safety, allow=allow, deny=deny, project=project)

    @property
    def mode(self) -> Mode:
        """What is allowed without asking."""
        return self._chosen.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._chosen.mode = mode

    @property
    def asks_before_edits(self) -> bool:
        """Whether the mode `ask` asks before each edit, by the settings or for this session."""
        return self._chosen.asks_before_edits

    @asks_before_edits.setter
    def asks_before_edits(self, asks: bool) -> None:
        self._chosen.asks_before_edits = asks or self._safety.ask_before_edits

    def elsewhere(self, find_sandbox: Callable[[], Sandboxing]) -> "Policy":
        """Return this policy for commands in another sandbox; mode, rules and grants stay in common."""
        return self._again(find_sandbox=find_sandbox)

    def _again(self, **changes: Any) -> "Policy":
        given: dict[str, Any] = {"safety": self._safety, "rules": self.rules}
        given |= {"find_sandbox": self.find_sandbox, "trusts_project": self._trusts_project}
        given |= {"chosen": self._chosen, "asks_each_command": self._asks_each_command}
        given |= {"projects_rules": self._projects_rules}
        return Policy(**{**given, **changes})

    def grant(self, rule: str, *, is_kept: bool = False) -> None:
        """Allow calls for the rest of this session, or in this project for good; `rule` is the `grant` of a question.

        Raises ConfigError and OSError where it cannot be kept; then it counts for this session.
        """
        from ybs.security.policy.command_case import rules_in  # grants are rare

        for each in rules_in(rule) or [rule]:
            self.rules.add(PolicyRule("always", each, "project" if is_kept else "session"))

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
        rules = self.rules.tried(allow, ask, has_grants=not without_grants)
        safety = replace(self._safety, sandbox_network=network or self._safety.sandbox_network)
        chosen = _Chosen(mode or self.mode, self.asks_before_edits)
        return self._again(safety=safety, rules=rules, chosen=chosen)

    def blocked(self, command: str) -> str:
        """Return the entry of `safety.blocked_commands` that the command matches, or nothing."""
        from ybs.security.policy.command_case import CommandCase  # only shell calls need it

        return CommandCase(command, self._safety).blocked

    def decide(
        self, call: ToolCall, effect: Effect, preview: Preview, subject: Subject, *, needs: str = ""
    ) -> Decision:
        """Judge a call. It changes nothing, so it may be asked again.

        `needs`: the command was let run because it seems to read, and this is why that was not enough.
        """
        case = Case(call, effect, preview, subject, self._safety)
        if reason := self._refusal(case):
            return Deny(reason)
        decision = self._by_mode(case, needs)
        if isinstance(decision, Allow) and (missing := self.rules.missing):
            if self.mode == "plan" and case.effect != "read":
                return Deny(missing)
            return self._asked(case, missing, by_rule=True)
        return decision

    def _by_mode(self, case: Case, needs: str) -> Decision:
        if self.mode == "bypass":
            return Allow(is_outside=case.wants_outside or self._why_held(case) == "")
        if self.mode == "plan" and case.effect != "read":
            return self._planned(case, needs)
        if case.offers_network and self._is_granted(networked := case.with_network()):
            case = networked
        return self._verdict(case, needs)

    def _verdict(self, case: Case, needs: str) -> Decision:
        for stored, rule in self.rules.of("ask").items():
            if case.is_touched_by(rule):
                reason = f"the rule {stored.text} in safety.ask says to ask"
                return self._asked(case, reason, by_rule=True)
        held = self._why_held(case)
        if held == "":
            return Allow("grant", is_outside=True)
        if not case.wants_outside and self._is_granted(case):
            return Allow("grant", with_network=case.is_given_network)
        reason = self._question(case) or (needs if self._runs_held(case) else "")
        if reason and held:
            reason = f"{reason}; {held}"
        return self._asked(case, reason) if reason else Allow(self._unasked_by(case))

    def _asked(self, case: Case, reason: str, *, by_rule: bool = False) -> Decision:
        if self.mode == "deny":
            return Deny(
                f"The mode is deny: {case.name} would need the person's yes, and nobody is asked. "
                "Go on without it, or say what you would have done."
            )
        is_edit = case.name in CHANGING and self.mode == "ask" and not self.asks_before_edits
        question = replace(case.question(reason, by_rule=by_rule), offers_asking=is_edit)
        return Ask(question, reason, bool(case.dangers))

    def _refusal(self, case: Case) -> str:
        for stored, rule in self.rules.of("deny").items():
            if case.is_touched_by(rule):
                open_word = "" if replaces_nothing(case.subject.command) else _OPEN_WORD
                return f"The rule {stored.text}{WHERE[stored.origin]} forbids this call. {open_word}Find another way, or ask the person."
        if case.blocked:
            return (
                f"The command is blocked ({case.blocked!r} in safety.blocked_commands) and is refused in "
                "every mode. Find another way, or ask the person to run it."
            )
        return ""

    def _planned(self, case: Case, needs: str) -> Decision:
        """Judge what is more than reading in the mode `plan`: a command may look at anything and change nothing, if need be once the person said yes."""
        is_ruled = any(map(case.is_touched_by, self.rules.of("ask").values()))
        if not (needs or is_ruled or case.foreseen or self._writes(case)) and self._is_held(case):
            is_asked = self._asks_each_command and not self._is_granted(case)
            return self._asked_to_read(case) if is_asked else Allow("reading")
        because = f" The command was stopped: {needs}." if needs else ""
        return Deny(
            f"The mode is plan: nothing is changed.{because} "
            "Say what you would do instead; the person can switch the mode."
        )

    def _asked_to_read(self, case: Case) -> Ask:
        reason = f"{_EACH_COMMAND}; it can only read"
        question = case.question(reason, by_rule=False)
        question = replace(
            question, offers_network=False, needs_network=False, network_grant="", outside=""
        )
        return Ask(question, reason, is_destructive=False, is_held=True)

    def _is_held(self, case: Case) -> bool:
        """Return whether the sandbox can keep this command from changing and sending anything."""
        is_shell = case.command is not None and case.name in BUILT_IN
        is_more = case.wants_network or case.wants_outside or case.subject.is_elsewhere
        return is_shell and not is_more and self.find_sandbox() in _HOLDING

    def _writes(self, case: Case) -> str:
        """Return why it is plain beforehand that reading will not be enough; nothing where that is not known."""
        if case.subject.in_background:
            return GOES_ON
        return case.command.writes if case.command is not None else ""

    def _why_held(self, case: Case) -> str | None:
        """Return why a command that the person's own settings let run outside the sandbox does not; empty where it may, None where they do not name it."""
        if not (self._outside and case.command and case.subject.offers_outside):
            return None
        is_asked = self.mode == "deny" or case.subject.folder or case.warnings
        if is_asked or not case.command.may_leave(self._outside):
            return None
        if not self._trusts_project():
            return _NOT_TRUSTED
        why = case.subject.why_asked()
        return _NOT_BY_RULE.format(why) if why else ""

    def _question(self, case: Case) -> str:
        """Return why the call is asked about that no rule and no grant covers, or nothing."""
        named = case.name in self._safety.require_confirmation
        if case.effect == "read":
            asks = named and self.mode in ("ask", "deny")
            return f"your settings say to ask about {case.name}" if asks else ""
        if warnings := case.foreseen if self._is_bounded(case) else case.warnings:
            return warnings[0]
        if case.wants_outside:
            return OUTSIDE
        if case.effect == "execute":
            return self._question_about_command(case, is_named=named)
        return self._question_about_file(case, is_named=named)

    def _runs_held(self, case: Case) -> bool:
        """Return whether the command, unless something forbids it, is to run with the project read-only."""
        if not self._is_held(case) or case.name not in self._safety.require_confirmation:
            return False
        return self.mode != "auto" or self.find_sandbox() == "held"

    def _is_bounded(self, case: Case) -> bool:
        """Return whether the sandbox bounds the command to reading, or to the project, whatever it does."""
        return self._runs_held(case) or (case.command is not None and self.find_sandbox() == "full")

    def _unasked_by(self, case: Case) -> AllowedBy:
        if case.command is not None and self._runs_held(case):
            return "reading"
        return "mode" if case.command is None or self.mode == "auto" else "grant"

    def _is_granted(self, case: Case) -> bool:
        """Return whether rules or grants cover the call. Where the call has a warning, only a rule for exactly this call covers it."""
        allow, grants = self._allowing(case), self.rules.grants
        if not allow and not grants:
            return False
        warns = bool(case.warnings)
        if warns and any(case.is_exactly(rule) for rule in allow):
            return True
        if case.withheld and not case.subject.is_own:
            return False
        rules, command, place = () if warns else allow, case.command, case.place
        if not grants.isdisjoint(case.grants) or any(map(case.is_allowed_by, rules)):
            return True
        rules = () if place else rules
        return command is not None and command.is_covered_by(rules, grants, case.place_of_scopes)

    def _allowing(self, case: Case) -> list[Rule]:
        """Return the rules that may allow the call: a project's own count for commands and for files of the project, by the tool's full name.

        They count for nothing that destroys, and for no file that other programs run or later sessions read. Nor does a rule of
        anybody's settings for a project's tool whose needs nobody was shown.
        """
        is_more = case.dangers or case.subject.autorun_part or case.subject.is_own
        is_elsewhere = any(path.startswith("/") for path in case.subject.paths)
        is_ordinary = case.name in _IN_PROJECT and not (is_more or is_elsewhere)
        return [
            rule
            for each, rule in self.rules.of("allow").items()
            if each.origin != "settings"
            or (each.text not in self._projects_rules and not case.subject.is_unshown)
            or (is_ordinary and rule.tool == case.name)
        ]

    def _question_about_command(self, case: Case, *, is_named: bool) -> str:
        sandbox = self.find_sandbox()
        runs_in_auto = self.mode == "auto" and sandbox in ("full", "off")
        if case.command is None:
            return case.subject.asks or ("" if runs_in_auto else f"{case.name} runs a program")
        if sandbox not in _HOLDING:
            return "" if runs_in_auto else f"{_LACKING[sandbox]}, so every command is asked about"
        if case.wants_network or runs_in_auto:
            return NETWORK if case.wants_network else ""
        return self._question_about_held(case, is_named=is_named)

    def _question_about_held(self, case: Case, *, is_named: bool) -> str:
        """Return why a command is asked about although the sandbox can keep it from changing anything, or nothing."""
        if case.name not in BUILT_IN:
            return f"{case.name} runs a command"
        if case.subject.is_elsewhere:
            return ELSEWHERE
        if is_named and case.subject.in_background:
            return GOES_ON
        if self.mode == "deny":
            return case.command.unlisted if case.command else ""
        if self._asks_each_command:
            return _EACH_COMMAND
        return self._writes(case) if is_named else ""

    def _question_about_file(self, case: Case, *, is_named: bool) -> str:
        if case.subject.is_own:
            return LASTS
        if self.mode == "auto" or (self.mode == "accept-edits" and case.effect != "delete"):
            return ""
        if case.effect == "edit" and not case.subject.is_seen:
            return "the model has not read this file in this session"
        if case.effect == "edit":
            return BY_MODE if is_named or self.asks_before_edits else ""
        return BY_MODE if is_named or case.name not in BUILT_IN else ""
