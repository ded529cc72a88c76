"""How a hook is run: the person's own outside of the sandbox, those of a project and of plugins in it, and own ones that ask for it."""

import asyncio
import os
import shlex
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

from ybs.agent.environment import ToolEnvironment
from ybs.agent.user_hooks.definitions import OWN, Hook, HookAnswer, failed, not_started, read_answer
from ybs.config.variables import project_variables
from ybs.core.errors import ToolError
from ybs.security.own_programs import IN_PROJECT, Start, with_git_setting
from ybs.security.paths.steps import check_ways
from ybs.security.sandbox.launch import Access, Launch, StartReport
from ybs.security.sandbox.places import seen_path
from ybs.tools.external.program import MOST_CHARS, ProgramResult, input_of
from ybs.tools.shell.output import CommandOutput
from ybs.tools.shell.process import Shell, ShellCommand, run_command

_PAUSED = '; jobs in the background were paused meanwhile, and it may have waited for one ("cwd": "project" in its entry has none paused)'


async def run_hook(
    hook: Hook,
    given: bytes,
    environment: ToolEnvironment,
    *,
    trusts_files: bool = False,
    paused: int = 0,
) -> HookAnswer:
    """Run a hook with its input and return what it says; what goes wrong is a note for the person.

    One of the person's own learns whether they trust the places of all files that it is told of. `paused` commands stand still meanwhile.
    """
    try:
        with closing(StartReport()) as report:
            ran = await _run(hook, given, environment, report, trusts_files=trusts_files)
    except (ToolError, OSError) as error:
        is_unbuilt = isinstance(error, OSError) and hook.source != "own"
        return not_started(hook, f"could not be started: {error}", is_unbuilt=is_unbuilt)
    if ran.timed_out:
        why = f"did not end within {hook.seconds:g} s and was stopped"
        return failed(hook, f"{why}{_PAUSED if paused else ''}")
    return read_answer(hook, ran, at_terminal=environment.permissions.at_terminal)


async def _run(
    hook: Hook,
    given: bytes,
    environment: ToolEnvironment,
    report: StartReport,
    *,
    trusts_files: bool,
) -> ProgramResult:
    shells = environment.workspace.shells
    own_programs = environment.workspace.own_programs
    cwd = hook.cwd or (IN_PROJECT if hook.source == "own-sandboxed" else "")
    start = await asyncio.to_thread(own_programs.start, cwd, in_sandbox=hook.source != "own")
    making = partial(_launch, hook, environment, start, report, trusts_files=trusts_files)
    made = await asyncio.to_thread(making)
    launch, mark = shells.marked(made)
    output = CommandOutput(MOST_CHARS)
    command = ShellCommand(
        launch=launch,
        # The sandbox begins in the project, and the command leaves it.
        folder=start.folder if hook.source == "own" else environment.folder,
        mark=mark,
        output=output,
        watch=shells.watch,
        given=input_of(given),
    )
    ended = await run_command(command, hook.seconds)
    if isinstance(ended, Shell):  # it stands nowhere, so nobody can hand it over
        raise ToolError("it was sent to the background")
    is_gone = start.is_apart and _is_gone(hook.command, output.stderr.text(), environment)
    return ProgramResult(
        exit_code=ended.exit_code,
        how=ended.how,
        answer=output.stdout.whole(),
        text=output.stdout.text().strip(),
        errors=output.stderr.text().strip(),
        timed_out=ended.timed_out,
        why_apart="" if is_gone else start.why,
        has_begun=ended.timed_out or report.has_begun,
    )


def _is_gone(command: str, errors: str, environment: ToolEnvironment) -> bool:
    """Return whether a hook failed for a file that it names by its whole path: where it started has nothing to do with that."""
    paths = _named(command, environment)
    return any(path in errors and not os.path.lexists(path) for path in paths)


def _named(command: str, environment: ToolEnvironment) -> list[str]:
    """Return the whole paths that a command names."""
    home = str(environment.host.home)
    try:
        words = shlex.split(command.replace("${HOME}", home).replace("$HOME", home))
    except ValueError:  # an open quote
        return []
    paths = (environment.host.with_home(word) for word in words)
    return [path for path in paths if path.startswith("/")]


def _launch(
    hook: Hook,
    environment: ToolEnvironment,
    start: Start,
    report: StartReport,
    *,
    trusts_files: bool,
) -> Launch:
    command = ("/bin/sh", "-c", hook.command)
    added = variables(hook, environment.folder)
    if hook.source == "own":
        added = {**added, "YBS_FILES_TRUSTED": str(int(trusts_files))}
        return Launch(command, with_git_setting({**start.environ, **added}))
    read_only = hook.source == "project" and _is_read_only(hook, environment, start)
    if hook.source not in OWN and (not read_only or environment.sandbox.is_off):
        # What lies in a `__pycache__` of the project is not bound to the trust, and Python would run it.
        added = {**added, "PYTHONPYCACHEPREFIX": os.devnull}
    starter = environment.workspace.shells.starter
    starter.check()
    shown = [Path(hook.root)] if hook.root else []
    if hook.source == "own-sandboxed":  # its script
        named = map(Path, _named(hook.command, environment))
        outside = (path for path in named if not path.is_relative_to(environment.folder))
        files = [path for path in outside if path.is_file()]
        if not environment.sandbox.is_off:
            check_ways(environment.host, files, [str(environment.folder)])
        shown += filter(starter.may_show, files)
    access = Access(
        shown=tuple(shown),
        declared=with_git_setting(added),
        read_only=read_only,
        is_alone=True,
        is_persons=hook.source != "project",
        report=report,
    )
    environ = start.environ
    if not environment.sandbox.is_off:
        environ = {**environ, "PATH": seen_path(environ, environment.host.home, environment.folder)}
    return starter.start(start.command(command), environment.folder, environ, access)


def variables(hook: Hook, folder: Path) -> Mapping[str, str]:
    """Return the variables that a hook has besides: the project's folder, and that of its plugin."""
    named = project_variables(folder)
    return {**named, "CLAUDE_PLUGIN_ROOT": hook.root} if hook.root else named


def _is_read_only(hook: Hook, environment: ToolEnvironment, start: Start) -> bool:
    """Return whether a hook of the project only reads that, as one does that runs files of it which nobody has seen.

    Raises ToolError where a file of the project that the command reaches is not what was trusted.
    """
    from ybs.trust.decision import reach_unchanged

    review, is_open = environment.loaded.review, False
    home, path = environment.host.home, start.environ.get("PATH", os.defpath)
    for folder in {environment.folder.resolve(), *([review.folder] if review else [])}:
        is_open |= bool(reach_unchanged(review, hook.command, folder, home, path).unknown)
    return hook.project == "read" or (is_open and hook.project != "write")
