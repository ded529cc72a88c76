"""`ybs doctor`: what works here and what does not. Nothing is changed and nobody beyond this machine is contacted."""

import asyncio
import platform
import sys
from collections.abc import Iterator

from msgspec import to_builtins

from ybs import __version__
from ybs.config.host import system_name
from ybs.config.layers import Loaded
from ybs.core.errors import YbsError
from ybs.frontends.headless.output import write_json
from ybs.frontends.headless.run import code_of
from ybs.frontends.subcommands.agents import look_at_agents
from ybs.frontends.subcommands.finding import Finding, write_findings
from ybs.frontends.subcommands.machine import look_at_machine, look_at_screen
from ybs.frontends.subcommands.reach import look_at_model, look_at_providers, look_at_starter
from ybs.providers.registry import chosen_name


def doctor(loaded: Loaded, *, is_json: bool) -> int:
    """Print what was found. The exit code is that of a start: 0, or the one of what makes it impossible."""
    trouble = why_no_start(loaded)
    findings = list(find(loaded, trouble))
    if is_json:
        write_json([to_builtins(finding) for finding in findings])
    else:
        write_findings(findings)
    if trouble is None:
        return 0
    return code_of(trouble)


def find(loaded: Loaded, trouble: YbsError | None = None) -> Iterator[Finding]:
    """Look at one thing after the other."""
    yield Finding(name="ybs", state="ok", detail=__version__)
    python = f"{platform.python_version()} at {sys.executable}"
    yield Finding(name="python", state="ok", detail=python)
    yield Finding(name="system", state="ok", detail=system_name())
    yield from _configuration(loaded)
    yield from look_at_model(loaded.host, loaded.config, trouble)
    needed = chosen_name(loaded.config) if trouble is None else None  # the trouble is named already
    yield from look_at_providers(loaded.host, loaded.config, needed)
    yield look_at_starter(loaded.host)
    yield from look_at_agents(loaded)
    yield from look_at_machine(loaded.host, loaded.config)
    yield from look_at_screen(loaded.host.environ, loaded.host.roots)
    yield from _agent()


def _agent() -> Iterator[Finding]:
    """List what stands around the model of an agent, and what looks at its turns."""
    from ybs.agent.build import AROUND_MODEL, GUARDS

    for name, parts in (("around a model", AROUND_MODEL), ("guards", GUARDS)):
        yield Finding(name=name, state="ok", detail=", ".join(parts))


def why_no_start(loaded: Loaded) -> YbsError | None:
    """Return what a session could not be opened for, if anything. That nothing is chosen does not count."""
    from ybs.agent.model_choice import NothingConfigured, open_model

    try:
        _, model = open_model(loaded.host, loaded.config)
    except NothingConfigured:
        return None
    except (YbsError, ImportError) as error:
        return error if isinstance(error, YbsError) else YbsError(str(error))
    asyncio.run(model.aclose())
    return None


def _configuration(loaded: Loaded) -> Iterator[Finding]:
    name, path = "configuration", loaded.host.user_config_file
    if path.is_file():
        yield Finding(name=name, state="ok", detail=str(path))
    else:
        no_file = f"the defaults; your own settings would be in {path}"
        yield Finding(name=name, state="ok", detail=no_file)
    if (short := loaded.host.home_config_file).is_file():
        yield Finding(name=name, state="ok", detail=str(short))
    for warning in loaded.warnings:
        yield Finding(name=name, state="warning", detail=warning, fix="ybs config check")
