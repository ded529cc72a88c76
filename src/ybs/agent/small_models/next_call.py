"""What the smallest models may write next, as grammars: where a change is due the call that makes it, else their words.

A model of half a billion parameters finds the right line and its new text, and loses everything around them: it reads again what it
has, names another file, copies a line wrongly, and goes on when it is done. llama.cpp takes no word that its grammar does not have.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from ybs.agent.small_models.edit_grammar import LINES, ONE_LINE, ReadFile, edit_of, names_in_both
from ybs.agent.small_models.grammar import FREE, TEXTS, call_of
from ybs.agent.small_models.hints import absent_in, is_missing
from ybs.agent.small_models.intents import intent_of, sure_intent_of, surely_asks, wants_change
from ybs.agent.small_models.mentions import (
    commands_in,
    files_in,
    is_file_name,
    paths_in,
    without_commands,
    without_halves,
)
from ybs.agent.small_models.survey import paths_of
from ybs.agent.small_models.topics import names_in
from ybs.core.lazy import lazy
from ybs.core.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Request, ToolSpec
from ybs.core.programs import corrected, has_hint

_NUMBERED = lazy(r"(?m)^ *\d+\t(.*)$")
#: What read_file says below a part of a file.
_MORE = lazy(r"(?m)^\[lines \d+-\d+ not shown; go on")
_READING: Final = frozenset({"read_file", "search_files", "list_files"})
#: What changes nothing, and what can be done in one call that is known.
_ANSWERED: Final = frozenset({"question", "count"})
_CERTAIN: Final = frozenset({"append", "create", "delete", "rename"})
#: An answer in words, on one line, which does not tell what "you were asked".
WORDS: Final = r"""root ::= ([^`{<(\nY] | "Y" [^o`\n]) [^`\n]*"""
#: One that says that something is not there.
NOT_THERE: Final = r"""root ::= "There is no " [^`\n]+"""
#: How often an edit that failed is tried with another line.
MOST_RETRIES: Final = 2


class _Parameters(Struct, frozen=True):
    """What is read of a tool's schema."""

    required: tuple[str, ...] = ()


def grammar_of(request: Request) -> str:
    """Return what one of the tiniest models may write next: the call that is due, words, or either; nothing without tools."""
    if not request.tools:
        return ""
    words, since = _asked(request.messages)
    results = [each for each in since if isinstance(each, ToolResult)]
    if again := _again(request.tools, since, results):
        return again
    is_past = [has_hint(each.output) and each is not results[-1] for each in results]
    failed = [
        each for each, past in zip(results, is_past, strict=True) if each.is_error and not past
    ]
    gives_up = len(failed) > MOST_RETRIES
    is_other = any(each.name != "edit_file" for each in failed)
    is_moved = intent_of(words) == "move"
    if not words or gives_up or is_other or is_moved:
        return WORDS if gives_up else _any_of(request.tools)
    has_looked = any(each.output and not is_missing(each) for each in results)
    if _is_done(results) or (has_looked and not wants_change(words)):
        return _words(words, results)
    if results and not has_looked and wants_change(words):  # the file to be changed is not there
        return WORDS
    return _due_calls(request, words, since, ONE_LINE) or _any_of(request.tools)


def _again(
    tools: Sequence[ToolSpec], since: Sequence[Message], results: Sequence[ToolResult]
) -> str:
    """Return the grammar of the last command as its result says that it can be run; nothing where it does not say."""
    calls = {call.id: call for call in _calls_in(since) if call.name == "run_shell"}
    last = calls.get(results[-1].call_id) if results else None
    if (
        last is None
        or not results[-1].is_error
        or not any(tool.name == "run_shell" for tool in tools)
    ):
        return ""
    command = corrected(_text_of(last, "command"), results[-1].output)
    is_new = command not in {_text_of(call, "command") for call in calls.values()}
    return (
        f"root ::= {call_of('run_shell', command=[command])}{TEXTS}" if command and is_new else ""
    )


def needed_grammar_of(request: Request) -> str:
    """Return what a model of one or two billion parameters may write next where it is sure what is due; else nothing.

    It appends by overwriting, changes what it was asked about, and makes a failed edit again as it was. What else it does, it does
    better by itself.
    """
    words, since = _asked(request.messages)
    results = [each for each in since if isinstance(each, ToolResult)]
    if not (words and request.tools) or _is_done(results):
        return ""
    if again := _again(request.tools, since, results):
        return again
    intent, failed = sure_intent_of(words), [each for each in results if each.is_error]
    if surely_asks(words) and intent_of(words) in _ANSWERED:
        return _any_of([tool for tool in request.tools if tool.name in _READING]) if results else ""
    if intent == "delete" and len(_to_delete(words, since)) != 1:
        return ""  # one of them may be one to keep
    is_due = _is_edit_of_read(failed, since) if failed else intent in _CERTAIN
    return _due_calls(request, words, since, LINES) if is_due else ""


def _is_edit_of_read(failed: Sequence[ToolResult], since: Sequence[Message]) -> bool:
    """Return whether what failed is one edit, of a file that was read."""
    edited = {call.id: _text_of(call, "path") for call in _calls_in(since)}
    read = {file.path for file in _read(since)}
    return (
        len(failed) == 1 and failed[0].name == "edit_file" and edited.get(failed[0].call_id) in read
    )


def _is_done(results: Iterable[ToolResult]) -> bool:
    """Return whether something was changed or run."""
    return any(each.name not in _READING and not each.is_error for each in results)


def _due_calls(request: Request, words: str, since: Sequence[Message], added: str) -> str:
    """Return the grammar of the calls that are due, of an answer where none can be made, or nothing where none are."""
    files = list(_read(since))
    if _is_without_name(words, files):
        return NOT_THERE
    offered = {tool.name for tool in request.tools}
    tried = {_text_of(call, "old_text") for call in _calls_in(since) if call.name == "edit_file"}
    gone = _to_delete(words, since)
    due = _due(words, files, gone, lambda file: edit_of(file, words, tried, added))
    calls = [call for name, call in due if name in offered]
    return f"root ::= {' | '.join(calls)}{TEXTS}" if calls else ""


def _is_without_name(words: str, files: Sequence[ReadFile]) -> bool:
    """Return whether a name in a program is to be another one, and stands in none of the files."""
    if not files or intent_of(words) != "rename" or not names_in(words):
        return False
    return not any(name for file in files for name in names_in_both(words, file.lines))


def _words(words: str, results: Sequence[ToolResult]) -> str:
    """Return the grammar of an answer in words, which begins by saying so where what was asked for is not there."""
    return NOT_THERE if any(absent_in(words, each) for each in results) else WORDS


def _any_of(tools: Sequence[ToolSpec]) -> str:
    """Return the grammar of words, or of a call of any tool with what it cannot do without."""
    calls = (call_of(tool.name, **dict.fromkeys(_needed(tool), ())) for tool in tools)
    return f"root ::= {' | '.join(['words', *calls])}{FREE}{TEXTS}"


def _needed(tool: ToolSpec) -> Sequence[str]:
    return msgspec.json.decode(tool.parameters, type=_Parameters).required


def _asked(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """Return what the person said last, and what came since."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, UserMessage) and message.origin == "person":
            return without_halves(message.words), messages[place + 1 :]
    return "", ()


def _read(since: Sequence[Message]) -> Iterator[ReadFile]:
    """Yield the files that were read since the person spoke."""
    paths = {call.id: _text_of(call, "path") for call in _calls_in(since)}
    for each in since:
        if isinstance(each, ToolResult) and each.name == "read_file" and paths.get(each.call_id):
            is_whole = re.search(_MORE(), each.output) is None
            yield ReadFile(paths[each.call_id], re.findall(_NUMBERED(), each.output), is_whole)


def _calls_in(messages: Sequence[Message]) -> Iterator[ToolCall]:
    for message in messages:
        if isinstance(message, AssistantMessage):
            yield from message.calls


def _to_delete(words: str, since: Sequence[Message]) -> list[str]:
    """Return the files that are to be deleted: where they were found since the person spoke, else as the words name them."""
    named = files_in(words)
    names = {path.rpartition("/")[2] for path in named}
    listings = [m for m in since if isinstance(m, ToolResult) and m.name == "list_files"]
    paths = [path for each in listings if not each.is_error for path in paths_of(each.output)]
    found = [path for path in paths if is_file_name(path)]
    return [path for path in found if not names or path.rpartition("/")[2] in names] or named


def _due(
    words: str, files: Sequence[ReadFile], gone: Sequence[str], edit: Callable[[ReadFile], str]
) -> Iterator[tuple[str, str]]:
    """Yield the tools to call next and the grammars of their calls."""
    intent = intent_of(words)
    if intent == "delete":
        yield from (("delete_file", call_of("delete_file", path=[path])) for path in gone)
    elif intent == "run":
        yield "run_shell", call_of("run_shell", command=commands_in(words))
    elif intent == "create":
        new = [path for path in files_in(words) if path not in {file.path for file in files}]
        made = (call_of("write_file", path=[path], content=()) for path in new)
        yield from (("write_file", grammar) for grammar in made)
    elif wants_change(words) and files:
        meant = set(paths_in(without_commands(words)))
        meant_files = [each for each in files if each.path in meant] or files
        yield from (("edit_file", grammar) for grammar in map(edit, meant_files) if grammar)


def _text_of(call: ToolCall, name: str) -> str:
    try:
        found = msgspec.json.decode(call.arguments, type=dict[str, object]).get(name)
    except msgspec.MsgspecError:
        return ""
    return found if isinstance(found, str) else ""
