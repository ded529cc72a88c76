"""The policy: whether a call may run, the person must be asked, or it is refused.

The order is fixed: deny rules, blocked commands, the mode `plan`, the mode `bypass`, then rules and grants that
allow, then what the mode asks about. Paths were judged before, by `Roots`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from ybs.config.schema import Mode, Safety
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect, Preview, Question
from ybs.security.rules import Rule, rule_of

if TYPE_CHECKING:
    from ybs.security.wrappers import Reading

_BUILT_IN = frozenset({"write_file", "edit_file", "delete_file", "run_shell"})


class Subject(Struct, frozen=True, kw_only=True):
    """What a call is about: the command, or the paths as `Roots.show` writes them.

    `is_seen`: this session has read the file as it is. `runs_later`: a part of the path that other programs
    run by themselves. `detail` tells calls apart that the rest does not (other arguments, the folder).
    """

    command: str = ""
    paths: tuple[str, ...] = ()
    is_seen: bool = False
    runs_later: str = ""
    detail: str = ""


class Allow(Struct, frozen=True):
    """The call may run."""


class Deny(Struct, frozen=True):
    """The call is refused; the model reads why."""

    reason: str


class Ask(Struct, frozen=True):
    """The person decides."""

    question: Question


Decision: TypeAlias = Allow | Deny | Ask


class Policy:
    """Mode, rules and the grants of this session. Grants live in memory only."""

    def __init__(
        self,
        safety: Safety,
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        has_sandbox: bool = False,
    ) -> None:
        """Read the rules. Raises ConfigError for a rule that is none."""
        self.mode: Mode = safety.mode
        self.has_sandbox = has_sandbox
        self._safety = safety
        self._allow: list[Rule] = [rule_of(text) for text in allow]
        self._deny: list[Rule] = [rule_of(text) for text in deny]
        self._grants: set[str] = set()

    @property
    def grants(self) -> tuple[str, ...]:
        """What the person allowed for this session."""
        return tuple(sorted(self._grants))

    def grant(self, rule: str) -> None:
        """Allow a call for the rest of this session; `rule` is the `grant` of a question."""
        self._grants.add(rule)

    def blocked(self, command: str) -> str:
        """Return the entry of `safety.blocked_commands` that the command matches, or nothing."""
        from ybs.security.dangers import blocked_entry  # only shell calls need it
        from ybs.security.wrappers import read

        return blocked_entry(read(command), self._safety.blocked_commands)

    def decide(
        self, call: ToolCall, effect: Effect, preview: Preview, subject: Subject
    ) -> Decision:
        """Judge a call. It changes nothing, so it may be asked again."""
        case = _Case(call, effect, preview, subject, self._safety)
        if reason := self._refusal(case):
            return Deny(reason)
        if self.mode == "bypass" or self._is_allowed(case) or not self._asks(case):
            return Allow()
        if self.mode == "deny":
            return Deny(
                f"The mode is deny: {call.name} would need the person's yes, and nobody is asked. "
                "Go on without it, or say what you would have done."
            )
        return Ask(case.question())

    def _refusal(self, case: "_Case") -> str:
        if rule := next((rule for rule in self._deny if case.is_denied_by(rule)), None):
            text = rule.tool if rule.pattern is None else f"{rule.tool}({rule.pattern})"
            return f"The rule --deny {text} forbids this call. Find another way, or ask the person."
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

    def _is_allowed(self, case: "_Case") -> bool:
        if case.needs_exact_rule:
            return any(case.is_exactly(rule) for rule in self._allow)
        return case.grant in self._grants or any(case.is_allowed_by(rule) for rule in self._allow)

    def _asks(self, case: "_Case") -> bool:
        named = case.name in self._safety.require_confirmation
        if case.effect == "read":
            return self.mode in ("ask", "deny") and named
        if case.effect == "execute":
            return bool(case.warnings) or self._asks_about_command(case, is_named=named)
        return bool(case.subject.runs_later) or self._asks_about_file(case, is_named=named)

    def _asks_about_command(self, case: "_Case", *, is_named: bool) -> bool:
        if not self.has_sandbox or not case.is_clear:
            return True
        if self.mode == "auto" or case.is_safe:
            return False
        return is_named or case.name not in _BUILT_IN

    def _asks_about_file(self, case: "_Case", *, is_named: bool) -> bool:
        if self.mode == "auto" or (self.mode == "accept-edits" and case.effect != "delete"):
            return False
        if case.effect == "edit" and not case.subject.is_seen:
            return True
        return is_named or (case.effect != "edit" and case.name not in _BUILT_IN)


class _Case:
    """One call on trial; a command in it is read once."""

    def __init__(
        self, call: ToolCall, effect: Effect, preview: Preview, subject: Subject, safety: Safety
    ) -> None:
        self.call, self.preview, self.subject = call, preview, subject
        self.effect: Effect = effect
        self.name, self.command = call.name, subject.command
        self.warnings: tuple[str, ...] = ()
        self.blocked = ""
        self.is_clear, self.is_safe = True, False
        if self.command:
            self._read(safety)

    def _read(self, safety: Safety) -> None:
        # Loaded here: the first request of a session needs none of it.
        from ybs.security.dangers import blocked_entry, oddities_of, warnings_of
        from ybs.security.wrappers import read

        reading = self.reading = read(self.command)
        self.blocked = blocked_entry(reading, safety.blocked_commands)
        self.warnings = warnings_of(self.command, reading)
        self.oddities = oddities_of(self.command, reading)
        self.is_clear = reading.is_clear
        self.is_safe = is_safe(reading, safety.safe_commands)

    @property
    def needs_exact_rule(self) -> bool:
        """Whether neither a pattern nor a grant covers the call: it destroys, is unclear, or runs later."""
        return bool(self.warnings or self.subject.runs_later) or not self.is_clear

    def is_exactly(self, rule: Rule) -> bool:
        """Tell whether a rule names this very command or file. Nothing allows what is unclear and destroys."""
        if not rule.names(self.name):
            return False
        if not self.command:
            return rule.is_exactly_path(self.subject.paths)
        is_understood = self.is_clear or not self.warnings
        return is_understood and not self.subject.detail and rule.is_exactly(self.command)

    def is_allowed_by(self, rule: Rule) -> bool:
        """Tell whether an allow rule covers all of the call. A command's pattern means the project's folder."""
        if not rule.names(self.name) or (self.command and rule.pattern and self.subject.detail):
            return False
        if self.command:
            return rule.allows_command(self.command, self.reading)
        return rule.pattern is None or rule.covers_paths(self.subject.paths)

    def is_denied_by(self, rule: Rule) -> bool:
        """Tell whether a deny rule covers any of the call."""
        if not rule.names(self.name):
            return False
        if self.command:
            return rule.denies_command(self.command, self.reading)
        return rule.pattern is None or any(rule.covers_path(path) for path in self.subject.paths)

    @property
    def grant(self) -> str:
        """The rule that stands for exactly this call: a command, a file, or the arguments."""
        subject = self.subject
        what = subject.command or ", ".join(subject.paths) or bytes(self.call.arguments).decode()
        return f"{self.name}({what})" + (f" {subject.detail}" if subject.detail else "")

    def question(self) -> Question:
        """Put it to the person. No "always" is offered for what destroys or cannot be read."""
        warnings = self.warnings
        if self.command:
            warnings += self.oddities
            warnings += () if self.is_clear else ("not all of the command could be understood",)
        if later := self.subject.runs_later:
            warnings += (f"{later} is used by programs that run by themselves later on",)
        return Question(
            call=self.call,
            effect=self.effect,
            preview=self.preview,
            warnings=warnings,
            grant="" if self.needs_exact_rule else self.grant,
        )


def is_safe(reading: "Reading", safe_commands: Sequence[str]) -> bool:
    """Tell whether every command is on the list, and nothing is written, expanded or unclear."""
    script = reading.script
    if not reading.is_clear or script.has_variables or len(reading.runs) != len(script.commands):
        return False
    entries = [entry.split() for entry in safe_commands]
    return all(
        not run.targets
        and command.words == run.words
        and any(run.words[: len(entry)] == entry for entry in entries if entry)
        for run, command in zip(reading.runs, script.commands, strict=True)
    )
