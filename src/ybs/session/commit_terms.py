"""On which terms a session commits: what the settings say, how the person is asked, and how hooks are run."""

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Raw

from ybs.agent.environment import ToolEnvironment
from ybs.config.layers import Loaded
from ybs.core.messages import ToolCall
from ybs.core.ports import Preview, Question
from ybs.git.consent import Asked, CommitWish, Consent
from ybs.git.hooks import HookRun, RunScript
from ybs.security.sandbox.sandbox import WALLED

if TYPE_CHECKING:
    from ybs.config.tree import Layer

#: Who has not said by themselves that there should be commits.
_NOT_THE_PERSON: "tuple[Layer, ...]" = ("default", "project")
_KEY = "git.auto_commit"
_ALWAYS = (
    "Each commit has only files that the turn changed and that were unchanged before it, with a message that says "
    "what changed. Undo takes it back. The answer is kept for this repository."
)


def rule_of(loaded: Loaded) -> Literal["always", "ask", "never"]:
    """Return the settings of commits; where the person has not set it themselves, they are asked."""
    if not loaded.config.git.auto_commit:
        return "never"
    return "ask" if loaded.origins[_KEY].layer in _NOT_THE_PERSON else "always"


def consent_of(environment: ToolEnvironment, ask: Asked) -> Consent:
    """Return the person's word on commits in a session."""
    return Consent(
        environment.host,
        rule_of(environment.loaded),
        ask=ask if environment.is_attended() else None,
        may_write=environment.incognito.may_write,
    )


def question_of(wish: CommitWish) -> Question:
    """Return the question to the person."""
    title = "commit what each turn changes in this repository"
    body = _ALWAYS
    if wish.hooks:
        hooks = ", ".join(wish.hooks)
        title = (
            f"run new hooks of this repository before it commits: {hooks}"
            if wish.are_new
            else title
        )
        body += (
            f"\nThe repository's hooks ({hooks}) run before it in the sandbox, without network and with the project "
            "read-only; where one fails, nothing is committed. You are asked again where one of these files changes, and not where a file "
            "that it runs does."
        )
    return Question(
        call=ToolCall(id="commits", name="ybs", arguments=Raw(b"{}")),
        effect="read",
        preview=Preview(title=title, body=body),
        takes_reason=False,
    )


def hook_runner(environment: ToolEnvironment) -> RunScript | None:
    """Return a function that runs hooks in the session's sandbox; None if there is none."""
    if environment.sandbox.state not in WALLED:
        return None

    async def run(script: str) -> HookRun:
        from ybs.tools.builtin.run_shell import RunShell, RunShellArguments

        shell = RunShell(environment.workspace)
        arguments = RunShellArguments(command=script)
        shell.preview(arguments)
        ran: dict[str, Any] = (await shell.run_read_only(arguments, lambda _: None)).output.display
        code = None if ran["timed_out"] else ran["exit_code"]
        return HookRun(exit_code=code, stdout=ran["stdout"], stderr=ran["stderr"])

    return run
