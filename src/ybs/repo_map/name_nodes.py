"""Name nodes: where the name of a definition stands in its node, whatever the grammar."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

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
