"""Tags: what a source file defines, and the names it uses, read by a tree-sitter grammar."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ybs.repo_map.languages import is_packed, utf8_of
from ybs.security.unicode import printable

if TYPE_CHECKING:  # tree-sitter is loaded with the first file that is parsed
    from tree_sitter import Language, Node, Query, Tree

#: Larger sources are few, and made by tools; the tree of a hostile text takes a thousand times its bytes.
LARGEST_BYTES = 600_000
#: A file of this size takes a tenth of a second; more is a text made to be slow.
_MOST_SECONDS = 1.5
#: Definitions in more brackets than these are not looked for: a query's time grows with the square of the depth.
_MOST_DEPTH = 200
_MOST_DEFINITIONS = 5_000
_MOST_MATCHES = 50_000
#: Where `<` may open a type or compare, so many of them in one statement take gigabytes when the text ends in them,
#: and the parser asks nobody then.
_OPENING, _MOST_OPEN = frozenset(("csharp", "java")), 3_000
#: So many nodes are looked at for mistakes, and so many tokens may be in one.
_MOST_MISTAKES = 10_000
_LARGEST_HEAP = 3_000
_CHUNK_BYTES = 65_536
_LONGEST_NAME = 160
#: What makes a method of a function in it.
_CLASSES = frozenset(("class", "struct", "enum", "interface", "trait", "impl"))
_PARENTS = _CLASSES | {"module", "namespace", "function", "method"}
#: Kinds that a more exact pattern overrules.
_VAGUE = ("constant", "type")
#: No name but an expression in its place.
_NO_NAME = re.compile(rb"[\s\"'`(]|\A_\Z")
#: What the grammar of C takes for a function where macros break it.
_STATEMENTS = frozenset((b"if", b"for", b"while", b"switch", b"return", b"else", b"do"))
_IMPORT = re.compile(r"= ?(?:await import|require)\b")


class Tag(Struct, frozen=True):
    """A definition: its name, what it is, where it stands, and how it is written.

    `kind` is class, struct, enum, interface, trait, impl, type, function, method, property, constant, macro, module,
    namespace, or declaration: a function of C or C++ whose body is elsewhere. An impl has the name of its type.
    `parent` is the name of the definition around it.
    """

    name: str
    kind: str
    line: int
    end_line: int
    signature: str
    parent: str = ""


class Tags(Struct, frozen=True):
    """What a file defines, in the order of the text, and how often it uses which names."""

    definitions: tuple[Tag, ...] = ()
    references: dict[str, int] = {}


_NOTHING = Tags()


class _Found(NamedTuple):
    start: int
    end: int
    kind: str
    name: str
    place: int  # of the name
    line: int
    owner: str
    node: "Node"


def tags_of(data: bytes, language: str) -> Tags:
    """Return the tags of a source text; empty where no grammar reads it, or not in time. Never raises."""
    if not data or len(data) > LARGEST_BYTES or is_packed(data):
        return _NOTHING
    grammar = grammar_of(language)
    if grammar is None:
        return _NOTHING
    source = utf8_of(data).replace(
        b"\0", b" "
    )  # over zeros, the lexer of Bash takes the square of their number
    if language in _OPENING and _opened(source) > _MOST_OPEN:
        return _NOTHING
    tree = _parse(source, grammar[0])
    if tree is None or _is_hopeless(tree.root_node):
        return _NOTHING
    captures = _capture(tree, grammar[1])
    uses = captures.pop("use", []), captures.pop("class-use", [])
    found = _find_all(source, captures)
    return Tags(
        tuple(_tags(source, found)), _references(source, {one.place for one in found}, *uses)
    )


def _opened(source: bytes) -> int:
    """Return how many `<` are in the one statement that has most of them."""
    if source.count(b"<") <= _MOST_OPEN:
        return 0
    return max(part.count(b"<") for part in re.split(rb"[;{}]", source))


def _parse(source: bytes, grammar: "Language") -> "Tree | None":
    from tree_sitter import Parser

    deadline = monotonic() + _MOST_SECONDS
    try:
        return Parser(grammar).parse(
            lambda place, _: source[place : place + _CHUNK_BYTES],
            progress_callback=lambda _, __: monotonic() > deadline,
        )
    except ValueError:  # it was stopped
        return None


def _capture(tree: "Tree", query: "Query") -> "dict[str, list[Node]]":
    from tree_sitter import QueryCursor

    # Its progress callback is not used: of tree-sitter 0.26.1 it ends the process when it is called often.
    cursor = QueryCursor(query, match_limit=_MOST_MATCHES)
    cursor.set_max_start_depth(_MOST_DEPTH)
    return cursor.captures(tree.root_node)


def _is_hopeless(root: "Node") -> bool:
    """Return whether a great part of a text is not code: a query's time grows with the square of such a heap."""
    doubtful = [root] if root.has_error else []
    for _ in range(_MOST_MISTAKES):
        if not doubtful:
            return False
        node = doubtful.pop()
        if node.is_error and node.child_count > _LARGEST_HEAP:
            return True
        doubtful += [child for child in node.children if child.has_error]
    return True


def _find_all(source: bytes, captures: "dict[str, list[Node]]") -> list[_Found]:
    """Return the definitions in the order of the text, outer ones first."""
    found: dict[int, _Found] = {}
    for kind in sorted(captures, key=lambda kind: kind not in _VAGUE):
        for node in captures[kind][:_MOST_DEFINITIONS]:
            one = _find(source, node, kind)
            if one is not None:
                found[node.id] = one
    return sorted(found.values(), key=lambda one: (one.start, -one.end))[:_MOST_DEFINITIONS]


def _find(source: bytes, node: "Node", kind: str) -> _Found | None:
    named = name_of(node)
    if named is None:
        return None
    place, end = named[0].byte_range
    text = source[place:end].strip(b"\"'")
    if not text or len(text) > _LONGEST_NAME or _NO_NAME.search(text):
        return None
    if kind == "function":
        kind = _of_function(source, node, text)
        if not kind:
            return None
    owner = "" if named[1] is None else _owner(source[slice(*named[1].byte_range)])
    line = named[0].start_point.row + 1
    return _Found(*node.byte_range, kind, _text(text), place, line, owner, node)


def _of_function(source: bytes, node: "Node", name: bytes) -> str:
    """See through what the grammars of C make of macros: `class EXPORTED A {` is not a function, nor is `else if`."""
    declarator = node.child_by_field_name("declarator")
    if declarator is None or declarator.type != "identifier":
        return "" if name in _STATEMENTS else "function"
    return "class" if source.startswith((b"class ", b"struct "), node.start_byte) else ""


def _owner(text: bytes) -> str:
    """Return the class in front of a method: `Name` of `Name<T>::`, or of `(self *Name[T])`."""
    words = re.split(rb"[<\[]", text, maxsplit=1)[0].strip(b"()*& ").rpartition(b"::")[2].split()
    return _text(words[-1].strip(b"*&")[:_LONGEST_NAME]) if words else ""


def _tags(source: bytes, found: list[_Found]) -> Iterator[Tag]:
    around: list[tuple[int, str, str]] = []  # where it ends, its kind and name
    for one in found:
        while around and around[-1][0] <= one.start:
            around.pop()
        _, outer, parent = around[-1] if around else (0, "", "")
        if outer == "type" and parent == one.name:  # typedef struct A {} A
            continue
        kind = _kind(one, outer)
        signature = signature_of(source, one.node, kind)
        if kind == "constant" and _IMPORT.search(signature):
            continue
        if kind in _PARENTS or kind == "type":
            around.append((one.end, kind, one.name))
        row, column = one.node.end_point
        end_line = row + 1 if column else row  # of a #define, the line break is a part
        yield Tag(one.name, kind, one.line, end_line, signature, one.owner or parent)


def _kind(one: _Found, outer: str) -> str:
    """Call a function in a class a method, and a method in none a function."""
    if one.kind == "function" and (one.owner or outer in _CLASSES):
        return "method"
    if one.kind == "method" and not one.owner and outer not in _CLASSES and outer != "module":
        return "function"
    return one.kind


def _references(
    source: bytes, names: set[int], uses: "list[Node]", maybe: "list[Node]"
) -> dict[str, int]:
    """Count the names at these places, each place once; of the second list those that look like a class."""
    seen = names
    counts: Counter[bytes] = Counter()
    for node in uses:
        place, end = node.byte_range
        if place not in seen:
            seen.add(place)
            counts[source[place:end]] += 1
    for node in maybe:
        place, end = node.byte_range
        if place not in seen and source[place : place + 1].isupper():
            counts[source[place:end]] += 1
    return {
        _text(name.removeprefix(b":")): count  # the symbols of Ruby
        for name, count in counts.items()
        if 0 < len(name) <= _LONGEST_NAME and name != b":"
    }


def _text(name: bytes) -> str:
    return one_printable_line(name.decode("utf-8", "replace"), _LONGEST_NAME)


LONGEST_SIGNATURE = 200
_READ_BYTES = 1_000
_OF_ONE_LINE = ("constant", "macro")
#: So far back on its line are looked for the words in front of a definition: `export const`, `pub`.
_PREFIX_BYTES = 60
_PREFIX = re.compile(rb"\n?[ \t]*([\w \t<>]*)\Z")
#: Annotations, attributes and decorators in front.
_ANNOTATIONS = re.compile(
    r"(?>(?:(?:@(?!interface\b)[\w.]++(?:\((?>(?:[^()\"]|\"[^\"]*+\"|\([^()]*+\))*)\))?|#?\[\[?\w[^\[\]]*+\]\]?) )+)"
)
#: Where the lines of a broken list were joined.
_SEAMS = re.compile(r"([(\[]) |,? ([)\]])")
#: A lifetime of Rust is not a quote: it stands behind & or <, or follows on another word.
_LONG_STRING = re.compile(r"\"[^\"]{40,}+\"|(?<![&<])'[^']{40,}+(?<![&<])(?<![+:,] )'|`[^`]{40,}+`")


def signature_of(source: bytes, node: "Node", kind: str) -> str:
    """Return the head of a definition in one line, without its body."""
    start = _start(source, node)
    body = _body(node)
    ends = (part.start_byte for part in (body, _comment(node)) if part is not None)
    head = source[start : min(node.end_byte, start + _READ_BYTES, *ends)]
    if kind in _OF_ONE_LINE:
        head = head.lstrip().partition(b"\n")[0].rstrip(b"\r\\ ")
    elif body is None and kind != "type":
        head = head.partition(b"{")[0].partition(b"\n\n")[0]
    line = _SEAMS.sub(r"\1\2", " ".join(head.decode("utf-8", "replace").split()))
    if kind == "type" and len(line) > LONGEST_SIGNATURE // 2:
        line = re.sub(r"\{.*", "{", line)
    line = _LONG_STRING.sub('"..."', _ANNOTATIONS.sub("", line, count=1)).rstrip(" {:;")
    return one_printable_line(line, LONGEST_SIGNATURE)


def one_printable_line(text: str, most: int) -> str:
    """Return a text that can be printed, cut to `most` characters."""
    text = text if text.isprintable() else printable(text).replace("\n", " ")
    return text if len(text) <= most else text[: most - 3].rstrip() + "..."


def _start(source: bytes, node: "Node") -> int:
    """Begin at the words in front of the definition, when nothing else stands on its line."""
    start = node.start_byte
    low = max(0, start - _PREFIX_BYTES)
    line = source.rfind(b"\n", low, start)
    if line < 0 and low:
        return start
    found = _PREFIX.match(source, max(line, 0), start)
    return found.start(1) if found else start


def _body(node: "Node") -> "Node | None":
    body = node.child_by_field_name("body") or node.child_by_field_name("accessors")
    if body is not None:
        return body
    for field in ("value", "right"):  # a function that is given to a name
        value = node.child_by_field_name(field)
        if value is not None and (body := value.child_by_field_name("body")) is not None:
            return body
    return None


def _comment(node: "Node") -> "Node | None":
    """Return the first comment that follows on the head."""
    for child in node.children[1:]:
        if child.type.endswith("comment"):
            return child
    return None


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


#: Fields that lead from a definition to its name, the likeliest first.
_FIELDS = ("name", "declarator", "left", "key", "property", "type")
#: Nodes that hold the name without a field for it: as their first part, or as their last.
_FIRST = frozenset(
    ("const_element", "generic_type", "parenthesized_declarator", "reference_declarator", "type")
)
_LAST = frozenset(("field_declaration", "variable_declaration"))
#: Names of more than one part: `value=` of Ruby.
_WHOLE = frozenset(("setter",))
#: No grammar wraps a name deeper; a hostile text does.
_MOST_STEPS = 12


def name_of(node: "Node") -> "tuple[Node, Node | None] | None":
    """Return the node of a definition's name, and that of the class it is said to belong to (`Class::method`)."""
    owner = node.child_by_field_name("receiver")
    for _ in range(_MOST_STEPS):
        inner = None if node.child_count == 0 or node.type in _WHOLE else _inner(node)
        if inner is None:
            return node, owner
        owner = node.child_by_field_name("scope") or owner
        node = inner
    return None


def _inner(node: "Node") -> "Node | None":
    kind = node.type
    if kind in _LAST and node.child_by_field_name("declarator") is None:
        return node.named_child(node.named_child_count - 1)
    for field in _FIELDS:
        inner = node.child_by_field_name(field)
        if inner is not None:
            return inner
    return node.named_child(0) if kind in _FIRST and node.named_child_count else None
