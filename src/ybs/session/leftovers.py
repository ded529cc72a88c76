"""What a ybs that was killed in the midst of a write left beside the file: one name, which is removed."""

from collections.abc import Iterable
from contextlib import suppress

import msgspec
from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall
from ybs.security.paths.roots import Roots
from ybs.tools.reading.files import remove_leftover


class _Named(Struct):
    path: str


def remove_leftovers(roots: Roots, calls: Iterable[ToolCall]) -> None:
    """Look beside the files that these calls, which never ended, were about."""
    for call in calls:
        with suppress(msgspec.DecodeError, ToolError, OSError):
            path = msgspec.json.decode(call.arguments, type=_Named).path
            with roots.held(roots.resolve(path, is_write=True)) as place:
                remove_leftover(place)
