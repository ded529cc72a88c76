"""The changes of a turn as text: a line for each path, and a unified diff."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ybs.checkpoints.states import Change, State

#: A larger file is named, not compared.
MOST_COMPARED_BYTES = 1_000_000
MOST_CHARS = 2_000_000

Get = Callable[[str], bytes | None]


def line_of(change: Change) -> str:
    """Say what became of a path, as `edited src/a.py`."""
    before, after = change.before, change.after
    slash = "/" if "folder" in (before.kind, after.kind) else ""
    return f"{_verb_of(before, after)} {change.path}{slash}{_detail_of(before, after)}"


def _verb_of(before: State, after: State) -> str:
    if before.kind == "absent":
        return "created"
    if after.kind == "absent":
        return "deleted"
    if before.kind != after.kind:
        return "replaced"
    is_mode = before.digest == after.digest and before.target == after.target
    return "changed the mode of" if is_mode and not after.mark else "edited"


def _detail_of(before: State, after: State) -> str:
    if after.kind == "link":
        return f" (a link to {after.target})"
    if "absent" not in (before.kind, after.kind) and before.mode != after.mode:
        return f" ({before.mode:o} to {after.mode:o})"
    return ""


def diff_of_turn(changes: Iterable[Change], get: Get) -> str:
    """Return the changes as a unified diff; what has no lines to show is named in one. Raises OSError."""
    pieces: list[str] = []
    left = MOST_CHARS
    for change in changes:
        for piece in _pieces(change, get) if left > 0 else (line_of(change),):
            pieces.append(piece)
            left -= len(piece)
    return "\n".join(pieces)


def _pieces(change: Change, get: Get) -> Iterator[str]:
    before, after = change.before, change.after
    line = line_of(change)
    if not change.is_kept:
        yield f"{line} (not kept)"
    elif "file" not in (before.kind, after.kind) or before.digest == after.digest:
        yield line
    elif max(before.size, after.size) > MOST_COMPARED_BYTES:
        yield f"{line} ({before.size:,} to {after.size:,} bytes)"
    else:
        yield from _compared(change, line, get)


def _compared(change: Change, line: str, get: Get) -> Iterator[str]:
    before, after = change.before, change.after
    old, new = _content(before, get), _content(after, get)
    if old is None or new is None:
        yield f"{line} (what was kept of it is gone)"
        return
    is_plain = "absent" in (before.kind, after.kind) or before.mode == after.mode
    if old == new or not is_plain:
        yield line
    from ybs.tools.editing.changes import text_diff  # only who looks at a diff needs it

    if text := text_diff(old, new, change.path).text:
        yield text


def _content(state: State, get: Get) -> bytes | None:
    return get(state.digest) if state.digest else b""


def named(changes: Sequence[Change]) -> tuple[str, ...]:
    """Return the changed paths; of folders only those in which nothing else changed, with a slash at the end."""
    above = {str(folder) for change in changes for folder in Path(change.path).parents}
    named = ((change.path, _is_folder(change)) for change in changes)
    return tuple(
        f"{path}/" if is_folder else path
        for path, is_folder in named
        if not (is_folder and path in above)
    )


def _is_folder(change: "Change") -> bool:
    """Return whether there was and is nothing but a folder."""
    return {change.before.kind, change.after.kind} <= {"folder", "absent"}
