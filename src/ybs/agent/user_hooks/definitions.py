"""Reads the hooks of the settings: `{EVENT: [{"matcher": …, "hooks": [{"type": "command", "command": …}]}]}`."""

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, TypeAlias, TypeGuard, get_args

from msgspec import Struct

from ybs.agent.user_hooks.names import names_of
from ybs.config.document import visible
from ybs.config.tree import is_list, is_object
from ybs.security.own_programs import IN_PROJECT
from ybs.trust.grants import ORIGIN_MARK

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
#: Whose hook it is. One of the person's own is their program like any other; the rest runs in the sandbox.
Source: TypeAlias = Literal["own", "project", "plugin"]
DEFAULT_SECONDS = 60.0
MOST_SECONDS = 600.0
#: Nobody waits long for what happens at the end.
AT_THE_END_SECONDS = 5.0
_PLAIN = re.compile(r"[\w|, -]*\Z")
_SEPARATORS = re.compile(r"&&|\|\||[;|&\n]")
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
    in_project: bool = False

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

    def allows(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether a call is one that `condition` means, such as `Bash(git *)`; one that cannot be read means all."""
        found = _CONDITION.match(self.condition.strip())
        if found is None:
            return True
        if found["tool"] not in names_of(tool):
            return False
        if (pattern := found["pattern"]) is None:
            return True
        if pattern.endswith(":*"):
            pattern = f"{pattern[:-2]}*"
        texts = [str(arguments.get(name, "")) for name in ("command", "file_path", "path")]
        texts += [part.strip() for part in _SEPARATORS.split(texts[0])]
        return any(text and fnmatchcase(text, pattern) for text in texts)


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
        in_project=source == "project" or (source == "own" and entry.get("cwd") == IN_PROJECT),
    )
