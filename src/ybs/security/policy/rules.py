"""Rules such as `run_shell(git log *)`: which calls an allow or a deny covers, and all those in force with where each comes from.

The grammar: `TOOL`, `TOOL(PATTERN)`, `TOOL:PATTERN`. In a tool's name and in the pattern of a command `*` stands
for any text, so a command with a star is never exactly what a rule names; the pattern of a file tool is a glob of paths
relative to the project's folder. A rule that denies or asks means a file in any spelling (`paths/named_paths.py`), one that
allows by its resolved path alone.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from ybs.config.schema import SafetySettings
from ybs.core.errors import ConfigError
from ybs.core.lazy import lazy
from ybs.security.paths import globs
from ybs.security.paths.git_names import means_repository
from ybs.trust.project_rules import KeptKind, ProjectRules, parts_of

if TYPE_CHECKING:
    from ybs.security.commands.command import Command
    from ybs.security.commands.wrappers import Reading

#: What a shell leaves out around a command; for it other blanks (U+00A0) are parts of words.
BLANKS = " \t\n"
#: A word, or what is glued to an option or behind a sign, that names a place outside of the folder a command runs in.
ELSEWHERE = lazy(r"(?:\A|[=@,]|\A-\w+)(?:/|~|file:)|(?:\A|[/=@,]|\A-\w+)\.\.(?:/|\Z)")
#: The programs that a rule lets out of the sandbox, and the verbs of each: none runs another program, loads or writes a file by a name,
#: makes keys or logins, or works on what is not the project's. Behind one of `gh` or `glab` an action follows.
_GIT = """
    add blame branch checkout cherry-pick clean commit describe diff fetch grep log ls-files ls-remote ls-tree merge pull push range-diff rebase
    reflog reset restore rev-list rev-parse revert rm shortlog show stash status switch tag
"""
VERBS = {
    "git": frozenset(_GIT.split()),
    "gh": frozenset(("issue", "label", "pr", "release", "run", "workflow")),
    "glab": frozenset(("ci", "issue", "label", "mr", "release")),
}
_ACTIONS = """
    approve cancel checks close comment create diff edit list merge note ready rebase reopen rerun retry review run status trace update view watch
"""
ACTIONS = frozenset(_ACTIONS.split())
#: The options that a star stands for behind each verb, each word for itself. Whatever word follows, none makes the command name a file, a program, a host
#: or another repository, and none takes a value but a text (`-m`, `--title`, `--body`) or a new branch's name (`-b`, `-c`). A text may follow where one is taken.
#: One letter or number stands behind one dash, and letters of one verb also joined (`-am`); all else behind two, without a value.
OPTIONS = {
    "git add": "- all dry-run update verbose A n u v",
    "git branch": "all delete list quiet remotes show-current verbose a d l q r v",
    "git checkout": "- quiet track b q t",
    "git cherry-pick": "abort continue no-edit quit signoff skip n s",
    "git clean": "- dry-run quiet d n q",
    "git commit": "all allow-empty amend message no-edit no-verify quiet signoff verbose a m n q s v",
    "git diff": "- cached name-only name-status patch shortstat staged stat p w",
    "git fetch": "all dry-run prune quiet tags verbose p q t v",
    "git log": "- all decorate graph name-only name-status oneline patch stat p 1 2 3 4 5 10 20",
    "git merge": "abort continue ff-only message no-edit no-ff quiet stat verbose m q v",
    "git pull": "all ff-only no-edit no-rebase prune quiet rebase tags verbose p q r t v",
    "git push": "all dry-run follow-tags no-verify porcelain quiet set-upstream tags verbose n q u v",
    "git rebase": "abort autostash continue no-verify quiet quit skip verbose q v",
    "git reset": "- mixed quiet soft q",
    "git restore": "- quiet staged S q",
    "git revert": "abort continue no-edit quit signoff skip n s",
    "git rm": "- cached dry-run quiet n q r",
    "git show": "- name-only name-status oneline patch stat p q s",
    "git stash": "all include-untracked message patch quiet staged a m p q u",
    "git status": "branch porcelain short verbose b s v",
    "git switch": "quiet track c q t",
    "git tag": "annotate list message a l m n",
    "gh issue": "body comments title",
    "gh pr": "approve body comments delete-branch draft fill merge name-only rebase request-changes squash title watch",
    "gh release": "draft generate-notes prerelease",
    "gh run": "exit-status failed log log-failed",
}
_TAKING_TEXT = frozenset(("--body", "--message"))
#: A text of several words that is neither an option nor an address, whatever a program takes it for.
_TEXT = lazy(r"(?!-)(?!\S*:/).*\s.*", re.DOTALL)
#: A name of a branch, a commit or a file: no pattern, no address, and nothing that the shell or git makes more of.
_NAME = lazy(r"(?![+-])(?!.*(?:://|@[^/]*:))[\w@%+=:,./^~-]*")
#: What of a line stands in quotes in which the shell replaces nothing, and what it replaces elsewhere.
_QUOTED = lazy(r"'[^']*'|\"[^\"\\$`]*\"")
_REPLACED = lazy(r"[][*?{}\\$`\"'!#]|(?:\A|[\s:=])~")
#: What stands before a word that is a part of another one.
_GLUE = lazy(r"[/=:!]")
_SPACE = lazy(r"\s")
#: `always` is what that answer stored, which is narrower than a rule that reads alike.
RuleKind: TypeAlias = Literal["allow", "ask", "deny", "always"]
#: `start`: an option of the command line. `project`: kept by ybs for this project. `settings`: a configuration file.
RuleOrigin: TypeAlias = Literal["start", "settings", "project", "session"]
#: The origin, as it stands behind a rule in a sentence.
WHERE: dict[RuleOrigin, str] = {
    "start": " given at the start",
    "settings": " of safety.deny",
    "project": " kept for this project",
    "session": " of this session",
}
#: What can be kept for a project, and the name that it has there.
_KEPT_AS: dict[RuleKind, KeptKind] = {"always": "grants", "allow": "allow", "deny": "deny"}


class Rule(Struct, frozen=True):
    """A tool's name, perhaps with `*`, and a pattern; without one it covers every call."""

    tool: str
    pattern: str | None = None

    def names(self, tool: str) -> bool:
        """Return whether the rule is about the tool."""
        return _fits(self.tool, tool)

    def covers_paths(self, paths: tuple[str, ...]) -> bool:
        """Return whether every path lies within the pattern; a relative one covers no absolute path."""
        is_absolute = (self.pattern or "").startswith("/")
        return bool(paths) and all(
            path.startswith("/") == is_absolute and self.covers_path(path) for path in paths
        )

    def is_exactly_path(self, paths: tuple[str, ...]) -> bool:
        """Return whether the pattern is the one path itself."""
        return paths == ((self.pattern or "").removeprefix("./"),)

    def covers_path(self, path: str) -> bool:
        """Return whether the path, as `Roots.show` writes it, fits the pattern."""
        return bool(globs.compiled((self.pattern or "").removeprefix("./")).fullmatch(path))

    def allows_command(self, command: str, reading: "Reading") -> bool:
        """Return whether the rule covers the whole command: it is the pattern, or every part of it fits."""
        if self.is_exactly(command):
            return True
        if self.pattern is None:
            return reading.is_clear
        return bool(reading.parts) and all(map(self.allows_part, reading.parts))

    def allows_part(self, part: "Command") -> bool:
        """Return whether the pattern covers one command of a line, without redirections, assignments and words that may become options."""
        is_more = part.targets or part.sources or part.sets or part.may_gain_options
        if self.pattern is None or is_more or not part.words:
            return False
        # `'npm run' x` is another program.
        words = (_SPACE().sub("\0", word) for word in part.words)
        return _fits(self.pattern, " ".join(words)) and not self.hides(part)

    def lets_out(self, part: "Command") -> bool:
        """Return whether the pattern covers one command outside the sandbox: all that its star stands for is data.

        Each word is judged for itself, wherever it stands, so that nobody has to know which option takes which value: one that begins
        with a dash is in the table of the verb, any other is a name or a text. What is more the rule has to name itself.
        """
        if not self.allows_part(part) or not may_be_let_out(part):
            return False
        named = (self.pattern or "").split()
        free = options_of(part)
        has_texts = not _TAKING_TEXT.isdisjoint(free)
        for word in part.words[2:]:
            is_option = word[:1] == "-"
            is_free = _is_free(word, free) if is_option else _is_data(word, has_texts=has_texts)
            if not is_free:
                if word not in named:
                    return False
                named.remove(word)  # an option that comes again is another one
        return True

    def hides(self, part: "Command") -> bool:
        """Return whether a word makes the program run or make something that the pattern does not name.

        The star of a pattern stands for how a program does its work, never for another program, and where the pattern names a target
        never for another one: `mvn test *` does not allow `mvn test deploy`, nor `make test *` `make test -Cother`. What the pattern
        names is found as in a command, so both are compared word by word.
        """
        from ybs.security.commands.options import targets_of  # only shell calls need it

        named, words = (self.pattern or "").split(), part.words
        known = [(n, v) for n, v in _programs_in(named) if v or n in named]
        if not all(_is_named(each, known) for each in _programs_in(words)):
            return True
        if all(word[:1] == "-" or word == "*" for word in named[1:]):
            return False
        known = [each for each in targets_of(named) if each != ("", "*")]
        return not all(_is_named(each, known) for each in targets_of(words))

    def denies_command(self, command: str, reading: "Reading") -> bool:
        """Return whether the rule covers the command or any part of it, whatever options that has.

        `git push *`, `git push*` and Claude Code's `git push:*` cover `git -C . push origin`; `git push` covers `git -C . push`.
        A word that is only known when it runs (`git $X`) counts as any that it may become, what `xargs` and the like run as having any words,
        and a line that is not understood as one that runs whatever its words could.
        """
        from ybs.security.commands import dangers, options, wrappers

        pattern = (self.pattern or "*").strip()
        if pattern.endswith(":*"):
            pattern = f"{pattern[:-2]}*"
        texts = [command.strip(), *(" ".join(run.words) for run in reading.meant)]
        if any(_fits(pattern, text) for text in texts):
            return True
        wanted, is_whole = pattern.removesuffix(" *").split(), not pattern.endswith("*")
        if any(dangers.covers(wanted, r.words, _is_like, is_whole=is_whole) for r in reading.meant):
            return True
        adding = [run for run in reading.meant if wrappers.adds_words(run)]
        has_verb = wanted[1:] and wanted[1].isalpha() and not options.takes_targets(wanted)
        other = wanted[1] if has_verb else ""
        if any(_may_gain(wanted[0], other, dangers.scan(" ".join(r.words))) for r in adding):
            return True
        is_unclear = bool(adding) or not reading.is_clear
        return is_unclear and _are_among(wanted, dangers.scan(command))

    def is_exactly(self, command: str) -> bool:
        """Return whether the pattern is the command itself, character by character. One with a star is a pattern, whatever the command is."""
        pattern = self.pattern or "*"
        return "*" not in pattern and pattern.strip() == command.strip(BLANKS)


def replaces_nothing(text: str) -> bool:
    """Return whether the shell gives a line's words to its programs as they stand: it holds no pattern."""
    return not _REPLACED().search(_QUOTED().sub("", text))


def may_be_let_out(part: "Command") -> bool:
    """Return whether a rule could let the command out of the sandbox: it is known to run no other program."""
    program, verb, action = (*part.words, "", "", "")[:3]
    is_known = verb in VERBS.get(program, ()) and (program == "git" or action in ACTIONS)
    is_more = part.targets or part.sources or part.sets
    return is_known and not is_more and not Rule("run_shell").hides(part)


def _programs_in(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what makes a program run another one, each with its value: `--pre` with `./x`."""
    from ybs.security.commands import dangers, options, wrappers

    yield from options.running([*words])
    yield from ((script, "") for script in dangers.scripts_in("".join(words[:1]), words))
    yield from options.naming_programs(words)
    yield from ((word, "") for word in wrappers.words_that_run(words))


def _is_named(found: tuple[str, str], known: Sequence[tuple[str, str]]) -> bool:
    return any(name == found[0] and _is_like(value, found[1]) for name, value in known)


def options_of(part: "Command") -> set[str]:
    """Return the options that a star stands for in a command."""
    names = OPTIONS.get(" ".join(part.words[:2]), "").split()
    return {f"-{each}" if len(each) == 1 or each.isdigit() else f"--{each}" for each in names}


def _is_free(word: str, free: set[str]) -> bool:
    """Return whether a word is one of the options that a star stands for, or letters of them."""
    is_joined = word[1:].isalpha() and all(f"-{letter}" in free for letter in word[1:])
    return word in free or is_joined


def _is_data(word: str, *, has_texts: bool) -> bool:
    """Return whether a word is a name or, where a command `has_texts`, one, and leads nowhere else."""
    parts = re.split(r"[/=@,:]", word)
    is_name = bool(_NAME().fullmatch(word)) and not any(map(means_repository, parts))
    is_text = has_texts and bool(_TEXT().fullmatch(word))
    return (is_name or is_text) and not ELSEWHERE().search(word)


def rule_of(text: str) -> Rule:
    """Read a rule. Raises ConfigError for an invalid one."""
    parts = parts_of(text)
    if parts is None:
        raise ConfigError(
            f"{text!r} is not a valid rule; write TOOL, TOOL(PATTERN) or TOOL:PATTERN"
        )
    rule = Rule(*parts)
    try:
        globs.compiled("" if rule.names("run_shell") else rule.pattern or "")
    except re.error as error:
        raise ConfigError(f"the pattern of the rule {text!r} is not valid: {error}") from error
    return rule


def outside_rules(patterns: Sequence[str]) -> list[Rule]:
    """Read `safety.outside_sandbox`. Raises ConfigError for a pattern that could never let anything out."""
    for pattern in patterns:
        program, verb, action = (*pattern.split(), "", "", "")[:3]
        is_known = program in VERBS and (verb == "*" or verb in VERBS[program])
        if not is_known or not ("*" in (verb, action) or program == "git" or action in ACTIONS):
            raise ConfigError(f"{pattern!r} in safety.outside_sandbox is not a rule: only git, gh and glab run outside without a question, as in `git *` or `git push *`, each with the verbs that docs/commands.md names")  # fmt: skip
    return [Rule("run_shell", pattern.strip()) for pattern in patterns]


@lru_cache(1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which each star stands for any text; a match takes time in proportion to the text."""
    return re.compile(translate(re.sub(r"[?[]", r"[\g<0>]", pattern)))


def _fits(pattern: str, text: str) -> bool:
    """Match a whole text. `git log *` covers `git log` as well."""
    pattern = pattern.strip()
    if pattern.endswith(" *") and _fits(pattern[:-2], text):
        return True
    return _is_like(pattern, text)


def _is_like(pattern: str, word: str) -> bool:
    return _compiled(pattern).fullmatch(word) is not None


def _are_among(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether all words of a rule stand somewhere among others; programs without their folder, values without their option."""
    known = {part for word in words for part in (word, *_GLUE().split(word))}
    return all(any(_is_like(each, word) for word in known) for each in wanted if each.strip("*"))


def _may_gain(program: str, verb: str, words: Sequence[str]) -> bool:
    """Return whether a program of these words may have this verb once more words are added: one that stands behind it stays the verb."""
    text = " ".join(words)
    for word, behind in zip(words, [*words[1:], ""], strict=True):
        # A word that stands there twice may be the mark in whose place another one is put.
        is_other = verb and behind.isalpha() and text.count(behind) == 1 and behind != verb
        if not is_other and _are_among([program], [word]):
            return True
    return False


class PolicyRule(Struct, frozen=True):
    """One rule or grant in force."""

    kind: RuleKind
    text: str
    origin: RuleOrigin


class PolicyRules:
    """All rules of one session. Raises ConfigError for a rule of the start or the settings that makes no sense."""

    def __init__(
        self,
        safety: SafetySettings,
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        project: ProjectRules | None = None,
        rules: Mapping[PolicyRule, Rule | None] | None = None,
    ) -> None:
        """Read the rules; `rules` were read before, those of the project among them."""
        self._project, self._is_project_read = project, rules is not None
        self._rules = dict(rules or {})
        self._put("allow", "settings", safety.allow)
        self._put("allow", "start", allow)
        self._put("ask", "settings", safety.ask)
        self._put("deny", "start", deny)
        self._put("deny", "settings", safety.deny)

    def of(self, kind: Literal["allow", "ask", "deny"]) -> dict[PolicyRule, Rule]:
        """Return the rules of one kind, read."""
        self._read_project()
        return {k: v for k, v in self._rules.items() if k.kind == kind and v is not None}

    @property
    def grants(self) -> set[str]:
        """What "always" has stored."""
        self._read_project()
        return {rule.text for rule in self._rules if rule.kind == "always"}

    @property
    def listed(self) -> list[PolicyRule]:
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

    @property
    def missing(self) -> str:
        """Why rules that deny may be missing, once they were needed; empty where none is."""
        return self._project.missing if self._project is not None else ""

    def add(self, rule: PolicyRule) -> None:
        """Have one more rule; one of the project is kept. Raises ConfigError and OSError."""
        self._put(rule.kind, rule.origin, (rule.text,))
        if rule.origin == "project" and self._project is not None:
            self._project.add(_KEPT_AS[rule.kind], rule.text)

    def remove(self, rule: PolicyRule) -> None:
        """Forget a rule, for good where it was kept. Raises ConfigError and OSError."""
        if rule.origin == "project" and self._project is not None:
            self._project.remove(_KEPT_AS[rule.kind], rule.text)
        self._rules.pop(rule, None)

    def hold_to(self, safety: SafetySettings) -> None:
        """Allow no more than the rules of these settings, and ask and refuse as they do, for this session. What "always" has stored stays."""
        for rule in self.of("allow"):
            if rule.text not in safety.allow:
                del self._rules[rule]
        self._add_missing("ask", safety.ask)
        self._add_missing("deny", safety.deny)

    def _add_missing(self, kind: Literal["ask", "deny"], texts: Sequence[str]) -> None:
        known = {rule.text for rule in self.of(kind)}
        self._put(kind, "session", [text for text in texts if text not in known])

    def tried(self, allow: Sequence[str], ask: Sequence[str], *, has_grants: bool) -> "PolicyRules":
        """Return these rules and a few more; without `has_grants` those alone that ask or deny. Raises ConfigError."""
        self._read_project()
        kept = {k: v for k, v in self._rules.items() if has_grants or k.kind in ("ask", "deny")}
        other = PolicyRules(SafetySettings(), allow=allow, project=self._project, rules=kept)
        other._put("ask", "start", ask)
        return other

    def _put(self, kind: RuleKind, origin: RuleOrigin, texts: Sequence[str]) -> None:
        for text in texts:
            rule = None if kind == "always" else rule_of(text)
            self._rules[PolicyRule(kind, text, origin)] = rule

    def _read_project(self) -> None:
        """Read what is kept for the project, the first time, and as long as it cannot be read again."""
        if self._project is None or self._is_project_read:
            return
        record = self._project.record
        self._is_project_read = not self._project.missing
        for kind, name in _KEPT_AS.items():
            for text in getattr(record, name):
                try:
                    self._put(kind, "project", (text,))
                except ConfigError as error:
                    self._project.ignore(error, name)
