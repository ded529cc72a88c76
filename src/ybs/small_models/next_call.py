"""Grammars that restrict the next output of the smallest models: the call that makes a due change, else text.

A model of half a billion parameters finds the right line and its new text, and loses everything around them: it reads again what it
has, names another file, copies a line wrongly, and goes on when it is done. llama.cpp takes no word that its grammar does not have.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from ybs.core.decoding import from_json
from ybs.core.lazy import lazy
from ybs.core.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Request, ToolSpec
from ybs.small_models.hints import absent_in, is_missing
from ybs.small_models.intents import intent_of, sure_intent_of, surely_asks, wants_change
from ybs.small_models.mentions import (
    commands_in,
    files_in,
    is_file_name,
    paths_in,
    without_commands,
    without_halves,
)
from ybs.small_models.read_ahead import paths_of
from ybs.small_models.topics import is_topic, names_in
from ybs.tools.shell.programs import corrected, has_hint

#: Arguments that may be of any length; a model of this size does not always find the end of another one.
_LONG: Final = frozenset({"content", "new_text", "old_text"})
#: The rules that calls are made of.
TEXTS: Final = r"""
text ::= "\"" (char | "\\" [nt])* "\""
short ::= "\"" char{1,200} "\""
name ::= [A-Za-z_] [A-Za-z0-9_]{0,60}
line ::= ("\\t")* char{1,200}
lines ::= line ("\\n" line){0,30}
end ::= "\\n"?
part ::= ([^"\\:\x00-\x1F] | "\\" ["\\/t]){1,100} ":"
char ::= [^"\\\x00-\x1F] | "\\" ["\\/]
"""
#: Words, with blocks of code in them that are not JSON.
FREE: Final = r"""
words ::= first (plain | block)*
first ::= [^`{<\n]
plain ::= [^`] | "`" [^`] | "``" [^`]
block ::= "```" [a-ik-z] [^`]* "```"
"""


def call_of(name: str, **arguments: Iterable[str]) -> str:
    """Return the grammar of a call; each argument is one of the values given, or any text where there are none."""
    parts = [literal(f'```json\n{{"name":"{name}","arguments":{{')]
    for number, (argument, values) in enumerate(arguments.items()):
        parts.append(literal(f'{"," if number else ""}"{argument}":'))
        kind = "text" if argument in _LONG else "short"
        parts.append(f"({' | '.join(literal(as_json(value)) for value in values) or kind})")
    return " ".join([*parts, literal("}}\n```")])


def as_json(text: str) -> str:
    """Return a text as JSON has it."""
    return msgspec.json.encode(text).decode()


def inside(text: str) -> str:
    """Return a text as it stands between the quotes of JSON."""
    return as_json(text)[1:-1]


def literal(text: str) -> str:
    """Return a text as a grammar has it: between quotes, with the same escapes as JSON's."""
    return as_json(text)


#: In longer files any text may be the one to replace.
MOST_LINES: Final = 80
#: Words that say what a line is about: names, numbers and longer words.
_WORD = lazy(r"\w*[A-Z_\d]\w*|\w{4,}")
_SIGN = lazy(r"\w")
_IDENTIFIER = lazy(r"\b[A-Za-z_]\w{2,}\b")
_SIGNS = lazy(r"[\s#*>-]*(?=\w)")
_BLANKS: Final = lazy(r"(?i)\b(?:blanks?|indent\w*|spaces?|tabs?|whitespace)\b")
#: What is added within a line, not as one.
_WITHIN: Final = lazy(
    r"(?i)\b(?:argument|attribute|brace|bracket|character|colon|comma|dot|parameter|parenthes[ie]s|period|prefix|quote|quotation"
    r"|semicolon|space|suffix)s?\b|\bput\b.*\bright\b"
)
_NEWLINE: Final = "\n"
#: What is added: one line, or several.
ONE_LINE: Final = "line end"
LINES: Final = "lines end"
_EVERYWHERE: Final = '","replace_all":true}}\n```'
_END: Final = '"}}\n```'


class _ReadFile(Struct, frozen=True):
    """What was read of a file, and whether that goes to its end."""

    path: str
    lines: Sequence[str]
    is_whole: bool = True


def edit_of(file: _ReadFile, words: str, tried: Container[str], added: str) -> str:
    """Return the grammar of an edit that replaces a line of a file by another one, takes it away, or adds some below it.

    What a line begins with before its first word stays, such as the sign of a heading or a list.
    What ends with a colon or comma still does: a model of this size goes on with the line below it, or forgets the comma.
    What was `tried` in vain is left out; `added` is the grammar of what is added. Nothing where its place is not known.
    """
    lines = [line for line in file.lines if line.strip()]
    if not 0 < len(lines) <= MOST_LINES:
        return call_of("edit_file", path=[file.path], old_text=(), new_text=())
    head = f'```json\n{{"name":"edit_file","arguments":{{"path":{as_json(file.path)},"old_text":"'
    intent = intent_of(words)
    if intent == "rename" and (names := list(names_in_both(words, file.lines))):
        olds = " | ".join(literal(f'{name}","new_text":"') for name in names)
        return f"{literal(head)} ({olds}) name {literal(_EVERYWHERE)}"
    every = [old for old in _unique(file.lines, range(len(file.lines)), words) if old not in tried]
    if _adds_lines(words):
        olds = _tails(file, tried) if intent == "append" else every
        places = [f"{_pair(old, old + _NEWLINE)} {added}" for old in olds]
    else:
        about = _about(words, file.lines)
        olds = [old for old in _unique(file.lines, about, words) if old not in tried]
        olds = [old for old in olds or every if re.search(_SIGN(), old)] or every
        places = [_changed(old, keeps_beginning=not _is_about_blanks(words)) for old in olds]
        if intent == "remove":
            places += [_pair(old + _NEWLINE, "") for old in olds]
    if not places and intent == "append":
        return ""
    if not places:
        return call_of("edit_file", path=[file.path], old_text=(), new_text=())
    return f"{literal(head)} ({' | '.join(places)}) {literal(_END)}"


def _tails(file: _ReadFile, tried: Container[str]) -> list[str]:
    """Return the last line of a file that was read to its end, with as many of those above it as it takes to be found once."""
    whole = "\n".join(file.lines).rstrip()
    if not file.is_whole:
        return []
    lines = whole.split("\n")
    tails = ("\n".join(lines[-count:]).lstrip() for count in range(1, len(lines) + 1))
    tail = next((tail for tail in tails if tail and whole.count(tail) == 1), "")
    return [tail] if tail and tail not in tried else []


def _changed(old: str, *, keeps_beginning: bool) -> str:
    """Return the grammar of another first line; those below it only tell which one is meant, and stay."""
    first, line_end, others = old.partition(_NEWLINE)
    begin = _beginning(first) if keeps_beginning else ""
    kept = f" {literal(inside(line_end + others))}" if others else " end"
    return f"{_pair(old, begin)} {_rest(first)}{kept}"


def _pair(old: str, new: str) -> str:
    """Return the grammar of what is replaced, and of what the new text begins with."""
    return literal(f'{inside(old)}","new_text":"{inside(new)}')


def _rest(old: str) -> str:
    """Return the grammar of what follows the beginning of a new line."""
    if old.endswith(":"):
        return " ".join(["part"] * old.count(":"))
    return 'line ","' if old.endswith(",") else "line"


def _adds_lines(words: str) -> bool:
    """Return whether lines are to be added to those there are, rather than something within one."""
    intent = intent_of(words)
    return intent == "append" or (intent == "add" and not re.search(_WITHIN(), words))


def _is_about_blanks(words: str) -> bool:
    """Return whether it is about blanks, such as an indentation."""
    return re.search(_BLANKS(), words) is not None


def names_in_both(words: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield the names in the words that stand in the lines, and not as a part of another one."""
    text = "\n".join(lines)
    for name in dict.fromkeys(re.findall(_IDENTIFIER(), without_commands(words))):
        if is_topic(name) and len(re.findall(rf"\b{name}\b", text)) == text.count(name) > 0:
            yield name


def _about(words: str, lines: Sequence[str]) -> list[int]:
    """Return the lines that have a word of the request, with the blocks that they begin; where there are none, all.

    Where something is to be put right, it is within such a block.
    """
    words = re.sub("|".join(map(re.escape, files_in(words))) or "$^", " ", without_commands(words))
    asked = set(re.findall(_WORD(), words))
    found = dict[int, None]()
    heads = set[int]()
    block = None
    for place, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        if block is not None and line.strip() and depth <= block:
            block = None
        has_word = not asked.isdisjoint(re.findall(_WORD(), line))
        if has_word and line.endswith((":", "{")) and block is None:
            block = depth
            heads.add(place)
        if has_word or block is not None:
            found[place] = None
    within = [place for place in found if place not in heads]
    return within if within and intent_of(words) == "fix" else list(found or range(len(lines)))


def _unique(lines: Sequence[str], places: Iterable[int], words: str) -> Iterator[str]:
    """Yield each of these lines from its first sign, with as many of those below it as it takes to be found once."""
    whole = "\n".join(lines)
    for place in places:
        ends = range(place + 1, len(lines) + 1)
        texts = ("\n".join(lines[place:end]) for end in ends)
        if not _is_about_blanks(words):
            texts = (text.lstrip() for text in texts)
        text = next((text for text in texts if whole.count(text) == 1), "")
        if lines[place].strip() and text:
            yield text


def _beginning(line: str) -> str:
    found = re.match(_SIGNS(), line)
    return found[0] if found else ""


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


def _is_without_name(words: str, files: Sequence[_ReadFile]) -> bool:
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
    return from_json(tool.parameters, _Parameters).required


def _asked(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """Return what the person said last, and what came since."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, UserMessage) and message.origin == "person":
            return without_halves(message.words), messages[place + 1 :]
    return "", ()


def _read(since: Sequence[Message]) -> Iterator[_ReadFile]:
    """Yield the files that were read since the person spoke."""
    paths = {call.id: _text_of(call, "path") for call in _calls_in(since)}
    for each in since:
        if isinstance(each, ToolResult) and each.name == "read_file" and paths.get(each.call_id):
            is_whole = re.search(_MORE(), each.output) is None
            yield _ReadFile(paths[each.call_id], re.findall(_NUMBERED(), each.output), is_whole)


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
    words: str, files: Sequence[_ReadFile], gone: Sequence[str], edit: Callable[[_ReadFile], str]
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
