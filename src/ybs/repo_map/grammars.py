"""Grammars: the parser of each language, and the query that finds definitions and uses in its trees."""

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # tree-sitter is loaded with the first file that is parsed
    from tree_sitter import Language, Query

#: Language: the module of its grammar, the function in it, and the files of its query.
_GRAMMARS = {
    "python": ("tree_sitter_python", "language", "python"),
    "javascript": ("tree_sitter_javascript", "language", "javascript javascript_only jsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript", "javascript typescript_only"),
    "tsx": ("tree_sitter_typescript", "language_tsx", "javascript typescript_only jsx"),
    "go": ("tree_sitter_go", "language", "go"),
    "rust": ("tree_sitter_rust", "language", "rust"),
    "java": ("tree_sitter_java", "language", "java"),
    "c": ("tree_sitter_c", "language", "c"),
    "cpp": ("tree_sitter_cpp", "language", "c cpp_only"),
    "csharp": ("tree_sitter_c_sharp", "language", "csharp"),
    "ruby": ("tree_sitter_ruby", "language", "ruby"),
    "php": ("tree_sitter_php", "language_php", "php"),
    "bash": ("tree_sitter_bash", "language", "bash"),
}


@cache
def grammar_of(language: str) -> "tuple[Language, Query] | None":
    """Return the grammar and its query; None when there is none, or it cannot be loaded here."""
    if language not in _GRAMMARS:
        return None
    module, function, files = _GRAMMARS[language]
    try:
        from tree_sitter import Language, Query

        pointer: object = getattr(import_module(module), function)()
        grammar = Language(pointer)
    except ImportError:  # no wheel of it for this machine: the words of the file still count
        return None
    folder = Path(__file__).parent / "queries"
    text = "".join((folder / f"{name}.scm").read_text("utf-8") for name in files.split())
    return grammar, Query(grammar, text)
