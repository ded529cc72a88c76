"""Find the program that serves the model (the one in the settings, `llama-server` in PATH, or the extra `local`) and its abilities."""

import re
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ybs.config.host import Host
from ybs.core.errors import ConfigError
from ybs.providers.local import hardware
from ybs.providers.local.hardware import Ask, Machine, output_of
from ybs.security.launcher import environ_away, persons_program, python

NAME: Final = "llama-server"
#: Prints the kinds of the devices that the extra was built for. Wheels with support for other cards are on separate package indexes.
_KINDS: Final = "import xllamacpp\nprint([each['type'] for each in xllamacpp.get_device_info()])"
#: A line of `llama-server --list-devices`; what has no memory, such as a library for arithmetic, is not a graphics processor.
_DEVICE: Final = re.compile(r"^\s+\S+: .+ \(([1-9]\d*) MiB, \d+ MiB free\)$", re.MULTILINE)


def find_program(host: Host, configured: str | None, machine: Machine) -> str:
    """Return the path of the server program; empty for the one of the extra `local`, which runs in ybs's own process.

    The extra is what ybs was tested with, so it goes before PATH; but its wheel knows no graphics processors other than
    Apple's, so a program in PATH that can use one goes before the extra. Blocks for a moment where it has to be asked.
    Raises ConfigError where there is no program.
    """
    if configured:
        path = host.with_home(configured)
        named = persons_program(path, environ={}) if "/" in path else None
        if named is None:
            raise ConfigError(
                "The setting local.server is not the absolute path of a program outside of this project: "
                f"{configured}"
            )
        return named
    has_extra = find_spec("xllamacpp") is not None
    wants_other = any(gpu.maker != "apple" for gpu in machine.gpus)
    if has_extra and not wants_other:
        return ""
    found = persons_program(NAME, environ=host.environ)
    if found and (not has_extra or uses_gpus(found, asking(host))):
        return found
    if has_extra:
        return ""
    raise ConfigError(
        "The local model needs llama.cpp, and neither the extra `local` nor `llama-server` is installed.\n"
        "Install the extra with: pip install 'ybs[local]'\n"
        "Or install llama.cpp, so that `llama-server` is in PATH, or set local.server to its path."
    )


def this_machine(host: Host, configured: str | None) -> Machine:
    """Look at this machine as the server program can use it. Blocks for a moment.

    Where there is no program yet all graphics processors count.
    """
    machine = hardware.detect()
    if all(gpu.maker == "apple" for gpu in machine.gpus):
        return machine
    try:
        program = find_program(host, configured, machine)
    except ConfigError:
        return machine
    return (
        machine
        if uses_gpus(program, asking(host))
        else replace(machine, gpus=(), idle_gpus=machine.gpus)
    )


@lru_cache(maxsize=16)
def asking(host: Host) -> Ask:
    """Return what asks a server program with the variables of a host; always the same one, since answers are kept by it."""
    return partial(output_of, environ=environ_away(host.environ))


def uses_gpus(program: str, ask: Ask = output_of) -> bool:
    """Return whether a server program (empty for the extra) can use a graphics processor here. One that does not say can."""
    text = _devices(program, _modified_ns(program), ask)
    if not program:
        return not text or "GPU" in text
    return "Available devices:" not in text or _DEVICE.search(text) is not None


@lru_cache(maxsize=16)
def _devices(program: str, _modified_ns: int, ask: Ask) -> str:
    """Return a program's list of devices. It is asked once, as long as its file stays the same."""
    return ask((program, "--list-devices") if program else python("-c", _KINDS))


def _modified_ns(program: str) -> int:
    if not program and (spec := find_spec("xllamacpp")) is not None:
        program = spec.origin or ""
    try:
        return Path(program).stat().st_mtime_ns
    except OSError:
        return 0
