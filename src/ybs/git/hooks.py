"""The hooks of a repository that check a commit: they run in the sandbox before ybs commits, and one that fails prevents it.

Git's own order: `pre-commit`, `prepare-commit-msg`, `commit-msg`. The project is read-only to them, so that what is
committed is what the turn left. (https://git-scm.com/docs/githooks)
"""

import os
from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.core.wording import listed

if TYPE_CHECKING:
    from ybs.git.client import Git

_NAMES = ("pre-commit", "prepare-commit-msg", "commit-msg")
AFTER_COMMIT, AFTER_CHECKOUT = "post-commit", "post-checkout"
#: All that git itself runs for a commit.
COMMIT_HOOKS = (*_NAMES, AFTER_COMMIT)
_MOST_LINES = 12
CONFINED = "It ran in the sandbox: no network, an empty home folder, the project read-only."


class HookRun(Struct, frozen=True, kw_only=True):
    """How a shell command in the sandbox ended; `exit_code` is None where its time was over."""

    exit_code: int | None
    stdout: str
    stderr: str


#: Runs a shell command in the sandbox with the project read-only. Raises ToolError where it cannot be run.
RunScript: TypeAlias = Callable[[str], Awaitable[HookRun]]


class HookFailed(Exception):
    """A hook did not let the commit pass; the text says which, how, and what it printed."""


async def hooks_folder(git: "Git") -> Path:
    """Return where the hooks of a repository lie. Raises GitError."""
    repository = git.repository()
    if not (named := await git.setting("core.hookspath")):
        return repository.common_folder / "hooks"
    home = git.environ.get("HOME", "")
    return repository.work_tree / (home + named[1:] if named.startswith("~/") else named)


def hooks_in(folder: Path, names: Sequence[str] = _NAMES) -> list[Path]:
    """Return the hooks in a folder that git would run, in the order in which it does."""
    paths = (folder / name for name in names)
    return [path for path in paths if path.is_file() and os.access(path, os.X_OK)]


async def left_undone(git: "Git", names: Sequence[str]) -> str:
    """Return what git itself would do and ybs's own git does not: run these hooks, sign a commit; empty if nothing."""
    hooks = [path.name for path in hooks_in(await hooks_folder(git), names)]
    said: list[str] = []
    if AFTER_COMMIT in names and await git.signs():
        said.append("The commit is not signed, although commit.gpgSign is set")
    if hooks:
        said.append(f"Without {listed(hooks)}: ybs's own git starts no hook")
    return "".join(f"{each}. " for each in said).rstrip()


def digest_of(hooks: Sequence[Path]) -> str:
    """Return what changes with a hook's place or content. Raises OSError."""
    found = blake2b(digest_size=20)
    for path in hooks:
        data = path.read_bytes()
        found.update(f"{path}\0{len(data)}\0".encode(errors="surrogateescape") + data)
    return found.hexdigest()


async def checked(
    run: RunScript, hooks: Sequence[Path], top: Path, index: str, message: str
) -> str:
    """Run the hooks on an index file that holds what is to be committed; return the message as they left it.

    Raises HookFailed.
    """
    for hook in hooks:
        try:
            ran = await run(_script(hook, top, index, message))
        except ToolError as error:
            raise HookFailed(f"the hook {hook.name} could not be run: {error}") from error
        if ran.exit_code != 0:
            raise HookFailed(_failure(hook, ran))
        if hook.name != _NAMES[0]:
            message = ran.stdout.strip() or message
    return message


def _script(hook: Path, top: Path, index: str, message: str) -> str:
    begin = f"cd {quote(str(top))} && export GIT_INDEX_FILE={quote(index)} GIT_EDITOR=:"
    if hook.name == _NAMES[0]:
        return f"{begin} && exec {quote(str(hook))}"
    kind = " message" if hook.name == _NAMES[1] else ""
    return (
        f"{begin} && file=$(mktemp) && printf '%s\\n' {quote(message)} > \"$file\""
        f' && {quote(str(hook))} "$file"{kind} >&2 && cat "$file"'
    )


def _failure(hook: Path, ran: HookRun) -> str:
    how = "took too long" if ran.exit_code is None else f"failed (exit code {ran.exit_code})"
    printed = f"{ran.stdout}\n{ran.stderr}".strip().splitlines()
    shown = [f"  {line}" for line in printed[-_MOST_LINES:]]
    return "\n".join([f"the hook {hook.name} {how}. {CONFINED}", *shown])
