"""What the smallest models may write next, as a grammar: where a change is due the call that makes it, else their words.

A model of half a billion parameters finds the right line and its new text, and loses everything around them: it reads again what it
has, names another file, copies a line wrongly, and goes on when it is done. llama.cpp takes no word that its grammar does not have.

https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
"""

import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.core.events import Event
from ybs.core.lazy import lazy
from ybs.core.messages import AssistantMessage, Message, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Request, ToolSpec
from ybs.core.wishes import (
    files_in,
    output_wanted_of,
    paths_in,
    wishes_change,
    wishes_gone,
    wishes_last,
    wishes_more,
    wishes_new,
    wishes_run,
    without_commands,
)
from ybs.core.wrapper import ModelWrapper

#: In longer files any text may be the one to replace.
MOST_LINES: Final = 80
_NUMBERED = lazy(r"(?m)^ *\d+\t(.*)$")
#: Words that say what a line is about: names, numbers and longer words.
_WORD = lazy(r"\w*[A-Z_\d]\w*|\w{4,}")
_SIGNS = lazy(r"[\s#*>-]*(?=\w)")
_READING: Final = frozenset({"read_file", "search_files", "list_files"})
_TEXTS: Final = r"""
text ::= "\"" (char | "\\n")* "\""
line ::= char{1,200}
part ::= ([^"\\:\x00-\x1F] | "\\" ["\\/t]){1,100} ":"
char ::= [^"\\\x00-\x1F] | "\\" ["\\/t]
"""
#: Words, with blocks of code in them that are not JSON.
_FREE: Final = r"""
words ::= first (plain | block)*
first ::= [^`{<\n]
plain ::= [^`] | "`" [^`] | "``" [^`]
block ::= "```" [a-ik-z] [^`]* "```"
"""
#: An answer in words, on one line.
WORDS: Final = r"root ::= [^`{<(\n] [^`\n]*"


class Guided(ModelWrapper):
    """A Model that is told with each request what it may write next."""

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Stream the answer."""
        guided = replace(request, grammar=grammar_of(request))
        async with aclosing(self._model.stream(guided)) as events:
            async for event in events:
                yield event


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
    if not words or any(each.is_error for each in results):
        return _any_of(request.tools)
    is_done = any(each.name not in _READING for each in results)
    has_looked = any(each.output and not each.output.startswith("No ") for each in results)
    if is_done or (has_looked and not wishes_change(words)):
        return WORDS
    if results and not has_looked and wishes_change(words):  # the file to be changed is not there
        return WORDS
    offered = {tool.name for tool in request.tools}
    calls = [call for name, call in _calls(words, list(_read(since))) if name in offered]
    return f"root ::= {' | '.join(calls)}{_TEXTS}" if calls else _any_of(request.tools)


def _any_of(tools: Sequence[ToolSpec]) -> str:
    """Return the grammar of words, or of a call of any tool with what it cannot do without."""
    calls = (_call(tool.name, **dict.fromkeys(_needed(tool), ())) for tool in tools)
    return f"root ::= words | {' | '.join(calls)}{_FREE}{_TEXTS}"


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
    paths = {
        call.id: _path_of(call)
        for message in since
        if isinstance(message, AssistantMessage)
        for call in message.calls
    }
    for each in since:
        if isinstance(each, ToolResult) and each.name == "read_file" and paths.get(each.call_id):
            yield _File(paths[each.call_id], re.findall(_NUMBERED(), each.output))


def _calls(words: str, files: Sequence[_File]) -> Iterator[tuple[str, str]]:
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
            yield "edit_file", _edit(file, words)
    elif wishes_change(words) and wishes_new(words):
        for path in named:
            yield "write_file", _call("write_file", path=[path], content=())


def _edit(file: _File, words: str) -> str:
    """Return the grammar of an edit that replaces a line of a file by another one, or adds one below it.

    What a line begins with before its first word stays, such as its indentation or the sign of a heading or a list.
    What ends with a colon or comma still does: a model of this size goes on with the line below it, or forgets the comma.
    """
    lines = [line for line in file.lines if line.strip()]
    if not 0 < len(lines) <= MOST_LINES:
        return _call("edit_file", path=[file.path], old_text=(), new_text=())
    adds = wishes_more(words)
    if adds:
        olds = list(_unique(file.lines, range(len(file.lines))))
        olds = olds[-1:] if wishes_last(words) else olds
    else:
        olds = list(_unique(file.lines, _about(words, file.lines)))
    places: list[str] = []
    for old in olds:
        kept = f"{old}\n" if adds else _beginning(old)
        place = _literal(f'{_inside(old)}","new_text":"{_inside(kept)}')
        places.append(f"{place} {_rest(old, adds=adds)}")
    begin = f'```json\n{{"name":"edit_file","arguments":{{"path":{_json(file.path)},"old_text":"'
    return f"{_literal(begin)} ({' | '.join(places)}) {_literal(_END)}"


_END: Final = '"}}\n```'


def _rest(old: str, *, adds: bool) -> str:
    """Return the grammar of what follows the beginning of a new line."""
    if adds:
        return "line"
    if old.endswith(":"):
        return " ".join(["part"] * old.count(":"))
    return 'line ","' if old.endswith(",") else "line"


def _about(words: str, lines: Sequence[str]) -> list[int]:
    """Return the lines that have a word of the request, with the blocks that they begin; where there are none, all."""
    asked = set(re.findall(_WORD(), without_commands(words)))
    found = dict[int, None]()
    block = None
    for place, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        if block is not None and line.strip() and depth <= block:
            block = None
        has_word = not asked.isdisjoint(re.findall(_WORD(), line))
        if has_word and line.endswith(":") and block is None:
            block = depth
        if has_word or block is not None:
            found[place] = None
    return list(found or range(len(lines)))


def _unique(lines: Sequence[str], places: Iterable[int]) -> Iterator[str]:
    """Yield each of these lines, with as many of those below it as it takes to be found once."""
    whole = "\n".join(lines)
    for place in places:
        line = lines[place]
        ends = range(place + 1, len(lines) + 1)
        texts = ("\n".join(lines[place:end]) for end in ends)
        text = next((text for text in texts if whole.count(text) == 1), "")
        if line.strip() and text:
            yield text


def _call(name: str, **arguments: Iterable[str]) -> str:
    """Return the grammar of a call; each argument is one of the values given, or any text where there are none."""
    parts = [_literal(f'```json\n{{"name":"{name}","arguments":{{')]
    for number, (argument, values) in enumerate(arguments.items()):
        parts.append(_literal(f'{"," if number else ""}"{argument}":'))
        parts.append(f"({' | '.join(_literal(_json(value)) for value in values) or 'text'})")
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


def _path_of(call: ToolCall) -> str:
    try:
        found = msgspec.json.decode(call.arguments, type=dict[str, object]).get("path")
    except msgspec.MsgspecError:
        return ""
    return found if isinstance(found, str) else ""
