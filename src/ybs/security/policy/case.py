"""One call on trial: what it is about, what warns of it, which rules are about it, and how it is put to the person."""

from collections.abc import Callable
from posixpath import normpath
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.schema import SafetySettings
from ybs.core.messages import ToolCall
from ybs.core.ports import Effect, Preview, Question
from ybs.security.paths.autorun import reason as reason_of
from ybs.security.paths.path_text import is_open, quoted, spelled
from ybs.security.policy.rules import Rule
from ybs.security.unicode import shown_whole

if TYPE_CHECKING:
    from ybs.security.paths.named_paths import NamedPaths
    from ybs.security.policy.command_case import CommandCase

BUILT_IN = frozenset({"write_file", "edit_file", "delete_file", "run_shell"})
#: Tools for which "always" means every file of the project.
CHANGING = frozenset({"write_file", "edit_file"})
#: The reason that a person need not be told: they see the mode.
BY_MODE = "the mode asks"
#: Why ybs's own files are asked about in every mode that asks at all.
LASTS = "every later session will read it"
NETWORK = "it wants the network: whatever it can read could be sent away"
#: Why a command that is to run outside is asked about in every mode but `bypass`.
OUTSIDE = "the model wants to run it outside the sandbox: as your own shell would, with your keys, your logins and all your files"
CHANGED = "outside the sandbox, what this session changed would act with your keys: {}"
#: Of a digest that stands for a program or server.
_DIGITS = 16


class Subject(Struct, frozen=True, kw_only=True):
    """What a call is about: the command, or the paths as `Roots.show` writes them.

    `named`: the same paths in every spelling, for the rules that deny or ask; `command_line`: one of `run_shell` that does the same, for
    such rules with a pattern and for blocked commands. No rule allows by it.
    `is_seen`: this session has read the file as it is. `autorun_part`: a part of the path that other programs
    or later sessions act on by themselves. `folder`: where the command runs, if not in the project's own, as `Roots.show` writes it; `place`: the whole path of that folder, or of the project's own.
    `detail` tells calls apart that the rest does not, in words of ybs's own. `identity` stands for the program or server behind a tool that ybs does not bring, and for what
    that is given: an "always" holds its digest, so that it counts for no other one under the name.
    `network`: the command would have the network, which is closed otherwise; `offers_network`: it would not, and can have it. `only_reads`: this call changes nothing,
    although its tool may. `is_plain`: no text among the arguments is run. `destroys` says what would be permanently lost.
    `is_own`: what it changes are ybs's own files, which later sessions read: no mode but `bypass` covers it, no grant, no undo.
    `in_background`: it would go on when the call has ended. `asks` says why every mode that asks at all asks about the call until something allows it. `is_alike`: the calls of the tool differ in nothing that matters
    here, so that "always" stands for all of them with the same `detail`. `offers_outside`: the command can be let run outside the
    sandbox; `outside`: the model asks for that; `needs_outside`: it was tried, and cannot work inside. `find_changed` finds what
    was changed since the session began of all that it may load, anew for each number of `looks`; `why_asked` says why no rule lets it out
    unasked, `why_loading` why it may load anything that lies in the project. `is_elsewhere`: a program of somebody else runs the command, which the sandbox holds as a whole, so that
    no single command can be kept from writing. `is_unshown`: what it needs did not stand in the question about trust in the project that brings it.
    """

    command: str = ""
    paths: tuple[str, ...] = ()
    named: "NamedPaths | None" = None
    command_line: str = ""
    is_seen: bool = False
    autorun_part: str = ""
    folder: str = ""
    place: str = ""
    detail: str = ""
    identity: str = ""
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
    find_changed: Callable[[int], tuple[str, ...]] = lambda _: ()
    looks: int = 0
    why_asked: Callable[[], str] = str
    why_loading: Callable[[], str] = str
    is_elsewhere: bool = False
    is_unshown: bool = False


def without_identity(grant: str) -> str:
    """Return what "always" stores as it is shown where the question says what the tool is given: without the digest behind it."""
    rule, mark, digest = grant.rpartition(" as ")
    return rule if mark and len(digest) == _DIGITS and digest.isalnum() else grant


class Case:
    """One call on trial; a command in it is read once."""

    def __init__(
        self,
        call: ToolCall,
        effect: Effect,
        preview: Preview,
        subject: Subject,
        safety: SafetySettings,
    ) -> None:
        self.call, self.preview, self.subject, self._safety = call, preview, subject, safety
        self.effect: Effect = "read" if subject.only_reads else effect
        self.name = call.name
        self.is_given_network = False  # by the person; the model did not ask for it
        self.wants_network = subject.network and not safety.sandbox_network
        self.offers_network = subject.offers_network and not safety.sandbox_network
        self.wants_outside = subject.outside and subject.offers_outside
        self.command: CommandCase | None = None
        self._same: CommandCase | None = None  # as a command of `run_shell`
        #: What may be destroyed; `foreseen`: that of which something is known before the command runs.
        self.dangers: tuple[str, ...] = ()
        self.foreseen: tuple[str, ...] = ()
        self.blocked = ""
        takes_text = self.effect != "read" and not subject.is_plain and call.name not in BUILT_IN
        if subject.command or subject.command_line or takes_text:
            self._read_commands(safety, takes_text=takes_text)
        if subject.destroys:
            self.dangers += (subject.destroys,)
            self.foreseen += (subject.destroys,)

    def _read_commands(self, safety: SafetySettings, *, takes_text: bool) -> None:
        # Loaded here: the first request of a session needs none of it.
        from ybs.security.policy.command_case import CommandCase, commands_in, from_its_folder

        if line := self.subject.command_line:
            self._same = CommandCase(line, safety)
            self.blocked = self._same.blocked
        given = self.subject.command and from_its_folder(self.subject.command, self.subject.place)
        texts = commands_in(bytes(self.call.arguments)) if takes_text and not given else [given]
        for text in filter(None, texts):
            command = CommandCase(text, safety, network=self.wants_network)
            self.blocked = self.blocked or command.blocked
            self.dangers += command.dangers
            self.foreseen += command.foreseen
            self.command = command if given else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What asks in every mode that asks: what destroys, is not understood, or runs later. No pattern of a rule covers it."""
        later = self.subject.autorun_part
        reasons = self.command.reasons if self.command else ()
        return (*self.dangers, *reasons, *([reason_of(later)] if later else ()))

    @property
    def outside(self) -> Literal["", "offered", "needed"]:
        """Whether it may be let run outside the sandbox; "needed" where the model asks for that, or it cannot work inside."""
        if not self.subject.offers_outside:
            return ""
        return "needed" if self.subject.outside or self.is_stuck else "offered"

    @property
    def is_stuck(self) -> bool:
        """Whether the command cannot work in the sandbox, as was seen, or is known."""
        return self.subject.needs_outside or (self.command is not None and self.command.needs_git)

    @property
    def withheld(self) -> str:
        """Why no "always" may stand for the call, in a few words; empty where one may."""
        if self.dangers:
            return "it may destroy something"
        if self.subject.autorun_part:
            return "other programs run or read this file by themselves"
        if self.subject.is_own:
            return LASTS
        return "see the warning above" if self.warnings else ""

    def is_exactly(self, rule: Rule) -> bool:
        """Return whether a rule names this very command or file. Nothing allows what is unclear and destroys."""
        if not rule.names(self.name):
            return False
        if self.command is None:
            return not self.subject.destroys and rule.is_exactly_path(self.subject.paths)
        is_understood = self.command.reading.is_clear or not self.dangers
        return is_understood and not self.place and rule.is_exactly(self.subject.command)

    def is_allowed_by(self, rule: Rule) -> bool:
        """Return whether an allow rule covers all of the call. A command's pattern means the project's folder."""
        if not rule.names(self.name) or self.wants_network:
            return False
        if self.command is None:
            return rule.pattern is None or rule.covers_paths(self.subject.paths)
        if rule.pattern and self.place:
            return False
        return rule.allows_command(self.subject.command, self.command.reading)

    def is_touched_by(self, rule: Rule) -> bool:
        """Return whether a rule that denies or asks covers any of the call, or of the command that does the same."""
        if self._same and rule.pattern:
            line, is_for_shell = self.subject.command_line, rule.names("run_shell")
            # `git(commit *)` is `run_shell(git commit *)`
            meant = rule if is_for_shell else replace(rule, pattern=f"{self.name} {rule.pattern}")
            is_meant = is_for_shell or rule.names(self.name)
            if is_meant and meant.denies_command(line, self._same.reading):
                return True
        if not rule.names(self.name):
            return False
        if self.command is not None:
            return self.command.is_touched_by(rule, self.subject.command)
        if rule.pattern is None or any(map(rule.covers_path, self.subject.paths)):
            return True
        named = self.subject.named
        return named is not None and named.are_meant_by(rule.pattern)

    @property
    def grants(self) -> list[str]:
        """The rules that each stand for the call by themselves: for the project's files, where it makes or changes some, and for exactly this.

        Hidden files stand outside the project's. A command about which nothing may be remembered has none, so that it is never taken for
        a grant that reads alike.
        """
        subject = self.subject
        if self.command and self.command.why_never:
            return []
        paths = ", ".join(map(spelled, subject.paths))
        meant = subject.command or paths or bytes(self.call.arguments).decode()
        exact = f"{self.name}({'*' if subject.is_alike else meant})" + self.place
        changes = self.name in CHANGING and self.effect in ("write", "edit") and subject.paths
        is_open_all = bool(changes) and all(map(is_open, subject.paths))
        return [f"{self.name}(**)", exact] if is_open_all else [exact]

    @property
    def offered_grant(self) -> str:
        """What "always" would store; nothing for what destroys, cannot be read, or runs anything."""
        if self.withheld:
            return ""
        scopes, place = self.command.scopes if self.command else [], self.place_of_scopes
        if scopes and (len(scopes) == 1 or not place):
            return " + ".join(f"run_shell({scope}){place}" for scope in scopes)
        return next(iter(self.grants), "")

    @property
    def place(self) -> str:
        """What stands behind a rule that counts for the call's folder, or its network, alone. Grants are compared as texts, so no name may read as one."""
        return self._place_of(self.subject.folder)

    @property
    def place_of_scopes(self) -> str:
        """The same for a kind of command, which `cd x && make` names as `make` in `x` does."""
        folder, entered = self.subject.folder, self.command.folder if self.command else ""
        return self._place_of(normpath(f"{folder or '.'}/{entered}") if entered else folder)

    def _place_of(self, folder: str) -> str:
        place = f" in {quoted(folder)}" if folder not in ("", ".") else ""
        place += f" {self.subject.detail}" if self.subject.detail else ""
        if self.subject.identity:
            from hashlib import sha256  # built-in tools need none

            data = self.subject.identity.encode(errors="surrogatepass")
            place += f" as {sha256(data).hexdigest()[:_DIGITS]}"
        return f"{place} with network" if self.wants_network else place

    def with_network(self) -> "Case":
        """Return the same call with the network open, given by the person."""
        subject = replace(self.subject, network=True, offers_network=False)
        case = Case(self.call, self.effect, self.preview, subject, self._safety)
        case.is_given_network = True
        return case

    def question(self, reason: str, *, by_rule: bool) -> Question:
        """Put it to the person. A rule that asks is asked anew each time."""
        withheld = self.withheld or (self.command.why_never if self.command else "")
        if by_rule:
            withheld = "your rule says to ask each time"
        elif self.outside == "needed":
            withheld = "what runs outside the sandbox is asked about each time"
        grant = "" if by_rule or self.outside == "needed" else self.offered_grant
        # A rule's reason comes first, for a hook's takes its place.
        more = (reason, by_rule), (OUTSIDE, self.wants_outside), (NETWORK, self.wants_network)
        warnings = (*(words for words, is_meant in more if is_meant), *self.warnings)
        # Where the way out is only offered, it is looked for once that was taken.
        is_named = self.outside == "needed" or self.subject.looks
        if is_named and (changed := self.subject.find_changed(self.subject.looks)):
            warnings += (CHANGED.format(shown_whole(", ".join(changed))),)
        offers_network = self.offers_network and not self.is_stuck
        reasons = ["" if reason == BY_MODE or reason in warnings else reason]
        # What it is given is said whatever asks.
        reasons += [] if self.subject.asks in reasons[0] else [self.subject.asks]
        reasons += [f"it says of it: {said!r}"] if (said := self.preview.said) else []
        return Question(
            call=self.call,
            effect=self.effect,
            preview=self.preview,
            warnings=warnings,
            reason="; ".join(filter(None, reasons)),
            grant=grant,
            withheld="" if grant else withheld,
            offers_network=offers_network,
            needs_network=offers_network and bool(self.command and self.command.needs_network),
            network_grant=self.with_network().offered_grant if offers_network and grant else "",
            outside=self.outside,
            is_unshown=self.subject.is_unshown,
        )
