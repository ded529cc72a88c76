"""A call's arguments, decoded as the tool takes them: strictly first, then as models really write them.

Whatever is not taken as it stands is noted for the model. For a tool that does more than read, nothing is guessed.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec import Struct

from ybs.core.cutting import shortened
from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall
from ybs.core.ports import Tool
from ybs.tools.calls.forms import Form, form_of

_Given = dict[str, Any]

#: Other names of an argument, without `_` and capitals, used where the tool has the one and not the other.
OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "path": (
        *("filepath", "filename", "file", "paths", "targetfile", "directory", "dir", "folder"),
        *("relativepath", "absolutepath", "dirpath", "directorypath"),
    ),
    "paths": ("path", "filepath", "file", "files", "pathspec"),
    "text": ("message", "msg", "commitmessage", "branch", "branchname", "name"),
    "content": ("contents", "filecontent", "filetext", "text"),
    "old_text": ("oldstring", "oldstr", "old", "search", "find"),
    "new_text": ("newstring", "newstr", "new", "replace", "replacement"),
    "command": ("cmd", "shellcommand", "commandline"),
    "working_dir": ("workingdirectory", "cwd", "workdir", "dir", "directory"),
    "timeout": ("timeoutseconds", "timeoutsecs", "timeoutsec"),
    "file_pattern": ("glob", "include", "fileglob", "includepattern"),
    "pattern": ("query", "regex", "regexp", "searchpattern", "globpattern", "glob", "search"),
    "background": ("runinbackground", "inbackground", "isbackground"),
    "id": ("jobid", "job", "bashid", "shellid"),
    "wait": ("waitseconds", "waitsecs"),
    "context_lines": ("context",),
    "ignore_case": ("caseinsensitive", "insensitive", "iscaseinsensitive"),
    "include_ignored": ("noignore", "includegitignored"),
    "max_results": ("maxmatches", "headlimit", "maxcount"),
    "offset": ("startline", "linestart"),
    "limit": ("maxlines", "numlines", "linecount"),
}
#: What models put around the arguments, and what may stand beside it.
_WRAPPERS = frozenset({"arguments", "args", "parameters", "params", "input", "kwargs", "toolinput"})
_LABELS = frozenset({"name", "tool", "toolname", "type", "id", "function", "functionname"})
#: Remarks that models add; leaving them out changes nothing.
_REMARKS = frozenset(
    {"description", "explanation", "reason", "reasoning", "purpose", "thought", "thoughts"}
    | {"comment", "summary", "title", "intent", "instructions", "justification"}
)
_LONGEST_NAME = 60  # of a wrong argument, as it is repeated to the model
_MOST_NOTES = 5
_MOST_SCHEMA = 900  # characters of a schema, a problem and a value in an answer to the model
_MOST_PROBLEM = 300
_MOST_VALUE = 100


class Decoded(Struct, frozen=True):
    """The arguments, and remarks for the model about how they were read."""

    value: Any
    notes: tuple[str, ...] = ()


class _Wanted(Struct, frozen=True):
    """What a tool wants: what is known of it, and its arguments."""

    tool: Tool
    form: Form

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name

    @property
    def reads_only(self) -> bool:
        """Whether a wrong guess does no harm."""
        return self.tool.effect == "read"


def decode(tool: Tool, call: ToolCall) -> Decoded:
    """Decode the call's arguments for the tool. Raises ToolError that says what was expected."""
    notes: list[str] = []
    wanted = _Wanted(tool, form_of(tool))
    given = _unwrapped(wanted, _object_of(wanted, call, notes), notes)
    named, takes_null = _renamed(wanted, given, notes), wanted.form.takes_null
    stated = {name: value for name, value in named.items() if value is not None or takes_null(name)}
    value = _converted(wanted, stated, notes)
    if len(notes) > _MOST_NOTES:
        notes[_MOST_NOTES:] = [f"{len(notes) - _MOST_NOTES:,} more were ignored"]
    return Decoded(value, tuple(notes))


def _object_of(tool: _Wanted, call: ToolCall, notes: list[str]) -> _Given:
    """Return the object that was sent, or that stands within a string or a list."""
    given: Any = _loaded(tool, call, notes)
    if isinstance(given, str):
        given = _loaded(tool, ToolCall(id="", name="", arguments=msgspec.Raw(given.encode())), [])
        notes.append("the arguments were JSON within a string")
    if isinstance(given, list) and len(given) == 1:  # pyright: ignore[reportUnknownArgumentType] - any JSON
        given = cast("list[Any]", given)[0]
        notes.append("the arguments were within a list")
    if not isinstance(given, dict):
        raise ToolError(f"The arguments of {tool.name} must be one JSON object: {_schema(tool)}")
    return {str(name): value for name, value in given.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any JSON


def _loaded(tool: _Wanted, call: ToolCall, notes: list[str]) -> Any:
    text = call.invalid
    if not text:
        try:
            return msgspec.json.decode(call.arguments)
        except (ValueError, RecursionError):
            text = bytes(call.arguments).decode(errors="replace")
    from ybs.tools.calls.broken_json import repaired  # rarely needed

    names = () if tool.form.is_open else tool.form.fields
    try:
        given, note = repaired(text, names, is_careful=not tool.reads_only)
    except ValueError as error:
        raise ToolError(
            f"The arguments of {tool.name} were cut off or are not JSON; nothing was done. Send the call "
            f"again, whole; if it is very long, do it in smaller steps. Expected: {_schema(tool)}"
        ) from error
    notes.append(note)
    return given


def _unwrapped(tool: _Wanted, given: _Given, notes: list[str]) -> _Given:
    """Return what is inside when the arguments were wrapped once more, with nothing else beside them."""
    if tool.form.is_open or any(_meant(tool, name) for name in given):
        return given
    wrappers = {*_WRAPPERS, key_of(tool.name)}
    insides = [name for name in given if key_of(name) in wrappers]
    others = [given[name] for name in given if name not in insides]
    labels = all(key_of(name) in _LABELS for name in given if name not in insides)
    is_other_call = any(isinstance(o, str) and o not in (tool.name, "function", "") for o in others)
    if len(insides) != 1 or not labels or is_other_call:
        return given
    inside = given[insides[0]]
    if isinstance(inside, str):
        inside = _json_in(inside)
    if not isinstance(inside, dict):
        return given
    notes.append(f"the arguments were within {_short(insides[0])!r}; send them without it")
    return {str(name): value for name, value in inside.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any JSON


def _renamed(tool: _Wanted, given: _Given, notes: list[str]) -> _Given:
    """Return the arguments under the tool's own names; the others are noted, or refused where they matter."""
    fields = tool.form.fields
    if tool.form.is_open:
        return given
    known = {name: value for name, value in given.items() if name in fields}
    for name, value in given.items():
        if name in fields:
            continue
        meant = _meant(tool, name)
        free = [field for field in meant if known.get(field) is None]
        if free:
            known[free[0]] = value
            notes.append(f"{_short(name)!r} was taken for {free[0]!r}")
        elif _is_ignored(tool, name, value, [known[field] for field in meant]):
            notes.append(f"{_short(name)!r} is not an argument of {tool.name} and was ignored")
        else:
            raise ToolError(
                f"{_short(name)!r} is not an argument of {tool.name}, and without it something else might be done "
                f"than was meant; nothing was done. Expected: {_schema(tool)}"
            )
    return known


def _is_ignored(tool: _Wanted, name: str, value: Any, same: list[Any]) -> bool:
    """Return whether an unknown argument can be left out: reading does no harm, a remark says nothing."""
    is_empty = value is None or value is False or value in ("", [], {})
    return tool.reads_only or is_empty or key_of(name) in _REMARKS or value in same


def _meant(tool: _Wanted, name: str) -> list[str]:
    """List the arguments of the tool that a name can stand for."""
    fields = tool.form.fields
    key = key_of(name)
    spelled = [field for field in fields if key_of(field) == key]
    return spelled or [field for field in fields if key in OTHER_NAMES.get(field, ())]


def key_of(name: str) -> str:
    """Return what is left of a name without case and signs: `filePath` and `file-path` are one."""
    return "".join(filter(str.isalnum, name.casefold())) if len(name) <= _LONGEST_NAME else ""


def _converted(tool: _Wanted, given: _Given, notes: list[str]) -> Any:
    try:
        return tool.form.read(given)
    except msgspec.ValidationError:
        pass  # most calls fit
    fitting = dict(given)
    for name, kind in _wrong(tool, given):
        try:
            words = joined(given[name]) if name == "command" else ""
            is_careful = not tool.reads_only
            fitting[name] = words or converted(given[name], kind, is_careful=is_careful)
        except Unfit:
            continue  # reported below
        notes.append(f"{name!r} had another type than the schema's and was converted")
    try:
        return tool.form.read(fitting)
    except msgspec.ValidationError as error:
        problem = shortened(f"{error}", _MOST_PROBLEM)
        raise ToolError(
            f"The arguments of {tool.name} do not fit: {problem}. "
            f"Expected: {_expected(tool, given, problem)}"
        ) from error


def _wrong(tool: _Wanted, given: _Given) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of a wrong type, with the right one."""
    for name, kind in tool.form.kinds.items():
        if name not in given:
            continue
        try:
            msgspec.convert(given[name], kind)
        except msgspec.ValidationError:
            yield name, kind


def _expected(tool: _Wanted, given: _Given, problem: str) -> str:
    """Return the part of the schema that the problem is about, and what was given instead."""
    properties: dict[str, Any] = msgspec.json.decode(tool.form.schema).get("properties", {})
    for name, line in properties.items():
        if f"$.{name}`" in problem or f"field `{name}`" in problem:
            shown = shortened(f"{name}: {msgspec.json.encode(line).decode()}", _MOST_SCHEMA)
            return shown + _instead(given, name)
    return _schema(tool)


def _instead(given: _Given, name: str) -> str:
    if name in given:
        value = msgspec.json.encode(given[name]).decode()
        return f". Given: {shortened(value, _MOST_VALUE)}"
    stated = [each for each, value in given.items() if value is not None]
    return shortened(f". Given: {', '.join(stated)}", _MOST_VALUE) if stated else ""


def _short(name: str) -> str:
    return shortened(name, _LONGEST_NAME)


def _schema(tool: _Wanted) -> str:
    return shortened(tool.form.schema.decode("utf-8", "replace"), _MOST_SCHEMA)


_WORDS = {"yes": True, "on": True, "no": False, "off": False}


class Unfit(ValueError):
    """The value stands for nothing of that type."""


def converted(value: Any, kind: Any, *, is_careful: bool) -> Any:
    """Return the value as the type `kind` has it. Raises Unfit.

    `is_careful`: only where the text that was written is certain, as for a tool that writes it to a file.
    """
    for candidate in _candidates(value, kind, is_careful=is_careful):
        try:
            found = msgspec.convert(candidate, kind, strict=False)
            # What JSON cannot say (no number, too large a one) is not an argument.
            is_sound = msgspec.json.decode(msgspec.json.encode(found), type=kind) == found
        except (ValueError, OverflowError, RecursionError):
            continue
        is_sound = is_sound and _has_all(candidate, found)
        if is_sound and not (_is_text(value, found) and found not in _words_of(kind)):
            return found
    raise Unfit


def joined(command: Any) -> str:
    """Return a command that came as a list of words as the shell reads it; nothing for anything else."""
    match command:
        case [str(), str(), *_] if all(isinstance(word, str) for word in command):
            from shlex import join  # rarely needed

            return join(command)
        case _:
            return ""


def _candidates(value: Any, kind: Any, *, is_careful: bool) -> Iterator[Any]:
    """Yield possible conversions of the value, the most certain first."""
    match value:
        case str():
            yield from _of_text(value, kind)
        case bool() | int() | float():
            yield value  # 5.0 for 5
            if not is_careful:  # 1.10 or True may have been written
                yield msgspec.json.encode(value).decode()
        case [only]:
            yield value
            yield from (only, *_of_text(only, kind)) if isinstance(only, str) else (only,)
        case _:
            yield value
    if not isinstance(value, list) and not (isinstance(value, str) and _is_bracketed(value)):
        yield [value]


def _of_text(text: str, kind: Any) -> Iterator[Any]:
    """Yield possible values of a text: a number, a boolean, a word of the schema, JSON."""
    stripped = text.strip()
    if _is_bracketed(text) and (found := _json_in(stripped)) is not None:
        yield found
    yield stripped
    folded = stripped.casefold()
    if folded in _WORDS:
        yield _WORDS[folded]
    words = [word for word in _words_of(kind) if word.casefold() == folded]
    if len(words) == 1:
        yield words[0]


def _has_all(value: Any, found: Any) -> bool:
    """Return whether nothing was left out that the type does not name: a foreign tool may understand it."""
    match value, found:
        case dict(), dict():
            given, kept = cast("dict[str, Any]", value), cast("dict[str, Any]", found)
            return all(name in kept and _has_all(given[name], kept[name]) for name in given)
        case list(), list():
            return all(map(_has_all, cast("list[Any]", value), cast("list[Any]", found)))
        case _:
            return True


def _is_text(value: Any, found: Any) -> bool:
    """Return whether one text would become another: only a word of the schema may be spelled otherwise."""
    return isinstance(value, str) and isinstance(found, str)


def _is_bracketed(text: str) -> bool:
    return text.lstrip()[:1] in ("[", "{")


def _json_in(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None


def _words_of(kind: Any) -> list[str]:
    """List the words that the type allows, where it is a choice of words."""
    from msgspec.inspect import LiteralType, UnionType, type_info  # only a wrong type needs it

    info = type_info(kind)
    choices = info.types if isinstance(info, UnionType) else (info,)
    values = [value for each in choices if isinstance(each, LiteralType) for value in each.values]
    return [value for value in values if isinstance(value, str)]
