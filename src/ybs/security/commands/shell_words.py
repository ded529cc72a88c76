"""The words of a shell text as the syntax tree has them: quotes removed, what is put in later left as it stands."""

from typing import TYPE_CHECKING

from ybs.core.lazy import lazy
from ybs.security.commands.command import Script
from ybs.security.commands.quoting import decoded, unescaped, unquoted

if TYPE_CHECKING:
    from tree_sitter import Node

#: What is nested more deeply is doubted.
DEEPEST = 40
#: No quotes and nothing nested: the grammar and the shells disagree about those within quotes.
_PLAIN_EXPANSION = lazy(r"\$\{#?\w+(?:\[[@*\d]\])?(?:[:#%/^,+=?-][^'\"\\`{}()$@]*)?\}")
SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution", "arithmetic_expansion"})
WORDS = SUBSTITUTIONS | {
    *("word", "string", "raw_string", "concatenation", "number", "simple_expansion", "expansion"),
    *("ansi_c_string", "translated_string", "brace_expression", "variable_name", "test_operator"),
    *("extglob_pattern", "regex", "special_variable_name", "string_content"),
}


class Words:
    """Reads words; what is not certain about them becomes a doubt."""

    def __init__(self, source: bytes, text: str) -> None:
        self.source = source
        self.ascii = text if len(text) == len(source) else ""  # places in both are then the same
        self.script = Script([], is_clear=False)
        self.is_one_line = "\n" not in text
        self.depth = 0

    def doubt(self, reason: str) -> None:
        """Note why the text is not clear."""
        self.script.doubts[reason] = None

    def text(self, node: "Node") -> str:
        """Return what a node covers, as it stands."""
        if self.ascii:
            return self.ascii[node.start_byte : node.end_byte]
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")

    def word(self, node: "Node") -> str:
        """Return a word without its quotes, variables and substitutions in it as they stand."""
        kind, raw = node.type, self.text(node)
        if kind == "word":
            return self._bare(raw)
        if kind == "raw_string":
            return raw[1:-1]
        if kind == "string":
            self.inside(node)
            return unquoted(raw[1:-1])
        if kind == "concatenation":
            if not self.is_glued(node):
                self.doubt("the end of a word is not certain")
            return "".join([self.word(child) for child in node.children])
        if kind == "ansi_c_string":
            self.doubt(f"{raw[:40]!r} hides what it stands for")
            return decoded(raw[2:-1])
        if node.child_count:
            self.inside(node)
        return raw

    def _bare(self, raw: str) -> str:
        if "\n" in raw and "\n" in raw.replace("\\\n", ""):
            self.doubt(
                "the end of a command is not certain"
            )  # the grammar swallows it before a backslash
        return unescaped(raw)

    def inside(self, node: "Node") -> None:
        """Read what stands within a word: variables, and the commands of substitutions."""
        self.depth += 1
        kind = node.type
        if kind in ("simple_expansion", "expansion"):
            self._variable(node)
        elif kind in SUBSTITUTIONS:
            self.substitution(node)
        elif kind in ("subscript", "ERROR", "translated_string"):
            self.doubt(f"it is not understood at {self.text(node)[:20]!r}")
        if self.depth > DEEPEST:
            self.doubt("it is nested too deeply")
        elif kind not in ("command_substitution", "process_substitution"):
            for child in node.named_children:
                self.inside(child)
        self.depth -= 1

    def _variable(self, node: "Node") -> None:
        self.script.has_variables = True
        if node.type == "simple_expansion":
            if not self.is_glued(node):
                self.doubt("the name of a variable is not certain")
        elif not _PLAIN_EXPANSION().fullmatch(self.text(node)):
            self.doubt(f"{self.text(node)[:40]!r} may run what a variable holds")

    def is_glued(self, node: "Node") -> bool:
        """Return whether the parts of a node stand without anything between them."""
        ends = [node.start_byte, *(child.end_byte for child in node.children)]
        starts = [*(child.start_byte for child in node.children), node.end_byte]
        return ends == starts

    def substitution(self, node: "Node") -> None:
        """Read the commands of a substitution."""
        raise NotImplementedError
