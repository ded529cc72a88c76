"""Fifty external tools and thirty skills: what they add to the start and to the first request, and what a tool's call costs."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab import YBS, Lab, Row, interleave, make_project, median
from msgspec import Raw
from terminal_start import start

TOOLS, SKILLS = 50, 30
#: At worst.
CHARS_OF_TOKEN = 3
GIVEN = b'{"path":"README.md"}'
TOOL = """\
#!/bin/sh
if [ "$1" = --schema ]; then
  echo '{"description": "Does the work of number %d with one file of the project, and says what came of it.",
    "parameters": {"path": {"type": "string", "required": true, "description": "relative to the project"}}}'
  exit
fi
cat
"""
SKILL = """\
---
name: skill-for-%d
description: Handles the files of kind %d, step by step, with the checks that belong to them. Use it when such a file is to be written, changed or looked at, or when somebody asks for kind %d, and not for any other kind of file.
license: MIT
metadata:
  author: somebody
---
"""


def measure(lab: Lab, rounds: int) -> list[Row]:
    home = lab.folder / "home"
    install(home)
    with without(home):
        bare_bytes = lab.ybs("turns0").requests[0]["body_bytes"]
    lab.plain(YBS, "tools", "check")  # every program is asked once what it does
    with_bytes = lab.ybs("turns0").requests[0]["body_bytes"]

    def bare(run: Callable[[], object]) -> object:
        with without(home):
            return run()

    runs = interleave(
        rounds,
        chat=lambda: start(lab)[0],
        bare_chat=lambda: bare(lambda: start(lab)[0]),
        once=lambda: lab.ybs("turns0").ended.cpu_seconds,
        bare_once=lambda: bare(lambda: lab.ybs("turns0").ended.cpu_seconds),
    )
    ms = {name: median(times) * 1000 for name, times in runs.items()}
    many = f"{TOOLS} external tools and {SKILLS} skills"
    grown = with_bytes - bare_bytes
    return [
        Row("CPU until the first prompt with them / without", ms["chat"] / ms["bare_chat"], "x", 1.1, many),
        Row("the same without", ms["bare_chat"], "ms"),
        Row("CPU of a run with one request with them / without", ms["once"] / ms["bare_once"], "x"),
        Row("the same without", ms["bare_once"], "ms"),
        Row(f"tokens of the first request for them, {CHARS_OF_TOKEN} characters each", grown / CHARS_OF_TOKEN, "tokens", 1_500),
        *call_rows(lab, rounds),
    ]  # fmt: skip


def install(home: Path) -> None:
    """Put the tools and the skills into a home."""
    for number in range(TOOLS):
        file = home / f".config/ybs/tools/work_on_{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TOOL % number)
        file.chmod(0o755)
    for number in range(SKILLS):
        file = home / f".config/ybs/skills/skill-for-{number}/SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text(SKILL % (number, number, number) + "A line of it.\n" * 200)


@contextmanager
def without(home: Path) -> Iterator[None]:
    """Take them out of the home for a while."""
    folders = [home / ".config/ybs" / name for name in ("tools", "skills")]
    for folder in folders:
        folder.rename(folder.with_name(f"{folder.name}-aside"))
    try:
        yield
    finally:
        for folder in folders:
            folder.with_name(f"{folder.name}-aside").rename(folder)


def call_rows(lab: Lab, rounds: int) -> list[Row]:
    """Compare a call of a tool, checks and all, with the bare start of the same program in the same sandbox."""
    times = asyncio.run(call_times(lab, max(rounds, 7) * 3))
    if not times:
        return []
    ms = {name: median(each) * 1000 for name, each in times.items()}
    return [
        Row("call of an external tool, beyond its start in the sandbox", ms["call"] - ms["sandboxed"], "ms", 10),
        Row("call of an external tool", ms["call"], "ms"),
        Row("its start in the sandbox", ms["sandboxed"], "ms"),
        Row("its bare start", ms["plain"], "ms"),
    ]  # fmt: skip


async def call_times(lab: Lab, rounds: int) -> dict[str, list[float]]:
    from ybs.agent.toolbox import make_toolbox, with_foreign
    from ybs.config.host import Host
    from ybs.session.options import Options
    from ybs.session.settings import environment_of, load_settings

    project = lab.folder / "called"
    make_project(project)
    host = Host.of({**os.environ, "HOME": str(lab.folder / "home")})
    options = Options(host=host, folder=project)
    environment = environment_of(options, load_settings(options))
    if environment.sandbox.state != "full":
        print("  calls are not measured: there is no whole sandbox here", file=sys.stderr)
        return {}
    toolbox = with_foreign(make_toolbox(environment), (), environment, ())
    await environment.external_tools.load(60)
    await toolbox.open(lambda _event: None)
    times: dict[str, list[float]] = {"call": [], "sandboxed": [], "plain": []}
    for _ in range(rounds):
        times["call"].append(await called(toolbox))
        times["sandboxed"].append(await asyncio.to_thread(sandboxed, environment, lab))
        times["plain"].append(await asyncio.to_thread(plain, lab))
    await toolbox.aclose()
    await environment.aclose()
    return times


async def called(toolbox: Any) -> float:
    """Call the tool as a model does."""
    from ybs.core.messages import ToolCall

    call = ToolCall(id="1", name="work_on_7", arguments=Raw(GIVEN))
    began = time.perf_counter()
    result = await toolbox.run(call, lambda _event: None)
    if result.is_error or result.output != GIVEN.decode():
        raise SystemExit(f"the tool failed: {result.output}")
    return time.perf_counter() - began


def sandboxed(environment: Any, lab: Lab) -> float:
    """Start the same program in the same sandbox, and nothing else."""
    from ybs.security.sandbox.launch import Access

    file, folder = program(lab), environment.folder
    began = time.perf_counter()
    access = Access(read_only=True, shown=(file.parent,))
    launch = environment.sandbox.start([str(file)], folder, os.environ, access)
    started(launch.argv, env=dict(launch.environ), pass_fds=launch.descriptors, cwd=folder)
    seconds = time.perf_counter() - began
    for descriptor in launch.descriptors:
        os.close(descriptor)
    return seconds


def plain(lab: Lab) -> float:
    """Start it without a sandbox."""
    began = time.perf_counter()
    started([str(program(lab))])
    return time.perf_counter() - began


def started(argv: Sequence[str], **options: Any) -> None:
    subprocess.run(argv, input=GIVEN, capture_output=True, check=True, **options)


def program(lab: Lab) -> Path:
    return lab.folder / "home/.config/ybs/tools/work_on_7"
