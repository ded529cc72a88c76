"""`ybs models`: the models on this machine and the server that runs them."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeAlias

from ybs.commands.advice import INSTALL_STARTER
from ybs.frontends.headless.output import write, write_json
from ybs.providers.local import STARTER_NAME
from ybs.providers.local.models import (
    STARTER_BYTES,
    ModelFile,
    list_models,
    models_folder,
    remove_starter,
    starter_installed,
    starter_path,
)
from ybs.security.gate import put, put_over

#: What an action found or did: data for a program, lines for a person, and the exit code.
Report: TypeAlias = tuple[Any, list[str], int]
#: Without a terminal, progress is told each time another this many percent are there.
STEP_PERCENT = 10


def models(action: str, *, is_json: bool) -> int:
    """Do what the action says, print it, and return the exit code. Raises YbsError."""
    data, lines, code = asyncio.run(ACTIONS[action]())
    if is_json:
        write_json(data)
    else:
        for line in lines:
            write(line)
    return code


async def show_list() -> Report:
    """List the starter model and every other model file."""
    others = [file for file in list_models() if file.path != starter_path()]
    starter = ModelFile(name=STARTER_NAME, path=starter_path(), size_bytes=STARTER_BYTES)
    is_there = starter_installed()
    data = [
        {
            "name": f.name,
            "path": str(f.path),
            "size_bytes": f.size_bytes,
            "is_installed": is_there or f is not starter,
        }
        for f in (starter, *others)
    ]
    lines = [f"{f.name}  {f.size_bytes / 1e9:.1f} GB  {f.path}" for f in (starter, *others)]
    if not is_there:
        lines[0] += f"  (not installed; `{INSTALL_STARTER}` fetches it)"
    return data, [*lines, f"Other GGUF files go into {models_folder()}"], 0


async def install() -> Report:
    """Fetch the starter model, with progress on standard error."""
    from ybs.providers.local.fetch import install_starter

    was_there = starter_installed()
    progress = Progress()
    try:
        path = await install_starter(progress)
    finally:
        progress.end()
    said = "was there already" if was_there else "is installed"
    return {"path": str(path), "was_there": was_there}, [f"{STARTER_NAME} {said}: {path}"], 0


async def remove() -> Report:
    """Delete the starter model; its server is stopped first."""
    from ybs.providers.local.server import stop as stop_server

    await stop_server()
    was_there = await remove_starter()
    said = "removed" if was_there else "was not installed"
    return {"was_there": was_there}, [f"{STARTER_NAME}: {said}"], 0


async def status() -> Report:
    """Say whether the server runs."""
    from ybs.providers.local.server import is_healthy, running

    found = running()
    if found is None:
        return (
            {"is_running": False},
            ["The local server is not running; it starts with the first request."],
            0,
        )
    is_ready = await asyncio.to_thread(is_healthy, found)
    data: Mapping[str, Any] = {
        "is_running": True,
        "is_ready": is_ready,
        "pid": found.pid,
        "endpoint": found.endpoint,
        "model": found.model,
        "window": found.window,
    }
    state = "ready" if is_ready else "starting, or not answering"
    line = (
        f"{state}: {found.model} at {found.endpoint}, window {found.window:,}, process {found.pid}"
    )
    return data, [line], 0


async def stop() -> Report:
    """End the server."""
    from ybs.providers.local.server import stop as stop_server

    was_running = await stop_server()
    said = "The local server was stopped." if was_running else "No local server was running."
    return {"was_running": was_running}, [said], 0


class Progress:
    """Tells how far a download is: one line that counts up, or a line now and then without a terminal."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._last = ""

    def __call__(self, done: int, total: int, what: str) -> None:
        """Take a step."""
        percent = 100 * done // max(1, total)
        if not self._is_terminal:
            percent -= percent % STEP_PERCENT
        text = f"{what}: {percent}% of {total / 1e9:.1f} GB" if what == "fetching" else what
        if text == self._last:
            return
        self._last = text
        if self._is_terminal:
            put_over(text, sys.stderr)
        else:
            put(text, sys.stderr)

    def end(self) -> None:
        """Go to a new line, if one was begun."""
        if self._is_terminal and self._last:
            put("", sys.stderr)


ACTIONS: Final[dict[str, Callable[[], Coroutine[Any, Any, Report]]]] = {
    "list": show_list,
    "install": install,
    "remove": remove,
    "status": status,
    "stop": stop,
}
