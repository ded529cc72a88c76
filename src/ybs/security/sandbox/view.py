"""The view of a confined program: the paths of the project that it sees."""

from msgspec import Struct


class SandboxView(Struct, frozen=True, kw_only=True):
    """What one git process sees, as absolute paths without links; it starts in `folder`, which may be empty.

    `shown` are folders and files that it may read but for what is `hidden` in them; `git_folders` it may write where it
    `is_writing`.
    """

    folder: str
    git_folders: tuple[str, ...]
    shown: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    is_writing: bool = False
