"""Shell syntax as tree-sitter reads it: every command of a text, and what about it is only known when it runs.

The grammar is lenient and means bash, while `sh` may be another shell. So a text is clear only where it holds no
error, nothing that shells read differently, and nothing that names a program while it runs.
"""

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from ybs.core.lazy import lazy
from ybs.security.commands.command import Command, Script, is_open
from ybs.security.commands.quoting import without_quotes
from ybs.security.commands.shell_words import DEEPEST, WORDS, Words

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Tree

#: Longer texts are not parsed, and so not clear.
_MOST_CHARACTERS = 30_000
_MOST_MARKS = 2_000
_MARKS = "\"'`$(){}[];|&<>\\\n"
#: Where shells disagree, or the eye does.
_CONTROL = lazy(r"[\0-\x08\x0b-\x1f\x7f]")
#: What no token need cover: white space, and a lone dash, which the grammar drops before a here-document.
_DESCRIPTOR = lazy(r"\d+|-")
_GAP = lazy(rb"(?:[ \t\n]|\\\n|-(?=[ \t]))*+")
_VARIABLE_TEST = lazy(r"\s-[vR]\s")  # its operand may hold a substitution that runs
_EMPTY_BRACES = lazy(
    r"(?:^|[\n;&|({!]|\b(?:then|do|else))\s*\{\}"
)  # a word for shells, and no block
_BROKEN_WORD = lazy(r"\S\\\n\S")  # the grammar takes the two halves for two words

_CONTAINERS = frozenset(
    ("program", "subshell", "compound_statement", "negated_command", "if_statement", "elif_clause")
) | {"else_clause", "while_statement", "do_group", "case_statement", "case_item", "for_statement"}
_DIFFERENT = "shells read {} differently"


def parse(text: str, *, is_flat: bool = False) -> Script:
    """Read a text. Never raises; what is not understood is among the doubts.

    `is_flat`: it was recognised as a flat line, and the two readings will be compared.
    """
    if len(text) > _MOST_CHARACTERS or (
        len(text) > _MOST_MARKS and sum(map(text.count, _MARKS)) > _MOST_MARKS
    ):
        return Script([], is_clear=False, doubts={"it is too long to be judged": None})
    source = text.encode("utf-8", "surrogatepass")
    from tree_sitter import Parser  # loaded with the first shell command; no request needs it

    tree = Parser(_language()).parse(source)
    reader = _Reader(source, text)
    reader.statement(tree.root_node, is_fed=False)
    if tree.root_node.has_error:
        reader.doubt("it is no complete command of a shell")
    if not is_flat:
        _doubt_of_text(text, reader)
        if not reader.script.doubts and not _covers(tree, source):
            reader.doubt("a part of it is not understood")
    reader.script.is_clear = not reader.script.doubts
    return reader.script


def _doubt_of_text(text: str, reader: "_Reader") -> None:
    if _CONTROL().search(text):
        reader.doubt("it holds a control character")
    if "{}" in text and _EMPTY_BRACES().search(text):
        reader.doubt(_DIFFERENT.format("{}"))
    if "\\\n" in text and _BROKEN_WORD().search(text):
        reader.doubt("a word goes on behind a line break")


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


class _Reader(Words):
    """Walks the tree once and collects commands and doubts."""

    def statement(self, node: "Node", *, is_fed: bool) -> None:
        """Read a node that stands where a command could."""
        if self.depth > DEEPEST:
            self.doubt("it is nested too deeply")
            return
        self.depth += 1
        kind = node.type
        if kind == "command":
            self._command(node, is_fed=is_fed)
        elif kind in _CONTAINERS:
            self._container(node, is_fed=is_fed)
        elif kind == "list":
            self._list(node, is_fed=is_fed)
        elif kind == "pipeline":
            self._pipeline(node, is_fed=is_fed)
        elif kind == "redirected_statement":
            self._redirected(node, is_fed=is_fed)
        elif kind != "comment":
            self._rare(node, is_fed=is_fed)
        self.depth -= 1

    def _rare(self, node: "Node", *, is_fed: bool) -> None:
        kind = node.type
        if kind in ("declaration_command", "unset_command", "test_command"):
            self._flattened(node, is_fed=is_fed)
        elif kind in ("variable_assignment", "variable_assignments"):
            nodes = node.named_children if kind.endswith("s") else [node]
            words = [self._assignment(each) for each in nodes]
            self._add(Command(words, [], is_fed, len(words)))
        elif kind == "function_definition":
            self.doubt("it defines a function, which may stand for another command")
            self._container(node, is_fed=is_fed)
        elif kind in WORDS:
            self.word(node)
        else:
            self.doubt(f"it is not understood at {self.text(node)[:20]!r}")
            self._container(node, is_fed=is_fed)

    def _container(self, node: "Node", *, is_fed: bool) -> None:
        for child in node.children:
            if child.is_named:
                self.statement(child, is_fed=is_fed)
            elif child.type in _BASH_ONLY:
                self.doubt(_DIFFERENT.format(child.type))

    def _list(self, node: "Node", *, is_fed: bool) -> None:
        # A chain of `&&` leans to the left: walked without recursion, however long it is.
        parts: list[Node] = []
        while node.type == "list":
            first, *rest = node.named_children
            parts += reversed(rest)
            node = first
        for part in [node, *reversed(parts)]:
            self.statement(part, is_fed=is_fed)

    def _pipeline(self, node: "Node", *, is_fed: bool) -> None:
        for child in node.children:
            if child.is_named:
                self.statement(child, is_fed=is_fed)
                is_fed = is_fed or child.type != "comment"
            elif child.type == "|&":
                self.doubt(_DIFFERENT.format("|&"))

    def _redirected(self, node: "Node", *, is_fed: bool) -> None:
        before = len(self.script.commands)
        self._check_gaps(node)
        body, *redirects = node.children
        if "redirect" in body.type:
            self._add(Command([], [], is_fed))
            redirects = node.children
        else:
            self.statement(body, is_fed=is_fed)
        if len(self.script.commands) == before:
            self._add(Command([], [], is_fed))
        command = self.script.commands[-1]
        for redirect in redirects:
            self._redirect(redirect, command)

    def _redirect(self, node: "Node", command: Command) -> None:
        if node.type == "file_redirect":
            self._file(node, command)
        elif node.type == "herestring_redirect":
            self.doubt(_DIFFERENT.format("<<<"))
            command.given += "\n" + " ".join(self.word(child) for child in node.named_children)
        elif node.type == "heredoc_redirect":
            self._here_document(node, command)
        else:
            self.statement(node, is_fed=False)

    def _file(self, node: "Node", command: Command) -> None:
        operator, words = "", list[str]()
        self._check_gaps(node)
        for child in node.children:
            if child.is_named and child.type != "file_descriptor":
                raw = self.text(child)
                words.append(self.word(child))
                if len(words) == 1 and is_open(raw):
                    self.doubt(f"the file of the redirection {raw!r} is only known when it runs")
            elif not child.is_named:
                operator = child.type
        is_copy = (
            operator in (">&", "<&") and bool(words) and bool(_DESCRIPTOR().fullmatch(words[0]))
        )
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
                command.given += "\n" + self.text(body)
                self.inside(body)
        for child in node.named_children:
            if child.type in WORDS:
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
        delimiter = without_quotes(self.text(start))
        before = self.source[: end.end_byte].decode("utf-8", "surrogatepass")
        lines = before[len(self.source[: start.end_byte].decode("utf-8", "surrogatepass")) :]
        body = lines.split("\n")[1:]
        tabs = "\t" if "<<-" in parts else ""
        body = [line.lstrip(tabs) if tabs else line for line in body]
        return delimiter in body and body.index(delimiter) == len(body) - 1

    def _command(self, node: "Node", *, is_fed: bool) -> None:
        command = Command([], [], is_fed)
        self._add(command)
        self._check_gaps(node)
        self._check_apart(node)
        for child in node.children:
            kind = child.type
            if kind in WORDS:
                command.words.append(self.word(child))
            elif kind == "command_name":
                self._name(child, command)
            elif kind == "variable_assignment":
                command.words.append(self._assignment(child))
                command.start += 1
            else:
                self._odd_part(child, command)

    def _check_apart(self, node: "Node") -> None:
        """Doubt words without a space between them: for the shells they are one."""
        words = [each for each in node.children if "redirect" not in each.type]
        if any(before.end_byte == after.start_byte for before, after in pairwise(words)):
            self.doubt("a word is not read as one")

    def _check_gaps(self, node: "Node") -> None:
        """Doubt a command that would go on behind the end of its line: the grammar joins some, the shells do not."""
        if self.is_one_line:
            return
        place = node.start_byte
        for child in node.children:
            gap = self.source[place : child.start_byte].replace(b"\\\n", b"")
            if b"\n" in gap:
                self.doubt("the end of a command is not certain")
            place = child.end_byte

    def _odd_part(self, node: "Node", command: Command) -> None:
        if "redirect" in node.type:
            self._redirect(node, command)
        elif node.type == "subshell":
            self.statement(node, is_fed=False)
            self.doubt("it is not understood at '('")
        else:
            if node.type not in _SIGNS:
                self.doubt(_DIFFERENT.format(node.type))
            command.words.append(self.text(node))

    def _name(self, node: "Node", command: Command) -> None:
        raw = self.text(node)
        word = "".join(map(self.word, node.children))
        command.words.append(word)
        if word != "[" and (is_open(raw) or "`" in raw):
            self.doubt(f"the program {raw[:40]!r} is only known when it runs")

    def _assignment(self, node: "Node") -> str:
        if not self.is_glued(node):
            self.doubt("the value of a variable is not certain")
        parts = [
            self.word(child) if child.type in WORDS else self._loose(child)
            for child in node.children
        ]
        return "".join(parts)

    def _loose(self, node: "Node") -> str:
        """Return a part as it stands, its substitutions read; arrays and subscripts are doubted."""
        if node.type in ("array", "subscript"):
            self.doubt(_DIFFERENT.format("arrays"))
        self.inside(node)
        return self.text(node)

    def _flattened(self, node: "Node", *, is_fed: bool) -> None:
        command = Command([], [], is_fed)
        self._add(command)
        self._check_gaps(node)
        self._flatten(node, command.words)
        first = next(iter(command.words), "")
        if first in ("[[", "((") or (first == "[" and _VARIABLE_TEST().search(self.text(node))):
            self.doubt(_DIFFERENT.format(first))

    def _flatten(self, node: "Node", words: list[str]) -> None:
        self.depth += 1
        for child in node.children:
            if child.type in WORDS:
                words.append(self.word(child))
            elif child.type == "variable_assignment":
                words.append(self._assignment(child))
            elif child.children and self.depth <= DEEPEST:
                self._flatten(child, words)
            else:
                words.append(self.text(child))
        if self.depth > DEEPEST:
            self.doubt("it is nested too deeply")
        self.depth -= 1

    def substitution(self, node: "Node") -> None:
        """Read the commands of a substitution."""
        self.script.has_variables = True
        raw = self.text(node)
        if node.type == "process_substitution":
            self.doubt(_DIFFERENT.format(raw[:2]))
        elif raw[:1] == "`" and "\\" in raw:
            self.doubt("it holds escapes within `…`")
        elif node.type == "arithmetic_expansion":
            if "$(" in raw[3:] or "`" in raw or "[" in raw:
                self.doubt(f"{raw[:40]!r} may run what a variable holds")
            return
        for child in node.named_children:
            if "redirect" in child.type:  # `$(< file)`
                self._redirect(child, Command([], []))
            else:
                self.statement(child, is_fed=False)

    def _add(self, command: Command) -> None:
        self.script.commands.append(command)


_BASH_ONLY = frozenset({"((", "[[", "select", "function", ";&", ";;&"})
_SIGNS = frozenset({"$", "==", "=~"})
