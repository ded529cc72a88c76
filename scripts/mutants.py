"""The small changes that mutate.py tries: what each does to a module, and how it is named."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SWAPPED: Mapping[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: where, what, and the whole text of the file with it."""

    file: Path
    line: int
    statement: (
        int  # the first line of the statement, for coverage does not name each line of a long one
    )
    change: str
    text: str

    @property
    def name(self) -> str:
        """How the list of equivalent ones names it: by the words of the line, for its number changes."""
        words = self.file.read_text().splitlines()[max(self.line - 1, 0)].strip()
        return f"{self.file.relative_to(ROOT)}: {self.change}: {words}"


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    tree = ast.parse(file.read_text())
    untouched = _declarations(tree)
    for node, statement in _with_statements(tree, 0):
        if id(node) in untouched:
            continue
        before = dict(vars(node))
        for change in _changes(node):
            line = getattr(node, "lineno", 0)
            yield Mutant(file, line, statement, change, ast.unparse(tree))
            vars(node).update(before)


def _with_statements(node: ast.AST, statement: int) -> Iterator[tuple[ast.AST, int]]:
    """Yield each node below with the first line of the statement it is part of."""
    for below in list(ast.iter_child_nodes(node)):
        line = below.lineno if isinstance(below, ast.stmt) else statement
        yield below, line
        yield from _with_statements(below, line)


def _declarations(tree: ast.AST) -> set[int]:
    """Return the identities of the nodes that only the type checker reads: what type something has, how a record is made."""
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(keywords=keywords):
                found += [each.value for each in keywords if each.arg in ("frozen", "kw_only")]
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                found.append(node)
            case _:
                pass
        notes = (getattr(node, field, None) for field in ("annotation", "returns"))
        found += [note for note in notes if isinstance(note, ast.AST)]
    return {id(below) for each in found for below in ast.walk(each)}


def _changes(node: ast.AST) -> Iterator[str]:
    """Change the node in place, once for each way, and say how."""
    yield from _other_operators(node)
    yield from _other_branches(node)
    yield from _other_values(node)


def _other_operators(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare(ops=[old]) if type(old) in SWAPPED:
            new = SWAPPED[type(old)]()
            node.ops = [new]  # pyright: ignore[reportAttributeAccessIssue] - an operator for another
        case ast.BoolOp(op=old) | ast.BinOp(op=old) if type(old) in SWAPPED:
            new = SWAPPED[type(old)]()
            node.op = new  # pyright: ignore[reportAttributeAccessIssue] - likewise
        case _:
            return
    yield f"{type(old).__name__} -> {type(new).__name__}"


def _other_branches(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            for value in (True, False):
                node.test = ast.copy_location(ast.Constant(value), test)
                yield f"if {value}"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            node.operand = ast.UnaryOp(ast.Not(), operand)
            yield "not not"
        case _:
            return


def _other_values(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=bool() as value):
            node.value = not value
            yield f"{value} -> {not value}"
        case ast.Constant(value=int() as value):
            node.value = value + 1
            yield f"{value} -> {value + 1}"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            node.value = ast.copy_location(ast.Constant(None), value)
            yield "return None"
        case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):
            return  # the type checker reads it, nobody runs it
        case ast.Expr(value=ast.Call() | ast.Await()):
            node.value = ast.copy_location(ast.Constant(None), node.value)
            yield "call left out"
        case ast.AugAssign():
            node.value = ast.copy_location(ast.Constant(0), node.value)
            yield "not added"
        case _:
            return
