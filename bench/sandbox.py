"""The sandbox: what a sandboxed command costs to start, beside the smallest call of bubblewrap that is any use."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import DEVNULL, Popen

from lab import Lab, Row, interleave, make_project, median

MINIMAL = ("--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "true")


def measure(lab: Lab, rounds: int) -> list[Row]:
    from ybs.config.host import Host
    from ybs.security.sandbox.choice import choose, see

    project = lab.folder / "sandboxed"
    make_project(project)
    backend = choose(see(Host.of({"HOME": str(lab.folder / "home")}), project))
    if backend.name != "bubblewrap":
        print(
            f"  not measured: the sandbox here is {backend.name} ({backend.why})", file=sys.stderr
        )
        return []
    runs = interleave(
        max(rounds, 7) * 3,  # a start is short, and so is what disturbs it
        sandboxed=lambda: sandboxed(backend, project),
        minimal=lambda: spawned(("/usr/bin/bwrap", *MINIMAL), project),
        plain=lambda: spawned(("/usr/bin/true",), project),
        prepared=lambda: prepared(backend, project),
    )
    ms = {name: median(times) * 1000 for name, times in runs.items()}
    return [
        Row(
            "sandboxed command, from its text to its end / bwrap, minimal",
            ms["sandboxed"] / ms["minimal"],
            "x",
            2,
        ),
        Row("sandboxed command", ms["sandboxed"], "ms"),
        Row("bwrap, minimal", ms["minimal"], "ms"),
        Row("of the sandboxed one: preparing it in Python", ms["prepared"], "ms"),
        Row("plain command", ms["plain"], "ms"),
    ]


def sandboxed(backend: object, folder: Path) -> float:
    started = time.perf_counter()
    launch = backend.launch(("/usr/bin/true",), folder, os.environ)
    try:
        spawned(launch.argv, folder, launch.environ, launch.descriptors)
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)
    return time.perf_counter() - started


def prepared(backend: object, folder: Path) -> float:
    started = time.perf_counter()
    launch = backend.launch(("/usr/bin/true",), folder, os.environ)
    seconds = time.perf_counter() - started
    for descriptor in launch.descriptors:
        os.close(descriptor)
    return seconds


def spawned(
    argv: Sequence[str],
    folder: Path,
    environ: dict[str, str] | None = None,
    descriptors: Sequence[int] = (),
) -> float:
    started = time.perf_counter()
    process = Popen(
        argv, cwd=folder, env=environ, pass_fds=descriptors, stdin=DEVNULL, start_new_session=True
    )
    if process.wait() != 0:
        raise SystemExit(f"{argv[0]} ended with {process.returncode}")
    return time.perf_counter() - started
