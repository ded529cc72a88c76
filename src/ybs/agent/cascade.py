"""The cascade of a session: its check is a command that runs in the sandbox, as one that the person typed does."""

from ybs.agent.environment import ToolEnvironment
from ybs.config.router import Cascade
from ybs.core.errors import ToolError
from ybs.router.ensemble import CascadeGuard, Checked
from ybs.router.model import RoutedModel

#: The end of what a check printed says why it failed; so many characters of it are told.
_TAIL = 4_000


def cascade(model: RoutedModel, settings: Cascade, environment: ToolEnvironment) -> CascadeGuard:
    """Return the guard that checks the work of a routed model."""
    return CascadeGuard(model, settings, lambda: run_check(settings, environment))


async def run_check(settings: Cascade, environment: ToolEnvironment) -> Checked | None:
    """Run the check in an environment; None where it may not be run. Nobody is asked: the person's own settings name the command."""
    from ybs.tools.builtin.run_shell import Arguments, RunShell

    if environment.permissions.is_dry_run or environment.policy.mode == "plan":
        return None
    if environment.policy.blocked(settings.check):
        return None
    shell = RunShell(environment.workspace)
    arguments = Arguments(command=settings.check, timeout=settings.timeout_seconds)
    try:
        shell.preview(arguments)
        ran = await shell.run(arguments, lambda _text: None)
    except ToolError as error:
        return Checked(is_good=False, output=str(error))
    return Checked(is_good=not ran.is_error, output=ran.output[-_TAIL:])
