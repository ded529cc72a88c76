"""File changes of a tool call as data: frontends draw them, count them or show them in an editor."""

from msgspec import Struct


class FileChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change to one file; `path` is relative to the session's folder if the file is in it, else absolute.

    `before` is None if the file did not exist, `after` if it was deleted; `added` and `removed` count lines. Both texts
    are the whole file if it is small, else the lines from `first_line` on that include every change (`tools/editing/diff.py`
    has the sizes). Texts that are not available are empty, and `omitted` says why in a few words.
    """

    path: str
    before: str | None
    after: str | None
    added: int = 0
    removed: int = 0
    first_line: int = 1
    omitted: str = ""

    def without_texts(self, reason: str) -> "FileChange":
        """Return the change without the contents of the file."""
        return FileChange(
            path=self.path,
            before=None if self.before is None else "",
            after=None if self.after is None else "",
            added=self.added,
            removed=self.removed,
            omitted=reason,
        )
