"""One call on trial: what it is about, what is dangerous about it, and what "always" would store."""

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from ybs.config.schema import Safety
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect, Preview, Question
from ybs.security.paths.later import reason
from ybs.security.paths.path_text import is_open, spelled
from ybs.security.policy.rules import Rule

if TYPE_CHECKING:
    from ybs.security.policy.command_case import CommandCase

BUILT_IN = frozenset({"write_file", "edit_file", "delete_file", "run_shell"})
#: Tools for which "always" means every file of the project.
_CHANGING = frozenset({"write_file", "edit_file"})
#: The reason that a person need not be told: they see the mode.
BY_MODE = "the mode asks"
#: What stands around shell commands. `full`: whatever they do stays in the project. `held`: they can be kept from writing and
#: from the network, but where they may write more is left open. `off`: the person turned it off.
Sandboxing: TypeAlias = Literal["full", "held", "reduced", "none", "off"]
#: Why ybs's own files are asked about in every mode that asks at all.
LASTS = "every later session will read it"
NETWORK = "it wants the network: whatever it can read could be sent away"
#: Why a command that is to run outside is asked about in every mode but `bypass`.
OUTSIDE = "the model wants to run it outside the sandbox: as your own shell would, with your keys, your logins and all your files"
CHANGED = "outside the sandbox these files, changed in this session, would act with your keys: {}"


class Subject(Struct, frozen=True, kw_only=True):
    """What a call is about: the command, or the paths as `Roots.show` writes them.

    `is_seen`: this session has read the file as it is. `runs_later`: a part of the path that other programs
    or later sessions act on by themselves. `detail` tells calls apart that the rest does not (other arguments, the folder).
    `network`: the command would have the network, which is closed otherwise; `offers_network`: it would not, and can have it. `only_reads`: this call changes nothing,
    although its tool may. `is_plain`: no text among the arguments is run. `destroys` says what would be gone for good.
    `is_own`: what it changes are ybs's own files, which later sessions read: no mode but `bypass` covers it, no grant, no undo.
    `in_background`: it would go on when the call has ended. `asks` says why every mode that asks at all asks about the call until something allows it. `is_alike`: the calls of the tool differ in nothing that matters
    here, so that "always" stands for all of them with the same `detail`. `offers_outside`: the command can be let run outside the
    sandbox; `outside`: the model asks for that; `needs_outside`: it was tried, and cannot work inside. `find_changed` finds the files
    that it would run, or names, and that were changed since the session began.
    """

    command: str = ""
    paths: tuple[str, ...] = ()
    is_seen: bool = False
    runs_later: str = ""
    detail: str = ""
    network: bool = False
    offers_network: bool = False
    only_reads: bool = False
    is_plain: bool = False
    destroys: str = ""
    is_own: bool = False
    in_background: bool = False
    asks: str = ""
    is_alike: bool = False
    offers_outside: bool = False
    outside: bool = False
    needs_outside: bool = False
    find_changed: Callable[[], tuple[str, ...]] = tuple


class Case:
    """One call on trial; a command in it is read once."""

    def __init__(
        self, call: ToolCall, effect: Effect, preview: Preview, subject: Subject, safety: Safety
    ) -> None:
        self.call, self.preview, self.subject = call, preview, subject
        self.effect: Effect = "read" if subject.only_reads else effect
        self.name = call.name
        self.wants_network = subject.network and not safety.sandbox_network
        self.offers_network = subject.offers_network and not safety.sandbox_network
        self.wants_outside = subject.outside and subject.offers_outside
        #: Whether the person gave it the network, and the model did not ask for it.
        self.is_given_network = False
        self.command: CommandCase | None = None
        self.dangers: tuple[str, ...] = ()
        self.blocked = ""
        if subject.command:
            self._read(safety)
        elif self.effect != "read" and not subject.is_plain and call.name not in BUILT_IN:
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
            warnings += (reason(later),)
        return warnings

    @property
    def needs_exact_rule(self) -> bool:
        """Whether no pattern of a rule covers the call."""
        return bool(self.warnings)

    @property
    def outside(self) -> Literal["", "offered", "needed"]:
        """Whether it may be let run outside the sandbox; "needed" where the model asks for that, or it cannot work inside."""
        subject = self.subject
        if not subject.offers_outside:
            return ""
        is_of_git = self.command is not None and self.command.needs_git
        return "needed" if subject.outside or subject.needs_outside or is_of_git else "offered"

    @property
    def withheld(self) -> str:
        """Why no "always" may stand for the call, in a few words; empty where one may."""
        if self.dangers:
            return "it may destroy something"
        if self.subject.runs_later:
            return "other programs run or read this file by themselves"
        if self.subject.is_own:
            return LASTS
        return "see the warning above" if self.command and self.command.grave else ""

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
        arguments = "*" if subject.is_alike else bytes(self.call.arguments).decode()
        what = subject.command or paths or arguments
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
        if self.withheld:
            return ""
        scopes = self.scope_grants
        if scopes and (len(scopes) == 1 or not self._place):
            return " + ".join(scopes)
        return "" if self._why_never else self.project_grant or self.exact_grant

    @property
    def _why_never(self) -> str:
        return self.command.why_never_granted if self.command else ""

    @property
    def _place(self) -> str:
        place = f" {self.subject.detail}" if self.subject.detail else ""
        return f"{place} with network" if self.wants_network else place

    def with_network(self) -> "Case":
        """Return the same call with the network open."""
        other = copy(self)
        other.wants_network, other.is_given_network, other.offers_network = True, True, False
        return other

    def question(self, reason: str, grant: str, *, by_rule: bool) -> Question:
        """Put it to the person. A rule that asks is asked anew each time."""
        warnings = self.warnings + (self.command.notes if self.command else ())
        if by_rule or self.wants_network:
            warnings = (reason if by_rule else NETWORK, *warnings)
        if self.wants_outside:
            warnings = (OUTSIDE, *warnings)
        if self.outside and (changed := self.subject.find_changed()):
            warnings += (CHANGED.format(", ".join(changed)),)
        return Question(
            call=self.call,
            effect=self.effect,
            preview=self.preview,
            warnings=warnings,
            reason="" if reason == BY_MODE or reason in warnings else reason,
            grant=grant,
            withheld="" if grant else self._why_withheld(by_rule=by_rule),
            offers_network=self.offers_network,
            network_grant=self.with_network().offered_grant
            if self.offers_network and grant
            else "",
            outside=self.outside,
        )

    def _why_withheld(self, *, by_rule: bool) -> str:
        if by_rule:
            return "your rule says to ask each time"
        if self.outside == "needed":
            return "what runs outside the sandbox is asked about each time"
        return self.withheld or self._why_never
