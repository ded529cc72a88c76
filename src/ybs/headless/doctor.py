"""`ybs doctor`: what was found on this machine. Nothing is changed and nobody is contacted."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, to_builtins

from ybs import __version__
from ybs.config.layers import Loaded
from ybs.config.paths import home_config_file, user_config_file
from ybs.headless.commands import write_json, write_table

#: Programs that ybs uses where they are, and for what.
PROGRAMS = {
    "rg": "fast search; without it ybs searches by itself",
    "git": "branch and history",
    "bwrap": "the cage for commands; this version does not use it yet",
}


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was looked for."""

    name: str
    state: Literal["ok", "missing", "warning"]
    detail: str


def doctor(loaded: Loaded, *, is_json: bool) -> int:
    """Print what was found."""
    findings = list(find(loaded))
    if is_json:
        write_json([to_builtins(finding) for finding in findings])
    else:
        write_table([(each.name, each.state, each.detail) for each in findings])
    return 0


def find(loaded: Loaded) -> Iterator[Finding]:
    """Look at one thing after the other."""
    yield Finding(name="ybs", state="ok", detail=__version__)
    python = f"{platform.python_version()} at {sys.executable}"
    yield Finding(name="python", state="ok", detail=python)
    yield Finding(name="system", state="ok", detail=platform.platform())
    yield from _configuration(loaded)
    yield from _providers(loaded)
    yield _starter_model()
    for name, purpose in PROGRAMS.items():
        path = shutil.which(name)
        detail = f"{path} ({purpose})" if path else purpose
        yield Finding(name=name, state="ok" if path else "missing", detail=detail)
    yield Finding(
        name="sandbox", state="missing", detail="none in this version: every command asks"
    )
    term = os.environ.get("TERM") or "not set"
    yield Finding(
        name="terminal", state="ok", detail=f"TERM {term}, encoding {sys.stdout.encoding}"
    )


def _configuration(loaded: Loaded) -> Iterator[Finding]:
    for path in (user_config_file(), home_config_file()):
        state = "ok" if path.is_file() else "missing"
        yield Finding(name="configuration", state=state, detail=str(path))
    for warning in loaded.warnings:
        yield Finding(name="configuration", state="warning", detail=warning)


def _starter_model() -> Finding:
    from ybs.providers.llama_cpp.models import starter_installed, starter_path

    if starter_installed():
        return Finding(name="starter model", state="ok", detail=str(starter_path()))
    return Finding(
        name="starter model", state="missing", detail="`ybs models install` fetches it (1.1 GB)"
    )


def _providers(loaded: Loaded) -> Iterator[Finding]:
    from ybs.config.keys import find_key
    from ybs.core.errors import ConfigError
    from ybs.providers.registry import find_provider, provider_names

    chosen = loaded.config.llm.provider
    detail = chosen or "none; `ybs setup` helps to choose one"
    yield Finding(name="provider", state="ok" if chosen else "missing", detail=detail)
    for name in provider_names(loaded.config):
        try:
            provider = find_provider(name, loaded.config)
        except (ConfigError, ImportError) as error:
            yield Finding(
                name=f"provider {name}", state="warning", detail=str(error).split("\n", 1)[0]
            )
            continue
        key = find_key(provider.key_variables, os.environ)
        if key or provider.api_key:
            found = f"key found ({provider.key_variables[0] if key else 'configuration'})"
            yield Finding(name=f"provider {name}", state="ok", detail=found)
        elif provider.needs_key:
            hint = (
                f"no key; set {provider.key_variables[0]}" if provider.key_variables else "no key"
            )
            yield Finding(name=f"provider {name}", state="missing", detail=hint)
        else:
            yield Finding(
                name=f"provider {name}", state="ok", detail=f"at {provider.endpoint}, needs no key"
            )
