"""Menus written down as lines, for doors that cannot offer them."""

from ybs.session.figures import in_columns
from ybs.session.reply import Menu


def rows_of(menu: Menu) -> list[str]:
    """Write the items down, numbered, the one in use marked."""
    width = len(str(len(menu.items)))
    return in_columns(
        [
            (f"{'*' if item.is_current else ' '} {number:>{width}}", item.label, item.detail)
            for number, item in enumerate(menu.items, 1)
        ]
    )
