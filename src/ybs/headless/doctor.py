"""`ybs doctor`: what was found on this machine. Nothing is changed and nobody beyond it is contacted."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, to_builtins

from ybs import __version__
from ybs.config.layers import Loaded
from ybs.config.paths import home_config_file, user_config_file
from ybs.headless.commands import write_json, write_table

if TYPE_CHECKING:
    from ybs.providers.registry import Provider

#: A server on this machine answers within this time.
PATIENCE_SECONDS = 0.2
#: Programs that ybs uses where they are, and for what.
PROGRAMS = {
    "rg": "fast search; without it ybs searches by itself",
    "git": "branch and history",
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
    yield _sandbox(loaded)
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


def _sandbox(loaded: Loaded) -> Finding:
    from ybs.session.sandbox import Sandbox

    sandbox = Sandbox(Path.cwd(), blocked=loaded.config.safety.sandbox_blocked_paths)
    state: Literal["ok", "missing", "warning"] = "ok"
    detail = f"{sandbox.cage.name}: {sandbox.cage.why}"
    if sandbox.state == "reduced":
        state, detail = "warning", f"{detail}; every command asks. Install bubblewrap for more"
    elif sandbox.state == "none":
        state, detail = "missing", f"{sandbox.cage.why}; commands are refused"
    return Finding(name="sandbox", state=state, detail=detail)


def _starter_model() -> Finding:
    from ybs.providers.llama_cpp.models import starter_installed, starter_path

    if starter_installed():
        return Finding(name="starter model", state="ok", detail=str(starter_path()))
    return Finding(
        name="starter model", state="missing", detail="`ybs models install` fetches it (1.1 GB)"
    )


def _providers(loaded: Loaded) -> Iterator[Finding]:
    from ybs.core.errors import ConfigError
    from ybs.providers.registry import find_provider, provider_names

    llm = loaded.config.llm
    chosen = llm.provider or ("openai" if llm.endpoint else None)
    detail = chosen or "none; `ybs setup` helps to choose one"
    yield Finding(name="provider", state="ok" if chosen else "missing", detail=detail)
    for name in provider_names(loaded.config):
        try:
            provider = find_provider(name, loaded.config)
            moved_to = llm.endpoint if name == chosen else None
            yield _provider(provider, moved_to)
        except (ConfigError, ImportError) as error:
            yield Finding(
                name=f"provider {name}", state="warning", detail=str(error).split("\n", 1)[0]
            )


def _provider(provider: "Provider", moved_to: str | None) -> Finding:
    """Say whether a provider could be used. Raises ConfigError for what is no address."""
    from ybs.config.keys import find_key
    from ybs.providers.http import host_of, is_loopback

    name, endpoint = f"provider {provider.name}", moved_to or provider.endpoint
    if provider.make is not None and moved_to is None:
        return _embedded(name)
    if is_loopback(host_of(endpoint)):
        return _local(name, endpoint, "" if moved_to else provider.start_advice)
    key = find_key(provider.key_variables, os.environ)
    if key or provider.api_key:
        found = f"key found ({provider.key_variables[0] if key else 'configuration'})"
        return Finding(name=name, state="ok", detail=found)
    if provider.needs_key:
        hint = f"no key; set {provider.key_variables[0]}" if provider.key_variables else "no key"
        return Finding(name=name, state="missing", detail=hint)
    return Finding(name=name, state="ok", detail=f"at {endpoint}, not asked")


def _local(name: str, endpoint: str, advice: str) -> Finding:
    if listens(endpoint):
        return Finding(name=name, state="ok", detail=f"running at {endpoint}")
    hint = f"; {advice[0].lower()}{advice[1:]}" if advice else ""
    return Finding(name=name, state="missing", detail=f"not running at {endpoint}{hint}")


def _embedded(name: str) -> Finding:
    """Say of the server that ybs starts by itself whether it runs or could."""
    from ybs.providers.llama_cpp.models import starter_installed
    from ybs.providers.llama_cpp.server import running

    if (server := running()) is not None:
        return Finding(name=name, state="ok", detail=f"running at {server.endpoint}")
    if starter_installed():
        return Finding(name=name, state="ok", detail="not running; the first request starts it")
    return Finding(
        name=name, state="missing", detail="no model yet; `ybs models install` fetches the starter"
    )


def listens(endpoint: str) -> bool:
    """Tell whether something takes connections at an address of this machine."""
    import socket
    from urllib.parse import urlsplit

    parts = urlsplit(endpoint)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with socket.create_connection((parts.hostname or "", port), PATIENCE_SECONDS):
            return True
    except OSError:
        return False
