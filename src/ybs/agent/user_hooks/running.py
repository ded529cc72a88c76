"""One run of a hook: the person's own as their program, every other one in the sandbox; its end is certain either way."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from ybs.agent.environment import ToolEnvironment
from ybs.agent.user_hooks.answers import HookAnswer, failed, read_answer
from ybs.agent.user_hooks.definitions import Hook
from ybs.config.document import visible
from ybs.core.errors import ToolError
from ybs.security.sandbox.launch import Access, Launch
from ybs.tools.external.program import MOST_CHARS, Ran, input_of
from ybs.tools.shell.output import Output
from ybs.tools.shell.process import Command, Shell, run_command


async def run_hook(hook: Hook, given: bytes, environment: ToolEnvironment) -> HookAnswer:
    """Run a hook with its input and return what it says; what goes wrong is a note for the person."""
    try:
        ran = await _run(hook, given, environment)
    except (ToolError, OSError) as error:
        return failed(hook, f"could not be run: {error}")
    if ran.timed_out:
        return failed(hook, f"did not end within {hook.seconds:g} s and was stopped")
    return read_answer(hook, ran)


async def _run(hook: Hook, given: bytes, environment: ToolEnvironment) -> Ran:
    shells = environment.workspace.shells
    launch, mark = shells.marked(await asyncio.to_thread(_launch, hook, environment))
    output = Output(MOST_CHARS)
    command = Command(
        launch=launch,
        folder=environment.folder,
        mark=mark,
        output=output,
        watch=shells.watch,
        given=input_of(given),
    )
    ended = await run_command(command, hook.seconds)
    if isinstance(ended, Shell):  # it stands nowhere, so nobody can hand it over
        raise ToolError("it was sent to the background")
    return Ran(
        exit_code=ended.exit_code,
        how=ended.how,
        answer=output.stdout.whole(),
        text=output.stdout.text().strip(),
        errors=output.stderr.text().strip(),
        timed_out=ended.timed_out,
    )


def _launch(hook: Hook, environment: ToolEnvironment) -> Launch:
    command = ("/bin/sh", "-c", hook.command)
    environ, added = environment.host.environ, variables(hook, environment.folder)
    if hook.source == "own":
        return Launch(command, {**environ, **added})
    read_only = hook.source == "project" and _is_read_only(hook, environment)
    starter = environment.workspace.shells.starter
    starter.check()
    shown = (Path(hook.root),) if hook.root else ()
    access = Access(shown=shown, declared=added, read_only=read_only)
    return starter.start(command, environment.folder, environ, access)


def variables(hook: Hook, folder: Path) -> Mapping[str, str]:
    """Return the variables that a hook has besides: the project's folder, and that of its plugin."""
    named = {"CLAUDE_PROJECT_DIR": str(folder), "YBS_PROJECT_DIR": str(folder)}
    return {**named, "CLAUDE_PLUGIN_ROOT": hook.root} if hook.root else named


def _is_read_only(hook: Hook, environment: ToolEnvironment) -> bool:
    """Return whether a hook of the project only reads that, as one does that runs files of it which nobody has seen.

    Raises ToolError where a file of the project that the command reaches is not what was trusted.
    """
    from ybs.trust.decision import is_unchanged
    from ybs.trust.reach import reach

    review, is_open = environment.loaded.review, False
    for folder in {environment.folder.resolve(), *([review.folder] if review else [])}:
        found = reach((hook.command,), folder, environment.host.home)
        is_open |= bool(found.unknown)
        for path in found.files:
            if review is not None and not is_unchanged(review, path, folder):
                raise ToolError(f"{visible(path)} is not the program that you trust")
    return hook.project == "read" or (is_open and hook.project != "write")
