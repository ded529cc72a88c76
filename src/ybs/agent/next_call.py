"""What the smallest models may write next, as a grammar: where a change is due the call that makes it, else their words.

A model of half a billion parameters finds the right line and its new text, and loses everything around them: it reads again what it
has, names another file, copies a line wrongly, and goes on when it is done. llama.cpp takes no word that its grammar does not have.

https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
"""

import re
from collections.abc import AsyncGenerator, Container, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.agent.hints import absent_in, is_missing
from ybs.core.events import AssistantSaid, Event
from ybs.core.lazy import lazy
from ybs.core.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ybs.core.ports import Request, ToolSpec
from ybs.core.programs import corrected, has_hint
from ybs.core.topics import is_topic, names_in
from ybs.core.wishes import (
    files_in,
    output_wanted_of,
    paths_in,
    wishes_blanks,
    wishes_change,
    wishes_everywhere,
    wishes_gone,
    wishes_last,
    wishes_more,
    wishes_new,
    wishes_repair,
    wishes_run,
    without_commands,
)
from ybs.core.wrapper import ModelWrapper

#: In longer files any text may be the one to replace.
MOST_LINES: Final = 80
_NUMBERED = lazy(r"(?m)^ *\d+\t(.*)$")
#: Words that say what a line is about: names, numbers and longer words.
_WORD = lazy(r"\w*[A-Z_\d]\w*|\w{4,}")
_SIGN = lazy(r"\w")
_IDENTIFIER = lazy(r"\b[A-Za-z_]\w{2,}\b")
_SIGNS = lazy(r"[\s#*>-]*(?=\w)")
#: Arguments that may be of any length; a model of this size does not always find the end of another one.
_LONG: Final = frozenset({"content", "new_text", "old_text"})
_READING: Final = frozenset({"read_file", "search_files", "list_files"})
_TEXTS: Final = r"""
text ::= "\"" (char | "\\" [nt])* "\""
short ::= "\"" char{1,200} "\""
name ::= [A-Za-z_] [A-Za-z0-9_]{0,60}
line ::= ("\\t")* char{1,200}
end ::= "\\n"?
part ::= ([^"\\:\x00-\x1F] | "\\" ["\\/t]){1,100} ":"
char ::= [^"\\\x00-\x1F] | "\\" ["\\/]
"""
#: Words, with blocks of code in them that are not JSON.
_FREE: Final = r"""
words ::= first (plain | block)*
first ::= [^`{<\n]
plain ::= [^`] | "`" [^`] | "``" [^`]
block ::= "```" [a-ik-z] [^`]* "```"
"""
#: An answer in words, on one line, which does not tell what "you were asked".
WORDS: Final = r"""root ::= ([^`{<(\nY] | "Y" [^o`\n]) [^`\n]*"""
#: One that says that something is not there.
NOT_THERE: Final = r"""root ::= "There is no " [^`\n]+"""
#: How often an edit that failed is tried with another line.
MOST_RETRIES: Final = 2


class Guided(ModelWrapper):
    """A Model that is told with each request what it may write next: it makes one change and is then done."""

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream the answer."""
        guided = replace(request, grammar=grammar_of(request))
        async with aclosing(self._model.stream(guided)) as events:
            async for event in events:
                yield (
                    AssistantSaid.of(_trimmed(event.message))
                    if isinstance(event, AssistantSaid)
                    else event
                )


def _trimmed(message: AssistantMessage) -> AssistantMessage:
    """Return an answer without the line end behind the new text of an edit: the grammar lets a model end a line as it is used to."""
    return replace(message, content=tuple(map(_part_of, message.content)))


def _part_of(part: AssistantPart) -> AssistantPart:
    if not isinstance(part, ToolCall) or part.name != "edit_file" or part.invalid:
        return part
    try:
        edit = msgspec.json.decode(part.arguments, type=dict[str, object])
    except msgspec.MsgspecError:
        return part
    old, new = edit.get("old_text"), edit.get("new_text")
    if (
        not (isinstance(old, str) and isinstance(new, str))
        or old.endswith("\n")
        or not new.endswith("\n")
    ):
        return part
    return replace(part, arguments=Raw(msgspec.json.encode({**edit, "new_text": new[:-1]})))


class _File(Struct, frozen=True):
    """What was read of a file."""

    path: str
    lines: Sequence[str]


class _Parameters(Struct, frozen=True):
    """What is read of a tool's schema."""

    required: tuple[str, ...] = ()


def grammar_of(request: Request) -> str:
    """Return the grammar of the next answer: the call that is due, words, or either; nothing without tools."""
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
    is_moved = wishes_everywhere(words) and len(files_in(words)) > 1  # it is a file's name
    if not words or gives_up or is_other or is_moved:
        return WORDS if gives_up else _any_of(request.tools)
    is_done = any(each.name not in _READING and not each.is_error for each in results)
    has_looked = any(each.output and not is_missing(each) for each in results)
    if is_done or (has_looked and not wishes_change(words)):
        return _words(words, results)
    if results and not has_looked and wishes_change(words):  # the file to be changed is not there
        return WORDS
    return _due_calls(request, words, since) or _any_of(request.tools)


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
    return f"root ::= {_call('run_shell', command=[command])}{_TEXTS}" if command and is_new else ""


def _due_calls(request: Request, words: str, since: Sequence[Message]) -> str:
    """Return the grammar of the calls that are due, of an answer where none can be made, or nothing where none are."""
    files = list(_read(since))
    if _is_without_name(words, files):
        return NOT_THERE
    offered = {tool.name for tool in request.tools}
    tried = {_text_of(call, "old_text") for call in _calls_in(since) if call.name == "edit_file"}
    due = _due(words, files, tried)
    calls = [call for name, call in due if name in offered]
    return f"root ::= {' | '.join(calls)}{_TEXTS}" if calls else ""


def _is_without_name(words: str, files: Sequence[_File]) -> bool:
    """Return whether a name in a program is to be another one, and stands in none of the files."""
    if not files or not wishes_everywhere(words) or not names_in(words):
        return False
    return not any(name for file in files for name in _names(words, file.lines))


def _words(words: str, results: Sequence[ToolResult]) -> str:
    """Return the grammar of an answer in words, which begins by saying so where what was asked for is not there."""
    return NOT_THERE if any(absent_in(words, each) for each in results) else WORDS


def _any_of(tools: Sequence[ToolSpec]) -> str:
    """Return the grammar of words, or of a call of any tool with what it cannot do without."""
    calls = (_call(tool.name, **dict.fromkeys(_needed(tool), ())) for tool in tools)
    return f"root ::= {' | '.join(['words', *calls])}{_FREE}{_TEXTS}"


def _needed(tool: ToolSpec) -> Sequence[str]:
    return msgspec.json.decode(tool.parameters, type=_Parameters).required


def _asked(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """Return what the person said last, and what came since."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, UserMessage) and message.origin == "person":
            return message.words, messages[place + 1 :]
    return "", ()


def _read(since: Sequence[Message]) -> Iterator[_File]:
    """Yield the files that were read since the person spoke."""
    paths = {call.id: _text_of(call, "path") for call in _calls_in(since)}
    for each in since:
        if isinstance(each, ToolResult) and each.name == "read_file" and paths.get(each.call_id):
            yield _File(paths[each.call_id], re.findall(_NUMBERED(), each.output))


def _calls_in(messages: Sequence[Message]) -> Iterator[ToolCall]:
    for message in messages:
        if isinstance(message, AssistantMessage):
            yield from message.calls


def _due(words: str, files: Sequence[_File], tried: Container[str]) -> Iterator[tuple[str, str]]:
    """Yield the tools to call next and the grammars of their calls."""
    named = files_in(words)
    commands = output_wanted_of(words)
    if wishes_gone(words):
        for path in named:
            yield "delete_file", _call("delete_file", path=[path])
    elif wishes_run(words) or commands:
        yield "run_shell", _call("run_shell", command=commands)
    elif wishes_change(words) and files:
        meant = set(paths_in(without_commands(words)))
        for file in [each for each in files if each.path in meant] or files:
            yield "edit_file", _edit(file, words, tried)
    elif wishes_change(words) and wishes_new(words):
        for path in named:
            yield "write_file", _call("write_file", path=[path], content=())


def _edit(file: _File, words: str, tried: Container[str]) -> str:
    """Return the grammar of an edit that replaces a line of a file by another one, or adds some below it.

    What a line begins with before its first word stays, such as the sign of a heading or a list.
    What ends with a colon or comma still does: a model of this size goes on with the line below it, or forgets the comma.
    What was `tried` in vain is left out.
    """
    lines = [line for line in file.lines if line.strip()]
    if not 0 < len(lines) <= MOST_LINES:
        return _call("edit_file", path=[file.path], old_text=(), new_text=())
    head = f'```json\n{{"name":"edit_file","arguments":{{"path":{_json(file.path)},"old_text":"'
    if wishes_everywhere(words) and (names := list(_names(words, file.lines))):
        olds = " | ".join(_literal(f'{name}","new_text":"') for name in names)
        return f"{_literal(head)} ({olds}) name {_literal(_EVERYWHERE)}"
    every = [old for old in _unique(file.lines, range(len(file.lines)), words) if old not in tried]
    if wishes_more(words):
        olds = every[-1:] if wishes_last(words) else every
        places = [f"{_pair(old, old + _NEWLINE)} line end" for old in olds]
    else:
        about = _about(words, file.lines)
        olds = [old for old in _unique(file.lines, about, words) if old not in tried]
        olds = [old for old in olds or every if re.search(_SIGN(), old)] or every
        kept = [("" if wishes_blanks(words) else _beginning(old), old) for old in olds]
        places = [f"{_pair(old, begin)} {_rest(old)}" for begin, old in kept]
    if not places:
        return _call("edit_file", path=[file.path], old_text=(), new_text=())
    return f"{_literal(head)} ({' | '.join(places)}) {_literal(_END)}"


def _pair(old: str, new: str) -> str:
    """Return the grammar of what is replaced, and of what the new text begins with."""
    return _literal(f'{_inside(old)}","new_text":"{_inside(new)}')


_NEWLINE: Final = "\n"
_EVERYWHERE: Final = '","replace_all":true}}\n```'
_END: Final = '"}}\n```'


def _rest(old: str) -> str:
    """Return the grammar of what follows the beginning of a new line."""
    if old.endswith(":"):
        return " ".join([*["part"] * old.count(":"), "end"])
    return 'line "," end' if old.endswith(",") else "line end"


def _names(words: str, lines: Sequence[str]) -> Iterator[str]:
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
    return within if within and wishes_repair(words) else list(found or range(len(lines)))


def _unique(lines: Sequence[str], places: Iterable[int], words: str) -> Iterator[str]:
    """Yield each of these lines from its first sign, with as many of those below it as it takes to be found once."""
    whole = "\n".join(lines)
    for place in places:
        ends = range(place + 1, len(lines) + 1)
        texts = ("\n".join(lines[place:end]) for end in ends)
        if not wishes_blanks(words):
            texts = (text.lstrip() for text in texts)
        text = next((text for text in texts if whole.count(text) == 1), "")
        if lines[place].strip() and text:
            yield text


def _call(name: str, **arguments: Iterable[str]) -> str:
    """Return the grammar of a call; each argument is one of the values given, or any text where there are none."""
    parts = [_literal(f'```json\n{{"name":"{name}","arguments":{{')]
    for number, (argument, values) in enumerate(arguments.items()):
        parts.append(_literal(f'{"," if number else ""}"{argument}":'))
        kind = "text" if argument in _LONG else "short"
        parts.append(f"({' | '.join(_literal(_json(value)) for value in values) or kind})")
    return " ".join([*parts, _literal("}}\n```")])


def _json(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _inside(text: str) -> str:
    return _json(text)[1:-1]


def _literal(text: str) -> str:
    """Return a text as a grammar has it: between quotes, with the same escapes as JSON's."""
    return _json(text)


def _beginning(line: str) -> str:
    found = re.match(_SIGNS(), line)
    return found[0] if found else ""


def _text_of(call: ToolCall, name: str) -> str:
    try:
        found = msgspec.json.decode(call.arguments, type=dict[str, object]).get(name)
    except msgspec.MsgspecError:
        return ""
    return found if isinstance(found, str) else ""
