"""What a reply looks like where it is shown: as lines, as a frontend lays them out."""

from ybs.frontends.layout import lines_of
from ybs.session.reply import Reply


def shown(reply: Reply, *, columns: int = 80) -> str:
    """Return all that a reply says, a menu listed."""
    return "\n".join(lines_of(reply, columns))
