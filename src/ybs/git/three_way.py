"""Three-way merge of one text file by `git merge-file`, which needs no repository and reads no settings of one."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ybs.git.client import Git
from ybs.git.hardening import GitError, environment
from ybs.security.sandbox.child import Failed
from ybs.security.sandbox.launch import SandboxView

_NAMES = ("ours", "base", "theirs")
#: It counts the conflicts, up to here; beyond it something went wrong, such as a file that is not text.
_MOST_CONFLICTS = 127


async def merged_text(
    environ: Mapping[str, str],
    folder: Path,
    ours: bytes,
    base: bytes,
    theirs: bytes,
    *,
    has_sandbox: bool = True,
) -> bytes | None:
    """Return a text with the changes that `ours` and `theirs` make to `base`; None where both changed the same lines.

    `folder` is an empty one of our own, for the three files. Raises GitError where it is not text or there is no git, and OSError.
    """
    files = [folder / name for name in _NAMES]
    view = (
        SandboxView(folder=str(folder), git_folders=(), shown=(str(folder),))
        if has_sandbox
        else None
    )
    try:
        for file, data in zip(files, (ours, base, theirs), strict=True):
            file.write_bytes(data)
        words = ("merge-file", "--stdout", "--quiet", *map(str, files))
        place = environment(None, {"GIT_WORK_TREE": str(folder)})
        return await Git(environ, folder).start(words, place, None, view)
    except GitError as error:
        cause = error.__cause__
        if isinstance(cause, Failed) and 0 < cause.code <= _MOST_CONFLICTS:
            return None
        raise
    finally:
        for file in files:
            with suppress(OSError):
                file.unlink()
