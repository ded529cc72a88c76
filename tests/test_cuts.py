"""A text of others is cut where no word is cut: what is left of a token would pass the firewall, which masks what was cut before."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ybs

SOURCE = Path(ybs.__file__).parent
#: What works before the firewall: results of tools, and replies of commands, are masked behind it. Frontends get masked texts, and cut them as
#: their screens need it.
BEFORE_THE_FIREWALL = ("tools", "conductor", "commands")
READ = ("core", "security", *BEFORE_THE_FIREWALL)
#: Slices of a text by a constant that stay, and why no secret stands in it or what is cut is not shown.
KEPT = {
    "commands/offers.py text[:_LONGEST_LABEL - 1]": "names of models",
    "conductor/acp/client.py number[:64]": "an id, which is never masked",
    "tools/mcp/listed.py name[:_LONGEST_NAME - 9]": "a name of a tool, which providers cut off",
}
#: Lower numbers take signs off, such as the mark of a line.
LEAST = 8
#: What returns a text where it is called on one, and the types that are cut and are none.
SAME = ("strip", "lstrip", "rstrip", "lower", "upper", "replace", "removeprefix", "removesuffix")
PARTS = ("partition", "rpartition", "split", "rsplit", "splitlines")
OTHER = re.compile(r"bytes|bytearray|list|tuple|Sequence|memoryview|Raw|deque")


class Annotations:
    """What the annotations in the source say to be a text: fields, properties and what functions return, by their names."""

    def __init__(self) -> None:
        places = [path for name in READ for path in (SOURCE / name).rglob("*.py")]
        self.trees = {path: ast.parse(path.read_text("utf-8")) for path in places}
        self.fields = dict[str, set[str]]()
        self.returned = dict[str, set[str]]()
        for node in (node for tree in self.trees.values() for node in ast.walk(tree)):
            if isinstance(node, ast.AnnAssign):
                name = ast.unparse(node.target).rpartition(".")[2]
                self.fields.setdefault(name, set()).add(_said(node.annotation))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.returned.setdefault(node.name, set()).add(_said(node.returns))
                if "property" in map(_said, node.decorator_list):
                    self.fields.setdefault(node.name, set()).add(_said(node.returns))

    def is_text(self, node: ast.expr, names: set[str]) -> bool:
        """Return whether an expression is a text; `names` are texts too."""
        match node:
            case ast.JoinedStr():
                return True
            case ast.Name():
                return node.id in names
            case ast.Attribute():
                said = self.fields.get(node.attr, set())
                return "str" in said and not any(map(OTHER.search, said))
            case ast.Subscript(value=ast.Call(func=ast.Attribute(attr=name, value=of))) if (
                name in PARTS and not isinstance(node.slice, ast.Slice)
            ):
                return self.is_text(of, names)
            case ast.Call():
                return self._gives_text(node.func, names)
            case _:
                return any(self.is_text(each, names) for each in _same_kind(node))

    def _gives_text(self, function: ast.expr, names: set[str]) -> bool:
        match function:
            case ast.Name(id=name):
                return name == "str" or self.returned.get(name) == {"str"}
            case ast.Attribute(attr="join", value=ast.Constant(value=str())):
                return True
            case ast.Attribute(attr=name, value=of) if name in SAME:
                return self.is_text(of, names)
            case ast.Attribute(attr=name):
                return name == "decode" or self.returned.get(name) == {"str"}
            case _:
                return False

    def cuts_in(self, path: Path) -> Iterator[str]:
        """Yield the slices of texts by a constant in a module."""
        for function in ast.walk(self.trees[path]):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                cuts = [*filter(_is_cut, ast.walk(function))]
                names = self._texts_in(function) if cuts else set[str]()
                for cut in cuts:
                    if isinstance(cut, ast.Subscript) and self.is_text(cut.value, names):
                        yield ast.unparse(cut)

    def _texts_in(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
        given = function.args
        arguments = (*given.posonlyargs, *given.args, *given.kwonlyargs)
        said = {each.arg: _said(each.annotation) for each in arguments}
        names = {name for name, kind in said.items() if kind.split(" ")[0] == "str"}
        for _ in range(2):  # a name may stand for one that is assigned below it
            for node in ast.walk(function):
                match node:
                    case ast.Assign(targets=[ast.Name(id=name)]) if self.is_text(node.value, names):
                        names.add(name)
                    case _:
                        pass
        return names


def _same_kind(node: ast.expr) -> list[ast.expr]:
    """Return the parts of an expression that are texts where it is one."""
    match node:
        case ast.BinOp():
            return [node.left, node.right]
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.BoolOp():
            return node.values
        case ast.Subscript(slice=ast.Slice()):
            return [node.value]
        case _:
            return []


def _is_cut(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and (
        isinstance(node.slice, ast.Slice)
        and any(map(_is_constant, (node.slice.lower, node.slice.upper)))
    )


def _said(annotation: ast.expr | None) -> str:
    return (
        annotation.id
        if isinstance(annotation, ast.Name)
        else ast.unparse(annotation)
        if annotation
        else ""
    )


def _is_constant(bound: ast.expr | None) -> bool:
    match bound:
        case ast.Constant(value=int()):
            return bound.value >= LEAST
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
        case ast.UnaryOp(operand=inner) | ast.BinOp(left=inner, right=ast.Constant()):
            return _is_constant(inner)
        case _:
            return False


@pytest.mark.integration
@pytest.mark.timeout(60)
def test_before_the_firewall_no_text_is_cut_but_between_words() -> None:
    """Cut one with `ybs.core.cutting`. The rule knows a text by its annotations: a list of texts is not followed."""
    annotations = Annotations()
    found = {
        f"{path.relative_to(SOURCE)} {cut}"
        for path in annotations.trees
        if path.relative_to(SOURCE).parts[0] in BEFORE_THE_FIREWALL
        for cut in annotations.cuts_in(path)
    }
    assert found == set(KEPT), found ^ set(KEPT)


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("def f(text: str): return text[:200]", True),
        ("def f(text: str): return text[-_MOST:]", True),
        ("def f(a: str):\n b = a.strip().partition('x')[0]\n return b[: _MOST - 1]", True),
        ("def f(x): return ' '.join(x)[:80]", True),
        ("def f(event): return f'{event}'[:80]", True),
        ("def f(text: str): return text[:1]", False),
        ("def f(text: str, most: int): return text[:most]", False),
        ("def f(data: bytes): return data[:200]", False),
        ("def f(names: list[str]): return names[:_MOST]", False),
    ],
)  # fmt: skip
def test_the_rule_finds_what_it_is_for(code: str, *, is_found: bool) -> None:
    annotations = Annotations.__new__(Annotations)
    annotations.trees = {Path("x"): ast.parse(code)}
    annotations.fields, annotations.returned = {}, {}
    assert any(annotations.cuts_in(Path("x"))) is is_found
