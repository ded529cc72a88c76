"""Shell syntax as tree-sitter reads it: every command of a text, and what about it is only known when it runs.

The grammar is lenient and means bash, while `sh` may be another shell. So a text is clear only where it holds no
error, nothing that shells read differently, and nothing that names a program while it runs.
"""

import re
from functools import cache
from typing import TYPE_CHECKING

from ybs.core.lazy import lazy
from ybs.security.commands.command import Command, Script, is_open, is_short, words_in

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Tree

#: Longer texts are not parsed, and so not clear; what is nested more deeply is doubted.
_MOST_CHARACTERS = 30_000
_DEEPEST = 40
#: Where shells disagree, or the eye does: a pattern, and what is doubted.
_ODDITIES = (
    (lazy(r"[\0-\x08\x0b-\x1f\x7f]"), "it holds a control character"),
    (lazy(r"(?:^|[\n;&|({!]|\b(?:then|do|else))\s*\{\}"), "shells read {} differently"),  # a word
    (lazy(r"\S\\\n\S"), "a word goes on behind a line break"),  # two words for the grammar
)
#: What no token need cover: white space, and a lone dash, which the grammar drops before a here-document.
_GAP = lazy(rb"(?>(?:[ \t\n]|\\\n|-(?=[ \t]))*)")
_DESCRIPTOR = lazy(r"\d+|-")
_VARIABLE_TEST = lazy(r"\s-[vR]\s")  # its operand may hold a substitution that runs
#: No quotes and nothing nested: the grammar and the shells disagree about those within quotes.
_PLAIN_EXPANSION = lazy(r"\$\{#?\w+(?:\[[@*\d]\])?(?:[:#%/^,+=?-][^'\"\\`{}()$@]*)?\}")
_QUOTES = str.maketrans("", "", "\\'\"")
_ESCAPE = lazy(r"\\(\n|.)", re.DOTALL)
_QUOTED_ESCAPE = lazy(r"\\(\n|[$`\"\\])")
_ANSI = lazy(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.S
)

_CONTAINERS = words_in("program subshell compound_statement negated_command if_statement elif_clause else_clause while_statement do_group case_statement case_item for_statement list pipeline function_definition")  # fmt: skip
_BUILT_IN = frozenset(("declaration_command", "unset_command", "test_command"))
_SUBSTITUTIONS = frozenset(("command_substitution", "process_substitution", "arithmetic_expansion"))
_WORDS = _SUBSTITUTIONS | words_in("word string raw_string concatenation number simple_expansion expansion ansi_c_string translated_string brace_expression variable_name test_operator extglob_pattern regex special_variable_name string_content")  # fmt: skip
#: Nodes whose parts stand without anything between them, and those that end with their line.
_GLUED = frozenset(("concatenation", "simple_expansion", "variable_assignment"))
_ON_ONE_LINE = _BUILT_IN | {"command", "redirected_statement", "file_redirect"}
_BASH_ONLY = words_in("(( [[ select function ;& ;;& |&")
_SIGNS = frozenset(("$", "==", "=~"))
_DIFFERENT = "shells read {} differently"
_ODD = "it is not understood at {!r}"


def parse(text: str, *, is_flat: bool = False) -> Script:
    """Read a text. Never raises; what is not understood is among the doubts. `is_flat`: so it was read, and both will be compared."""
    if len(text) > _MOST_CHARACTERS or not is_short(text):
        return Script([], is_clear=False, doubts={"it is too long to be judged": None})
    from tree_sitter import Parser  # loaded with the first shell command; no request needs it

    reader = SyntaxReader(text)
    tree = Parser(_language()).parse(reader.source)
    reader.statement(tree.root_node)
    if tree.root_node.has_error:
        reader.doubt("it is no complete command of a shell")
    for pattern, reason in () if is_flat else _ODDITIES:
        if pattern().search(text):
            reader.doubt(reason)
    if not is_flat and not reader.script.doubts and not _covers(tree, reader.source):
        reader.doubt("a part of it is not understood")
    reader.script.is_clear = not reader.script.doubts
    return reader.script


def _covers(tree: "Tree", source: bytes) -> bool:
    """Return whether every character of the text but white space belongs to a token of the syntax tree."""
    cursor, place = tree.walk(), 0
    while True:
        if cursor.goto_first_child():
            continue
        node = cursor.node
        if node is None or not _GAP().fullmatch(source, place, max(place, node.start_byte)):
            return False
        place = max(place, node.end_byte)
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return bool(_GAP().fullmatch(source, place))


@cache
def _language() -> "Language":
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


class SyntaxReader:
    """Walks the tree once and collects commands and doubts."""

    def __init__(self, text: str) -> None:
        self.source = text.encode("utf-8", "surrogatepass")
        self.script = Script([], is_clear=False)
        self.depth = 0

    def doubt(self, reason: str) -> None:
        """Note why the text is not clear."""
        self.script.doubts[reason] = None

    def _text(self, node: "Node") -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")

    def _goes_deeper(self) -> bool:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.doubt("it is nested too deeply")
        return self.depth <= _DEEPEST

    def statement(self, node: "Node", *, is_fed: bool = False) -> None:
        """Read a node that stands where a command could."""
        kind = node.type
        self._check_gaps(node)
        if not self._goes_deeper():
            pass
        elif kind == "command" or kind in _BUILT_IN:
            self._command(node, is_fed=is_fed)
        elif kind == "redirected_statement":
            self._redirected(node, is_fed=is_fed)
        elif kind in ("variable_assignment", "variable_assignments"):
            nodes = node.named_children if kind.endswith("s") else [node]
            self.script.commands.append(
                Command([], [], is_fed, sets=list(map(self._assignment, nodes)))
            )
        elif kind in _WORDS:
            self.word(node)
        elif kind != "comment":
            self._container(node, is_fed=is_fed)
        self.depth -= 1

    def _container(self, node: "Node", *, is_fed: bool) -> None:
        kind = node.type
        if kind == "function_definition":
            self.doubt("it defines a function, which may stand for another command")
        elif kind not in _CONTAINERS:
            self.doubt(_ODD.format(self._text(node)[:20]))
        # A chain of `&&` leans to the left: walked without recursion, however long it is.
        parts: list[Node] = []
        while node.type == "list":
            node, *rest = node.children
            parts += reversed(rest)
        for child in [node, *reversed(parts)] if kind == "list" else node.children:
            if child.is_named:
                self.statement(child, is_fed=is_fed)
                is_fed = is_fed or (kind == "pipeline" and child.type != "comment")
            elif child.type in _BASH_ONLY:
                self.doubt(_DIFFERENT.format(child.type))

    def _check_gaps(self, node: "Node") -> None:
        """Doubt parts that the grammar joins or takes apart otherwise than the shells."""
        kind = node.type
        if kind not in _GLUED and kind not in _ON_ONE_LINE:
            return
        is_word, word_end = kind in _GLUED, node.start_byte
        begins = [*(each.start_byte for each in node.children), *[node.end_byte] * is_word]
        ends = [node.start_byte, *(each.end_byte for each in node.children)]
        for end, begin in zip(ends, begins, strict=False):
            gap = self.source[end:begin]
            if gap if is_word else b"\n" in gap.replace(b"\\\n", b""):
                self.doubt(f"the end of {'a word' if is_word else 'a command'} is not certain")
        for child in node.children if kind == "command" else ():
            if "redirect" not in child.type:
                if child.start_byte == word_end > node.start_byte:
                    self.doubt("a word is not read as one")
                word_end = child.end_byte

    def _redirected(self, node: "Node", *, is_fed: bool) -> None:
        before = len(self.script.commands)
        body, *redirects = node.children
        if "redirect" in body.type:
            redirects = node.children
        else:
            self.statement(body, is_fed=is_fed)
        if len(self.script.commands) == before:
            self.script.commands.append(Command([], [], is_fed))
        command = self.script.commands[-1]
        for redirect in redirects:
            self._redirect(redirect, command)

    def _redirect(self, node: "Node", command: Command) -> None:
        if node.type == "file_redirect":
            self._file(node, command)
        elif node.type == "herestring_redirect":
            self.doubt(_DIFFERENT.format("<<<"))
            command.given += "\n" + " ".join(map(self.word, node.named_children))
        elif node.type == "heredoc_redirect":
            self._here_document(node, command)
        else:
            self.statement(node)

    def _file(self, node: "Node", command: Command) -> None:
        self._check_gaps(node)
        named = [c for c in node.children if c.is_named and c.type != "file_descriptor"]
        operator = "".join(child.type for child in node.children if not child.is_named)
        words = list(map(self.word, named))
        if words and is_open(raw := self._text(named[0])):
            self.doubt(f"the file of the redirection {raw!r} is only known when it runs")
        is_copy = operator in (">&", "<&") and words and bool(_DESCRIPTOR().fullmatch(words[0]))
        if operator in ("&>", "&>>") or (operator == ">&" and not is_copy):
            self.doubt(_DIFFERENT.format(operator))
        if self.source[node.start_byte - 1 : node.start_byte].isdigit():
            self.doubt("the number before a redirection is not certain")
        if words and not is_copy:
            files = command.sources if operator in ("<", "<&") else command.targets
            files.append(words[0])
        command.words += words[1:]  # the grammar takes the words behind a file for more files

    def _here_document(self, node: "Node", command: Command) -> None:
        if not self._ends_where_it_says(node):
            self.doubt("the end of a here-document is not certain")
        for body in node.named_children:
            if body.type == "heredoc_body":
                command.given += "\n" + self._text(body)
                self._inside(body)
        for child in node.named_children:
            if child.type in _WORDS:
                command.words.append(self.word(child))
            elif "redirect" in child.type:
                self._redirect(child, command)
            elif not child.type.startswith("heredoc"):
                self._behind(child, command)

    def _behind(self, node: "Node", command: Command) -> None:
        """Read what stands on the line of a here-document behind it; a pipeline gets its text."""
        before, is_fed = len(self.script.commands), node.type == "pipeline"
        self.statement(node, is_fed=is_fed)
        for piped in self.script.commands[before:] if is_fed else ():
            piped.given += command.given

    def _ends_where_it_says(self, node: "Node") -> bool:
        """Return whether the first line that is the delimiter is the end that the grammar found."""
        parts = {child.type: child for child in node.children}
        start, end = parts.get("heredoc_start", node), parts.get("heredoc_end", node)
        text = self.source[start.end_byte : end.end_byte].decode("utf-8", "surrogatepass")
        tabs = "\t" if "<<-" in parts else ""
        body = [line.lstrip(tabs) if tabs else line for line in text.split("\n")[1:]]
        delimiter = self._text(start).translate(_QUOTES)
        return delimiter in body and body.index(delimiter) == len(body) - 1

    def _command(self, node: "Node", *, is_fed: bool) -> None:
        command = Command([], [], is_fed)
        self.script.commands.append(command)
        self._add_words(node, command)
        first = next(iter(command.words), "") if node.type != "command" else ""
        if first in ("[[", "((") or (first == "[" and _VARIABLE_TEST().search(self._text(node))):
            self.doubt(_DIFFERENT.format(first))

    def _add_words(self, node: "Node", command: Command) -> None:
        for child in node.children if self._goes_deeper() else ():
            kind = child.type
            if kind in _WORDS:
                command.words.append(self.word(child))
            elif kind == "variable_assignment":
                words = command.sets if node.type == "command" else command.words
                words.append(self._assignment(child))
            elif kind == "command_name":
                command.words.append(self._name(child))
            elif "redirect" in kind:
                self._redirect(child, command)
            elif child.children and node.type != "command":
                self._add_words(child, command)
            else:
                self.odd_part(child, command, is_sign=node.type != "command")
        self.depth -= 1

    def _name(self, node: "Node") -> str:
        raw, word = self._text(node), "".join(map(self.word, node.children))
        if word != "[" and (is_open(raw) or "`" in raw):
            self.doubt(f"the program {raw[:40]!r} is only known when it runs")
        return word

    def odd_part(self, node: "Node", command: Command, *, is_sign: bool = False) -> None:
        """Read what only some shells take for a part of a command."""
        if node.type == "subshell":
            self.statement(node)
            self.doubt(_ODD.format("("))
            return
        if not is_sign and node.type not in _SIGNS:
            self.doubt(_DIFFERENT.format(node.type))
        command.words.append(self._text(node))

    def _assignment(self, node: "Node") -> str:
        self._check_gaps(node)
        parts: list[str] = []
        for child in node.children:
            if child.type in ("array", "subscript"):
                self.doubt(_DIFFERENT.format("arrays"))
            parts.append(self.word(child))
        return "".join(parts)

    def word(self, node: "Node") -> str:
        """Return a word without its quotes, variables and substitutions in it as they stand."""
        kind, raw = node.type, self._text(node)
        self._check_gaps(node)
        if kind == "word":
            if "\n" in raw.replace("\\\n", ""):  # the grammar swallows it before a backslash
                self.doubt("the end of a command is not certain")
            return _ESCAPE().sub(_plain, raw)
        if kind == "raw_string":
            return raw[1:-1]
        if kind == "concatenation":
            return "".join(map(self.word, node.children))
        if kind == "ansi_c_string":
            self.doubt(f"{raw[:40]!r} hides what it stands for")
            return decoded(raw[2:-1])
        self._inside(node)
        return _QUOTED_ESCAPE().sub(_plain, raw[1:-1]) if kind == "string" else raw

    def _inside(self, node: "Node") -> None:
        """Read what stands within a word: variables, and the commands of substitutions."""
        kind, goes_deeper = node.type, self._goes_deeper()
        if kind == "simple_expansion":
            self.script.has_variables = True
            self._check_gaps(node)
        elif kind == "expansion":
            self.script.has_variables = True
            if not _PLAIN_EXPANSION().fullmatch(raw := self._text(node)):
                self.doubt(f"{raw[:40]!r} may run what a variable holds")
        elif kind in _SUBSTITUTIONS:
            self._substitution(node)
        elif kind in ("subscript", "ERROR", "translated_string"):
            self.doubt(_ODD.format(self._text(node)[:20]))
        if goes_deeper and kind not in ("command_substitution", "process_substitution"):
            for child in node.named_children:
                self._inside(child)
        self.depth -= 1

    def _substitution(self, node: "Node") -> None:
        self.script.has_variables = True
        raw = self._text(node)
        if node.type == "arithmetic_expansion":
            if "$(" in raw[3:] or "`" in raw or "[" in raw:
                self.doubt(f"{raw[:40]!r} may run what a variable holds")
            return
        if node.type == "process_substitution":
            self.doubt(_DIFFERENT.format(raw[:2]))
        elif raw[:1] == "`" and "\\" in raw:
            self.doubt("it holds escapes within `…`")
        for child in node.named_children:
            if "redirect" in child.type:  # `$(< file)`
                self._redirect(child, Command([], []))
            else:
                self.statement(child)


def decoded(text: str) -> str:
    """Return the text between the quotes of `$'…'`, without control characters."""
    return _ANSI().sub(_decoded, text)


def _decoded(match: re.Match[str]) -> str:
    *codes, letter = match.groups()
    bases = (16, 16, 16, 8)
    numbers = [int(code, base) for code, base in zip(codes, bases, strict=True) if code is not None]
    return chr(min(numbers[0], 0x10FFFF)) if numbers else letter


def _plain(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]
