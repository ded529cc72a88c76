"""The policy: whether a call may run, the person must be asked, or it is refused.

The order is fixed: deny rules, blocked commands, the mode `plan`, the mode `bypass`, rules that ask, then rules and
grants that allow, then what the mode asks about. Paths were judged before, by `Roots`. A command that is let run
because it seems to read is held to that by the sandbox, so that a wrong reading costs nothing.
"""

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.schema import Mode, Safety
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect, Preview, Question
from ybs.security.paths.path_text import is_open, spelled
from ybs.security.policy.rules import Rule, rule_of

if TYPE_CHECKING:
    from ybs.security.policy.command_case import CommandCase

_BUILT_IN = frozenset({"write_file", "edit_file", "delete_file", "run_shell"})
#: Tools for which "always" means every file of the project.
_CHANGING = frozenset({"write_file", "edit_file"})
#: The reason that a person need not be told: they see the mode.
BY_MODE = "the mode asks"
#: What stands around shell commands. In all but `full` every command is asked about.
Sandboxing: TypeAlias = Literal["full", "reduced", "none"]
#: Why ybs's own files are asked about in every mode that asks at all.
LASTS = "every later session is told of it"
NETWORK = "it wants the network: whatever it can read could be sent away"


class Subject(Struct, frozen=True, kw_only=True):
    """What a call is about: the command, or the paths as `Roots.show` writes them.

    `is_seen`: this session has read the file as it is. `runs_later`: a part of the path that other programs
    or later sessions act on by themselves. `detail` tells calls apart that the rest does not (other arguments, the folder).
    `network`: the command would have the network, which is closed otherwise. `only_reads`: this call changes nothing,
    although its tool may. `is_plain`: no text among the arguments is run. `destroys` says what would be gone for good.
    `is_own`: what it changes are ybs's own files, which later sessions read: no mode but `bypass` covers it, no grant, no undo.
    """

    command: str = ""
    paths: tuple[str, ...] = ()
    is_seen: bool = False
    runs_later: str = ""
    detail: str = ""
    network: bool = False
    only_reads: bool = False
    is_plain: bool = False
    destroys: str = ""
    is_own: bool = False


#: What lets a call run. `reading`: nobody was asked because the command seems only to read, so it runs with the
#: project read-only. `grant`: a rule or a grant covers it, or the settings ask about no command. `person`: they said yes.
AllowedBy: TypeAlias = Literal["mode", "grant", "person", "reading"]


class Allow(Struct, frozen=True):
    """The call may run, and what lets it."""

    by: AllowedBy = "mode"


class Deny(Struct, frozen=True):
    """The call is refused; the model reads why."""

    reason: str


class Ask(Struct, frozen=True):
    """The person decides. `reason` says in one line why; `is_destructive`: something would be gone or public."""

    question: Question
    reason: str = ""
    is_destructive: bool = False


Decision: TypeAlias = Allow | Deny | Ask


class Policy:
    """Mode, rules and the grants of this session. Grants live in memory only."""

    def __init__(
        self,
        safety: Safety,
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        find_sandbox: Callable[[], Sandboxing] = lambda: "none",
    ) -> None:
        """Read the rules. Raises ConfigError for a rule that is none.

        `find_sandbox` says what stands around commands; it is called when the first command is judged.
        """
        self.mode: Mode = safety.mode
        self._find_sandbox = find_sandbox
        self._safety = safety
        self._allow = [rule_of(text) for text in (*safety.allow, *allow)]
        self._ask = [rule_of(text) for text in safety.ask]
        self._deny = [(rule_of(text), " given at the start") for text in deny]
        self._deny += [(rule_of(text), " of safety.deny") for text in safety.deny]
        self._grants: set[str] = set()

    @cached_property
    def sandbox(self) -> Sandboxing:
        """What stands around shell commands."""
        return self._find_sandbox()

    @property
    def grants(self) -> tuple[str, ...]:
        """What the person allowed for this session."""
        return tuple(sorted(self._grants))

    def grant(self, rule: str) -> None:
        """Allow calls for the rest of this session; `rule` is the `grant` of a question."""
        from ybs.security.policy.scopes import scopes_in, text_of  # grants are rare

        self._grants.update([text_of([scope]) for scope in scopes_in(rule)] or [rule])

    def tried(self, *, mode: Mode | None, allow: Sequence[str], network: bool) -> "Policy":
        """Return a policy that differs in this alone, to see what it would decide. Raises ConfigError as the first one."""
        other = copy(self)
        other.mode, other._allow = mode or self.mode, [*self._allow, *map(rule_of, allow)]
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
        case = _Case(call, effect, preview, subject, self._safety)
        if reason := self._refusal(case):
            return Deny(reason)
        if self.mode == "bypass":
            return Allow()
        rule = next((rule for rule in self._ask if case.is_touched_by(rule)), None)
        if rule is None and (by := self._allowed_by(case, needs)):
            return Allow(by)
        reason = f"the rule {rule.text} in safety.ask asks" if rule else self._question(case)
        reason = reason or needs
        if self.mode == "deny":
            return Deny(
                f"The mode is deny: {call.name} would need the person's yes, and nobody is asked. "
                "Go on without it, or say what you would have done."
            )
        grant = "" if rule else case.exact_offer if needs else case.offered_grant
        question = case.question(reason, grant, by_rule=rule is not None)
        return Ask(question, reason, bool(case.dangers))

    def _refusal(self, case: "_Case") -> str:
        for rule, where in self._deny:
            if case.is_touched_by(rule):
                return (
                    f"The rule {rule.text}{where} forbids this call. "
                    "Find another way, or ask the person."
                )
        if case.blocked:
            return (
                f"The command is blocked ({case.blocked!r} in safety.blocked_commands) and is refused in "
                "every mode. Find another way, or ask the person to run it."
            )
        if self.mode == "plan" and case.effect != "read":
            return (
                "The mode is plan: only reading is allowed, nothing is changed or run. "
                "Say what you would do instead; the person can switch the mode."
            )
        return ""

    def _question(self, case: "_Case") -> str:
        """Say why the call is asked about that no rule and no grant covers, or nothing."""
        named = case.name in self._safety.require_confirmation
        if case.effect == "read":
            asks = named and self.mode in ("ask", "deny")
            return f"your settings say to ask about {case.name}" * asks
        if warnings := case.warnings:
            return warnings[0]
        if case.effect == "execute":
            return self._question_about_command(case, is_named=named)
        return self._question_about_file(case, is_named=named)

    def _allowed_by(self, case: "_Case", needs: str) -> AllowedBy | None:
        """Say what lets the call run without a question, if anything does."""
        by = self._granted_by(case)
        if by is None and not self._question(case):
            by = self._unasked_by(case)
        return None if by == "reading" and needs else by

    def _unasked_by(self, case: "_Case") -> AllowedBy:
        if case.command is None or self.mode == "auto":
            return "mode"
        is_asked = case.name in self._safety.require_confirmation or case.name not in _BUILT_IN
        return "reading" if is_asked else "grant"

    def _granted_by(self, case: "_Case") -> AllowedBy | None:
        if not self._allow and not self._grants:
            return None
        if case.needs_exact_rule:
            return "grant" if any(case.is_exactly(rule) for rule in self._allow) else None
        if not self._grants.isdisjoint(case.grants) or any(
            case.is_allowed_by(rule) for rule in self._allow
        ):
            return "grant"
        if (scopes := case.scope_grants) and self._grants.issuperset(scopes):
            return "reading" if case.command and case.command.is_reading else "grant"
        if case.command is None or case.subject.detail or case.wants_network:
            return None
        # What is safe counts where the sandbox can hold it to reading.
        counts_safe = self.sandbox == "full"
        return case.command.covered_by(self._allow, self._grants, counts_safe=counts_safe)

    def _question_about_command(self, case: "_Case", *, is_named: bool) -> str:
        if case.command is None:
            return (
                ""
                if self.mode == "auto" and self.sandbox == "full"
                else f"{case.name} runs a program"
            )
        if self.sandbox != "full":
            what = "there is no sandbox" if self.sandbox == "none" else "the sandbox is reduced"
            return f"{what}, so every command is asked about"
        if case.wants_network:
            return NETWORK
        if self.mode == "auto":
            return ""
        reason = case.command.unsafe
        return reason if is_named or case.name not in _BUILT_IN else ""

    def _question_about_file(self, case: "_Case", *, is_named: bool) -> str:
        if case.subject.is_own:
            return LASTS
        if self.mode == "auto" or (self.mode == "accept-edits" and case.effect != "delete"):
            return ""
        if case.effect == "edit" and not case.subject.is_seen:
            return "the model has not read this file in this session"
        asks = is_named or (case.effect != "edit" and case.name not in _BUILT_IN)
        return BY_MODE if asks else ""


class _Case:
    """One call on trial; a command in it is read once."""

    def __init__(
        self, call: ToolCall, effect: Effect, preview: Preview, subject: Subject, safety: Safety
    ) -> None:
        self.call, self.preview, self.subject = call, preview, subject
        self.effect: Effect = "read" if subject.only_reads else effect
        self.name = call.name
        self.wants_network = subject.network and not safety.sandbox_network
        self.command: CommandCase | None = None
        self.dangers: tuple[str, ...] = ()
        self.blocked = ""
        if subject.command:
            self._read(safety)
        elif self.effect != "read" and not subject.is_plain and call.name not in _BUILT_IN:
            self._look_for_commands(safety)
        if subject.destroys:
            self.dangers += (subject.destroys,)

    def _read(self, safety: Safety) -> None:
        # Loaded here: the first request of a session needs none of it.
        from ybs.security.policy.command_case import CommandCase

        self.command = command = CommandCase(self.subject.command, safety)
        self.blocked, self.dangers = command.blocked, command.dangers

    def _look_for_commands(self, safety: Safety) -> None:
        from ybs.security.policy.command_case import CommandCase, commands_in

        for text in commands_in(bytes(self.call.arguments)):
            command = CommandCase(text, safety)
            self.blocked = self.blocked or command.blocked
            self.dangers += command.dangers

    @property
    def warnings(self) -> tuple[str, ...]:
        """What asks in every mode that asks: what destroys, is not understood, or runs later."""
        warnings = self.dangers + (self.command.concerns if self.command else ())
        if later := self.subject.runs_later:
            from ybs.security.paths.later import reason  # few files are meant

            warnings += (reason(later),)
        return warnings

    @property
    def needs_exact_rule(self) -> bool:
        """Whether neither a pattern nor a grant covers the call."""
        return bool(self.warnings)

    def is_exactly(self, rule: Rule) -> bool:
        """Return whether a rule names this very command or file. Nothing allows what is unclear and destroys."""
        if not rule.names(self.name):
            return False
        if self.command is None and self.subject.destroys:
            return False
        if self.command is None:
            return bool(self.subject.paths) and rule.is_exactly_path(self.subject.paths)
        is_understood = self.command.reading.is_clear or not self.dangers
        is_understood = is_understood and not self.wants_network
        return is_understood and not self.subject.detail and rule.is_exactly(self.subject.command)

    def is_allowed_by(self, rule: Rule) -> bool:
        """Return whether an allow rule covers all of the call. A command's pattern means the project's folder."""
        if not rule.names(self.name) or self.wants_network:
            return False
        if self.command and rule.pattern and self.subject.detail:
            return False
        if self.command is not None:
            return rule.allows_command(self.subject.command, self.command.reading)
        return rule.pattern is None or rule.covers_paths(self.subject.paths)

    def is_touched_by(self, rule: Rule) -> bool:
        """Return whether a rule that denies or asks covers any of the call."""
        if not rule.names(self.name):
            return False
        if self.command is not None:
            return rule.denies_command(self.subject.command, self.command.reading)
        return rule.pattern is None or any(rule.covers_path(path) for path in self.subject.paths)

    @property
    def exact_grant(self) -> str:
        """The rule that stands for exactly this call: a command, a file, or the arguments."""
        subject = self.subject
        paths = ", ".join(map(spelled, subject.paths))
        what = subject.command or paths or bytes(self.call.arguments).decode()
        return f"{self.name}({what})" + self._place

    @property
    def project_grant(self) -> str:
        """The rule for the project's files, where the call makes or changes some; hidden ones stand outside it."""
        changes = self.name in _CHANGING and self.effect in ("write", "edit")
        paths = self.subject.paths
        return f"{self.name}(**)" if changes and paths and all(map(is_open, paths)) else ""

    @property
    def grants(self) -> set[str]:
        """The grants that each cover the call by themselves."""
        return {self.exact_grant, self.project_grant} - {""}

    @property
    def scope_grants(self) -> list[str]:
        """The rules that together stand for all calls of this kind."""
        scopes = self.command.scopes if self.command else []
        return [f"run_shell({scope})" + self._place for scope in scopes]

    @property
    def offered_grant(self) -> str:
        """What "always" would store; nothing for what destroys, cannot be read, or runs anything."""
        if self.needs_exact_rule or self.subject.is_own:
            return ""
        scopes = self.scope_grants
        if scopes and (len(scopes) == 1 or not self._place):
            return " + ".join(scopes)
        is_open = self.command is not None and self.command.is_never_granted
        return "" if is_open else self.project_grant or self.exact_grant

    @property
    def _place(self) -> str:
        place = f" {self.subject.detail}" if self.subject.detail else ""
        return f"{place} with network" if self.wants_network else place

    @property
    def exact_offer(self) -> str:
        """What "always" would store for a command that seems to read and does not: itself, never more."""
        is_open = self.command is not None and self.command.is_never_granted
        return "" if is_open or self.needs_exact_rule else self.exact_grant

    def question(self, reason: str, grant: str, *, by_rule: bool) -> Question:
        """Put it to the person. A rule that asks is asked anew each time."""
        warnings = self.warnings + (self.command.notes if self.command else ())
        if by_rule or self.wants_network:
            warnings = (reason if by_rule else NETWORK, *warnings)
        return Question(
            call=self.call,
            effect=self.effect,
            preview=self.preview,
            warnings=warnings,
            reason="" if reason == BY_MODE or reason in warnings else reason,
            grant=grant,
        )
