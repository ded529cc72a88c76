"""The command /autocommit: whether ybs commits what its turns change in this repository."""

from typing import TYPE_CHECKING

from ybs.session.reply import Reply
from ybs.session.session import Session

if TYPE_CHECKING:
    from pathlib import Path

USAGE = "Usage: /autocommit, or /autocommit on, off or ask"
_ON = "ybs commits what each turn changes in this repository."
_OFF = "ybs commits nothing in this repository by itself. /commit does it when you want it."
_ASK = "ybs asks once whether it may commit here, after the first turn that changes something."
_NEVER = "Your settings say no for all repositories: git.auto_commit is false."


async def change_autocommit(session: Session, argument: str) -> Reply:
    """Show, keep or forget the answer for the repository around the folder."""
    from ybs.git.consent import forget, keep
    from ybs.git.hooks import digest_of, hooks_folder, hooks_in
    from ybs.tools.builtin.git_plan import WorkTree

    word = argument.lower()
    if word not in ("", "on", "off", "ask"):
        return Reply(text=USAGE, is_error=True)
    git = WorkTree(session.environment.workspace).git
    repository = git.repository().common_folder
    if not word:
        return _shown(session, repository)
    if not session.environment.incognito.may_write:
        from ybs.security.incognito import WRITES_NOTHING

        return Reply(text=f"It stays as it is: {WRITES_NOTHING}.", is_error=True)
    if word == "ask":
        forget(session.host, repository)
        return _shown(session, repository)
    hooks = hooks_in(await hooks_folder(git)) if word == "on" else []
    digest = digest_of(hooks) if hooks else ""
    keep(session.host, repository, may_commit=word == "on", hooks=digest)
    reply = _shown(session, repository)
    if not hooks or reply.is_error:
        return reply
    names = ", ".join(hook.name for hook in hooks)
    return Reply(text=f"{reply.text}\nIts hooks run before, in the sandbox: {names}.")


def _shown(session: Session, repository: "Path") -> Reply:
    from ybs.git.consent import recall
    from ybs.session.commit_terms import rule_of

    rule, answer = rule_of(session.loaded), recall(session.host, repository)
    if rule == "never":
        return Reply(text=_NEVER, is_error=answer is not None and answer.may_commit)
    if answer is not None:
        return Reply(text=_ON if answer.may_commit else _OFF)
    return Reply(text=f"{_ON} Your settings say so." if rule == "always" else _ASK)
