"""The undo record of a turn, and its state after an undo or redo."""

from msgspec import Struct


class KeptTurn(Struct, frozen=True, kw_only=True):
    """What a turn changed and was kept under a name.

    `unkept` are changed paths that no undo brings back, `shared` those that somebody else changed during the turn as well.
    `are_edits`: all of them were files before, and are files now. `made` are files that commands made and no tool named.
    """

    name: str
    paths: tuple[str, ...] = ()
    unkept: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    are_edits: bool = False
    made: tuple[str, ...] = ()


class Restored(Struct, frozen=True, kw_only=True):
    """What an undo or redo did: all or nothing.

    `conflicts` are paths that somebody else changed since, or where nothing may be written; while there are some
    nothing is done. `unkept` are paths that cannot be brought back, `left` ignored files that somebody else changed since,
    `stayed` folders that are not empty, and `beyond` says why commands may have changed more. `problem` says what ended it half-way, in words for the person: done once more it goes on.
    `overwritten` names what a forced undo found, itself a checkpoint: to undo that brings all of it back.
    """

    paths: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    unkept: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    stayed: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    is_done: bool = False
    problem: str = ""
    overwritten: str = ""


class Recovered(Struct, frozen=True, kw_only=True):
    """What a turn that was killed had changed; `has_more` tells that commands changed more, or may have."""

    kept: KeptTurn | None
    has_more: bool
