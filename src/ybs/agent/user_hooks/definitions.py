"""Reads the hooks of the settings: `{EVENT: [{"matcher": …, "hooks": [{"type": "command", "command": …}]}]}`."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeGuard, get_args

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.document import visible
from ybs.config.tree import is_list, is_object
from ybs.core.cutting import whole_words
from ybs.core.decoding import object_in
from ybs.security.commands.wrappers import read as read_command
from ybs.security.own_programs import IN_PROJECT
from ybs.security.paths.named_paths import NamedPaths
from ybs.security.paths.names import shown_name as written
from ybs.security.policy.rules import Rule
from ybs.tools.calls.tool_names import HOOK_NAMES
from ybs.tools.external.program import ProgramResult
from ybs.tools.registry import NAMES
from ybs.tools.shell.terminal_text import as_seen
from ybs.trust.grants import ORIGIN_MARK


class _Known(Struct, frozen=True):
    """How hooks know a tool: by its names, the usual one first, and its arguments, ybs's name to theirs."""

    names: tuple[str, ...] = ()
    arguments: Mapping[str, str] = {}


_PATH = {"path": "file_path"}
_ARGUMENTS = {
    "run_shell": {"background": "run_in_background"},
    **dict.fromkeys(("read_file", "write_file", "delete_file"), _PATH),
    "edit_file": {**_PATH, "old_text": "old_string", "new_text": "new_string"},
    "list_files": {"max_results": "head_limit"},
    "search_files": {"file_pattern": "glob", "max_results": "head_limit"},
    "shell_job": {"id": "bash_id"},
}
KNOWN: Final = {name: _Known(names, _ARGUMENTS.get(name, {})) for name, names in HOOK_NAMES.items()}
_NONE = _Known()
#: The names by which hooks guard files from being changed.
_WRITING: Final = ("Write", "Edit")
#: Those that look into a folder, and all that take the path of one or of a file.
_OF_FOLDERS: Final = ("list_files", "search_files")
_OF_FILES: Final = (
    *_OF_FOLDERS,
    *(name for name, each in KNOWN.items() if "path" in each.arguments),
)
#: The tools that a condition about changing or reading files means as well, as rules of Claude Code's do.
_ALSO: Final = {
    **dict.fromkeys(("write_file", "delete_file"), "Edit"),
    **dict.fromkeys(_OF_FOLDERS, "Read"),
}
#: What hooks call the kinds of sub-agents that are built in.
_KINDS = {"explore": "Explore", "general": "general-purpose"}
#: Arguments that ybs has in seconds and hooks in thousandths.
_SECONDS = {("run_shell", "timeout")}


def names_of(tool: str) -> tuple[str, ...]:
    """Return all names by which a hook may mean a tool."""
    return (tool, *KNOWN.get(tool, _NONE).names)


def names_of_kind(kind: str) -> tuple[str, ...]:
    """Return all names by which a hook may mean a kind of sub-agents, the one that it is told first."""
    names = (_KINDS.get(kind, kind), kind, kind.rpartition(":")[2])
    return tuple(dict.fromkeys(names)) if kind else ()


def shown_name(tool: str) -> str:
    """Return the name that a hook is told."""
    return next(iter(KNOWN.get(tool, _NONE).names), tool)


def shown_arguments(
    tool: str, arguments: Mapping[str, Any], whole: Callable[[str], str]
) -> dict[str, Any]:
    """Return the arguments of a call as hooks expect them; the paths of files and folders are `whole`."""
    known = KNOWN.get(tool, _NONE).arguments
    shown = {known.get(name, name): value for name, value in arguments.items()}
    for name in (name for own, name in _SECONDS if own == tool and name in shown):
        shown[name] = round(shown[name] * 1000)
    key = "path" if tool in _OF_FOLDERS else "file_path"
    if isinstance(path := shown.get(key), str):
        shown[key] = whole(path)
    return shown


def own_arguments(tool: str, shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for ybs's tool of those that a hook gave back."""
    known = {theirs: own for own, theirs in KNOWN.get(tool, _NONE).arguments.items()}
    own = {known.get(name, name): value for name, value in shown.items()}
    for name in (name for of, name in _SECONDS if of == tool):
        if isinstance(value := own.get(name), int | float):
            own[name] = max(round(value / 1000), 1)
    return own


class HookedCall(Struct, frozen=True):
    """A call as hooks are told of it. `files` are its paths, as named and as its tool uses them; None where one is not a path.

    `also` are more names by which a hook may mean it. `real_tool` is the one that is called where it is told as a call of another.
    `copy`: it is told as the call in the project that it stands for, and made in this copy of that.
    """

    id: str
    tool: str
    arguments: dict[str, Any]
    files: tuple[tuple[str, Path], ...] | None
    folder: Path
    also: tuple[str, ...] = ()
    real_tool: str = ""
    copy: str = ""

    def before(self, writes: Iterable[str], command_line: str) -> "list[HookedCall]":
        """Return what hooks before it are asked about: the call, by file, and what it does besides that hooks know by other names.

        A file that it changes is written, whichever tool does it: who keeps files from being written keeps them from being deleted, restored
        and changed by a switch of branches. What a command line does as well is run by Bash.
        """
        named = {path for _, path in self.files or ()} if self.tool in _OF_FILES else set[Path]()
        written = [*dict.fromkeys(map(Path, writes))]
        is_known = named.isdisjoint(written) or not set(_WRITING).isdisjoint(names_of(self.tool))
        calls = (self if is_known else replace(self, also=_WRITING)).by_file
        if command_line:
            calls.append(self._as("run_shell", {"command": command_line}))
        files = [path for path in written if path not in named]
        return [*calls, *(self._as("write_file", {"path": str(path)}, path) for path in files)]

    def _as(self, tool: str, arguments: dict[str, Any], *files: Path) -> "HookedCall":
        """Return what it does besides as a call of another tool."""
        return HookedCall(
            id=self.id,
            tool=tool,
            arguments=arguments,
            files=tuple((str(path), path) for path in files),
            folder=self.folder,
            also=_WRITING if files else (),
            real_tool=self.tool,
            copy=self.copy,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All names by which a hook may mean it."""
        return (*names_of(self.tool), *self.also)

    @property
    def by_file(self) -> "list[HookedCall]":
        """The call, or one for each file where another agent names several."""
        if self.tool not in _OF_FILES or not self.files or len(self.files) == 1:
            return [self]
        return [
            replace(self, arguments={**self.arguments, "path": pair[0]}, files=(pair,))
            for pair in self.files
        ]

    @property
    def places(self) -> tuple[Path, ...] | None:
        """The paths that it names, as its tool uses them; None where that may be any, as nobody knows what the arguments of a foreign tool mean."""
        if self.tool not in NAMES:
            return None
        if self.files is None:
            return (Path("/"),)  # nobody trusts all of it
        return tuple(path for _, path in self.files)

    @property
    def facts(self) -> dict[str, Any]:
        """What hooks are told of it."""
        facts = {
            "tool_name": shown_name(self.tool),
            "tool_input": shown_arguments(self.tool, self.arguments, self._whole),
            "tool_use_id": self.id,
            "ybs_tool_name": self.real_tool or self.tool,
        }
        return {**facts, "ybs_copy": self.copy} if self.copy else facts

    def _whole(self, name: str) -> str:
        files = dict(self.files or ()) if self.tool in _OF_FILES else {}
        used = str(files.get(name, self.folder / name))
        try:
            used.encode()
        except UnicodeEncodeError:  # JSON has no such bytes
            return written(used)
        return used


EventName: TypeAlias = Literal[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "Notification",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "SessionEnd",
]
EVENTS: Final[tuple[EventName, ...]] = get_args(EventName)
#: Whose hook it is. One of the person's own is their program like any other, unless its entry says `"sandbox": true`; the rest runs in the sandbox.
Source: TypeAlias = Literal["own", "own-sandboxed", "project", "plugin"]
SOURCES: Final[tuple[Source, ...]] = get_args(Source)
OWN: Final[tuple[Source, ...]] = ("own", "own-sandboxed")
DEFAULT_SECONDS = 60.0
MOST_SECONDS = 600.0
#: Nobody waits long for what happens at the end.
AT_THE_END_SECONDS = 5.0
_PLAIN = re.compile(r"[\w|, -]*\Z")
_CONDITION = re.compile(r"(?P<tool>[\w-]+)(?:\((?P<pattern>.*)\))?\Z", re.DOTALL)


class Hook(Struct, frozen=True, kw_only=True):
    """One command at one event. `condition` narrows the calls; `root` is the folder of the plugin that it belongs to."""

    event: EventName
    command: str
    matcher: str = ""
    seconds: float = DEFAULT_SECONDS
    source: Source = "own"
    root: str = ""
    condition: str = ""
    #: What a hook of the project may do with that. Empty: change it, unless it runs files of it that cannot be known.
    project: Literal["", "read", "write"] = ""
    #: Nobody waits for it or reads its answer.
    is_async: bool = False
    #: It starts in the project, trusted or not.
    cwd: str = ""

    @property
    def shown(self) -> str:
        """The command in a line, without control characters."""
        text = visible(" ".join(self.command.split()))
        return text if len(text) <= 80 else f"{text[:79]}…"

    def fits(self, names: Collection[str]) -> bool:
        """Return whether it is meant for what has these names; without names it is meant for every event of its kind."""
        matcher = self.matcher.strip()
        if matcher in ("", "*") or not names:
            return True
        if _PLAIN.match(matcher):
            return not {part.strip() for part in re.split(r"[|,]", matcher)}.isdisjoint(names)
        return any(re.search(matcher, name) for name in names)

    def allows(
        self, tool: str, command: str, paths: NamedPaths | None, also: Collection[str] = ()
    ) -> bool:
        """Return whether a call is one that `condition` means, such as `Bash(git *)`; one that cannot be read means all.

        `paths` are the files of the call; None where they are not known, and may be any. `also` are more names of the call.
        """
        found = _CONDITION.match(self.condition.strip())
        if found is None:
            return True
        if found["tool"] not in (*names_of(tool), _ALSO.get(tool), *also):
            return False
        if (pattern := found["pattern"]) is None or paths is None:
            return True
        try:
            return _means(pattern, command, paths)
        except re.error:
            return True


def _means(pattern: str, command: str, paths: NamedPaths) -> bool:
    """Return whether a pattern means a command, however it is written, or one of the files. Raises `re.error`."""
    if any(map(paths.are_meant_by, _file_patterns(pattern))):
        return True
    if command and Rule("run_shell", pattern).denies_command(command, read_command(command)):
        return True
    return any(fnmatchcase(text, pattern.removeprefix("./")) for text in paths.spellings)


def _file_patterns(pattern: str) -> Iterator[str]:
    """Yield what a pattern for files means in Claude Code: a name alone is one in any folder, and `/` begins a path in the project, too."""
    yield pattern
    if "/" not in pattern.rstrip("/"):
        yield f"**/{pattern}"
    elif pattern.startswith("/"):
        yield pattern.lstrip("/")


class Definitions(Struct, frozen=True):
    """The hooks that can be used, and what is wrong with the rest."""

    hooks: tuple[Hook, ...] = ()
    problems: tuple[str, ...] = ()


def read(section: Mapping[str, Any], *, source: Source = "own", root: str = "") -> Definitions:
    """Read the settings of hooks; groups that ybs has marked are those of the project or of a plugin."""
    hooks, problems = list[Hook](), list[str]()
    for event, groups in section.items():
        if not _is_event(event):
            shown = visible(event[:60])
            problems.append(f"hooks.{shown}: there is no such event in ybs, so it never runs")
            continue
        for place, group in enumerate(groups if is_list(groups) else [groups]):
            for found in _in_group(event, group, source, root):
                if isinstance(found, Hook):
                    hooks.append(found)
                else:
                    problems.append(f"hooks.{event}[{place}]: {found}, so it is ignored")
    return Definitions(tuple(hooks), tuple(problems))


def _is_event(name: str) -> TypeGuard[EventName]:
    return name in EVENTS


def _in_group(event: EventName, group: Any, source: Source, root: str) -> Iterator[Hook | str]:
    """Yield the hooks of a group, and what is wrong with those that cannot be used."""
    if not is_object(group) or not is_list(group.get("hooks")):
        yield 'it is not of the form {"matcher": "…", "hooks": [{…}]}'
        return
    match group.get(ORIGIN_MARK):
        case "project":
            source = "project"
        case "plugin":
            source, root = "plugin", str(group.get("root", ""))
        case _:
            pass
    matcher = group.get("matcher") or ""
    if problem := _problem_of(matcher):
        yield problem
        return
    for entry in group["hooks"]:
        try:
            yield _hook(event, matcher, entry, source, root)
        except ValueError as error:
            yield str(error)


def _problem_of(matcher: Any) -> str:
    if not isinstance(matcher, str):
        return "its matcher is not a text"
    try:
        re.compile("" if matcher == "*" else matcher)
    except (re.error, RecursionError, OverflowError) as error:
        return f"its matcher is not a regular expression ({error})"
    return ""


def _hook(event: EventName, matcher: str, entry: Any, source: Source, root: str) -> Hook:
    if not is_object(entry):
        raise ValueError("a hook in it is not an object")
    kind = entry.get("type", "command")
    if kind != "command":
        raise ValueError(f"ybs has no hooks of type {visible(str(kind)[:30])!r}, only commands")
    command, seconds = entry.get("command"), entry.get("timeout")
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise ValueError("a hook in it has no command")
    project = entry.get("project", "")
    if project not in ("", "read", "write"):
        raise ValueError('its "project" is neither "read" nor "write"')
    usual = AT_THE_END_SECONDS if event == "SessionEnd" else DEFAULT_SECONDS
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds <= 0:
        seconds = usual
    sandboxed = entry.get("sandbox", False)
    if sandboxed not in (True, False):
        raise ValueError('its "sandbox" is neither true nor false')
    if sandboxed and source == "own":
        source = "own-sandboxed"
    return Hook(
        event=event,
        command=command,
        matcher=matcher,
        seconds=min(seconds, MOST_SECONDS),
        source=source,
        root=root,
        project=project,
        condition=entry["if"] if isinstance(entry.get("if"), str) else "",
        is_async=bool(entry.get("async") or entry.get("asyncRewake")),
        cwd=IN_PROJECT if source == "project" else str(entry.get("cwd", "")) * (source in OWN),
    )


#: The exit code that blocks.
BLOCKS: Final = 2
#: Those of the shell, and of what enters the sandbox, for what could not be run: it is not executable, it was not found.
_NOT_RUN: Final = (126, 127)
#: What is told to the model of one hook, in characters.
MOST_CHARS: Final = 10_000
_MOST_NOTE = 500
#: What programs say where they may not write; and why a project's hook may not.
_HELD: Final = re.compile(r"(?i)read-only file system|permission denied")
_READS: Final = 'it may only read the project, unless its entry says "project": "write"'
_GUARDS: Final = "It is asked before such calls, and without its answer none is made. The person has to have it start again, or take it out of the settings"
_MOST_SAID = 240  # of its errors, so that the reason behind them is read too
#: Events whose plain text is told to the model, and those at which nothing can be held up any more.
_TELLING = ("SessionStart", "UserPromptSubmit")
_ONLY_TOLD = ("SessionStart", "SessionEnd", "Notification", "SubagentStart")
Permission: TypeAlias = Literal["", "allow", "ask", "deny"]


class HookAnswer(Struct, frozen=True, kw_only=True):
    """What one hook says, or several together.

    `blocked` is why what was about to happen is not to happen (None: it may). `permission` is about a call, `reason` is why.
    `arguments` replace those of the call; `are_others`: no hook of the person's own gave them. The model is told `context`, the person `notes`. `ending` ends the turn (None: it goes on).
    """

    blocked: str | None = None
    permission: Permission = ""
    reason: str = ""
    arguments: dict[str, Any] | None = None
    are_others: bool = False
    context: str = ""
    ending: str | None = None
    notes: tuple[str, ...] = ()
    is_unbuilt: bool = False


def read_answer(hook: Hook, ran: ProgramResult, *, at_terminal: bool) -> HookAnswer:
    """Return what a run that ended by itself says. An `allow` counts of the person's own hooks, where they are `at_terminal`."""
    if not ran.has_begun or ran.exit_code not in (0, BLOCKS):
        return _of_failure(hook, ran)
    if ran.exit_code == BLOCKS:
        why = whole_words(ran.errors, MOST_CHARS) or f"the hook {hook.shown} gives no reason"
        if hook.event in _ONLY_TOLD:
            return HookAnswer(notes=(_note(hook, why),))
        return HookAnswer(blocked=why)
    if ran.answer is None or not ran.answer.lstrip().startswith(b"{"):
        return HookAnswer(
            context=whole_words(ran.text, MOST_CHARS) if hook.event in _TELLING else ""
        )
    # Some print first that they will take their time, and the answer in a line of its own.
    for piece in (ran.answer, *ran.answer.splitlines()):
        said = object_in(piece)
        if said is not None and "async" not in said:
            return _of_object(hook, said, may_allow=at_terminal and hook.source == "own")
    return HookAnswer(notes=(_note(hook, "answered with JSON that cannot be read"),))


def _of_failure(hook: Hook, ran: ProgramResult) -> HookAnswer:
    said = whole_words(f": {ran.errors}" if ran.errors else "", _MOST_SAID)
    why = f"{ran.how}{said}{_why_failed(hook, ran)}"
    if ran.has_begun and ran.exit_code not in _NOT_RUN:
        return failed(hook, f"failed with {why}")
    is_unbuilt = not ran.has_begun or (hook.source != "own" and ran.exit_code == _NOT_RUN[0])
    return not_started(hook, f"could not be started: {why}", is_unbuilt=is_unbuilt)


def _why_failed(hook: Hook, ran: ProgramResult) -> str:
    """Return in brackets what in the hook's place may be the reason."""
    if hook.source == "own-sandboxed":
        return " (it ran in the sandbox, as its entry says)"
    if hook.source == "project" and not hook.project and _HELD.search(ran.errors):
        return f" ({_READS})"
    return f" ({ran.why_apart})" if ran.why_apart else ""


def _of_object(hook: Hook, said: dict[str, Any], *, may_allow: bool) -> HookAnswer:
    own: Any = said.get("hookSpecificOutput")
    specific: dict[str, Any] = own if is_object(own) else {}
    asked: Any = specific.get("decision")  # of PermissionRequest
    decision: dict[str, Any] = asked if is_object(asked) else {}
    why: Any = specific.get("permissionDecisionReason") or decision.get("message")
    reason = _text(why) or _text(said.get("reason"))
    permission = _permission(
        decision.get("behavior") or specific.get("permissionDecision") or said.get("decision")
    )
    if permission == "allow" and not may_allow:
        permission = ""  # others can only be stricter than the person at a terminal is
    blocked = None
    if (said.get("decision") == "block" or permission == "deny") and hook.event not in _ONLY_TOLD:
        blocked = reason or f"the hook {hook.shown} gives no reason"
    given = specific.get("updatedInput", decision.get("updatedInput"))
    ending = _text(said.get("stopReason")) if said.get("continue") is False else None
    if decision.get("interrupt") is True:
        ending = blocked
    message = _text(said.get("systemMessage"))
    if message and hook.source != "own":  # else it would read as ybs's own words
        whose = "Your" if hook.source in OWN else f"The {hook.source}'s"
        message = f"{whose} hook {hook.shown} says: {' '.join(message.split())}"
    return HookAnswer(
        blocked=blocked,
        permission=permission,
        reason=reason,
        arguments=given if is_object(given) else None,
        are_others=hook.source != "own",
        context=_text(specific.get("additionalContext")),
        ending=ending,
        notes=(whole_words(message, _MOST_NOTE),) if message else (),
    )


def _permission(said: Any) -> Permission:
    """Return a decision about a call; the older words count, too."""
    match said:
        case "allow" | "approve":
            return "allow"
        case "deny" | "block":
            return "deny"
        case "ask" | "defer":
            return "ask"
        case _:
            return ""


def _text(value: Any) -> str:
    """Return a text of a hook's as a person would see it."""
    return whole_words(as_seen(value).strip(), MOST_CHARS) if isinstance(value, str) else ""


def _note(hook: Hook, what: str) -> str:
    return whole_words(f"The hook {hook.shown}: {what}", _MOST_NOTE)


def failed(hook: Hook, why: str) -> HookAnswer:
    """Return the answer of a hook that could not be run to its end: nothing is held up, and the person hears of it."""
    return HookAnswer(notes=(_note(hook, why),))


def not_started(hook: Hook, why: str, *, is_unbuilt: bool = False) -> HookAnswer:
    """Return the answer of a hook that did not begin, or whose shell found no program: before a call it refuses that.

    *Not started* is not *nothing against it*: else whoever keeps a guard from starting has the call. `is_unbuilt`: its sandbox failed, which
    may pass.
    """
    if hook.event != "PreToolUse":
        return failed(hook, why)
    blocked = f"{_note(hook, why)}. {_GUARDS}"
    return HookAnswer(blocked=blocked, notes=(_note(hook, why),), is_unbuilt=is_unbuilt)


def merged(answers: Iterable[HookAnswer]) -> HookAnswer:
    """Return what several hooks say together: a block beats everything, `ask` beats `allow`, which is of no arguments but its own."""
    all_of = list(answers)
    blocks = [each.blocked for each in all_of if each.blocked is not None]
    given = [each for each in all_of if each.arguments is not None]
    taken = max(reversed(given), key=lambda each: not each.are_others, default=None)
    seen = [each for each in all_of if each.permission != "allow" or taken in (None, each)]
    by_permission = {each.permission: each for each in reversed(seen)}
    strongest = next((by_permission[p] for p in ("ask", "allow") if p in by_permission), None)
    endings = [each.ending for each in all_of if each.ending is not None]
    return HookAnswer(
        blocked="\n".join(blocks) if blocks else None,
        permission="deny" if blocks else strongest.permission if strongest else "",
        reason=strongest.reason if strongest else "",
        arguments=taken.arguments if taken else None,
        are_others=bool(taken and taken.are_others),
        context="\n".join(each.context for each in all_of if each.context),
        ending=endings[0] if endings else None,
        notes=tuple(note for each in all_of for note in each.notes),
    )
