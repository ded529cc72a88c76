"""`ybs doctor`: what works here and what does not. Nothing is changed and nobody beyond this machine is contacted."""

import asyncio
import os
import platform
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import to_builtins

from ybs import __version__
from ybs.config import private_file
from ybs.config.host import Host, system_name
from ybs.config.layers import Loaded
from ybs.config.schema import Config
from ybs.core.errors import YbsError
from ybs.frontends.headless.output import write_json
from ybs.frontends.headless.run import code_of
from ybs.frontends.subcommands.agents import look_at_agents
from ybs.frontends.subcommands.finding import Finding, install, write_findings
from ybs.frontends.subcommands.reach import look_at_model, look_at_providers, look_at_starter
from ybs.frontends.tty import has_colour, is_dumb
from ybs.providers.registry import chosen_name
from ybs.security.launcher import trusted_program

#: Settings of Linux that keep bubblewrap from making namespaces, the value that does, and one that does not.
_SWITCHES: Final = (
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user.max_user_namespaces", "0", "15000"),
)


def look_at_machine(host: Host, config: Config) -> Iterator[Finding]:
    """Look at what is around ybs."""
    yield look_at_sandbox(host, config)
    from ybs.tools.searching.engine import program  # with the sandbox

    away_from = [Path.cwd(), *host.roots]
    rg = program(host.environ, away_from)
    git = trusted_program("git", away_from=away_from, environ=host.environ)
    yield look_at_program("rg", rg, "what search_files searches with", "ripgrep")
    yield look_at_program("git", str(git or ""), "branch and history", "git")
    yield look_at_project(Path.cwd())
    if config.session.auto_save and not config.incognito.enabled:
        yield look_at_sessions(host.expand(config.session.storage_path, Path.cwd()))
    else:
        yield Finding(
            name="sessions",
            state="ok",
            detail="not saved, as your settings say (session.auto_save)",
        )


def look_at_program(name: str, path: str, purpose: str, package: str) -> Finding:
    """Say where a program is that ybs uses."""
    if path:
        return Finding(name=name, state="ok", detail=f"{path} ({purpose})")
    return Finding(name=name, state="missing", detail=purpose, fix=install(package))


def look_at_sandbox(host: Host, config: Config) -> Finding:
    """Say which sandbox commands run in."""
    from ybs.security.sandbox.sandbox import Sandbox

    sandbox = Sandbox(host, Path.cwd(), blocked=config.safety.sandbox_blocked_paths)
    if not config.safety.sandbox_enabled:
        detail = "turned off by your settings (safety.sandbox_enabled)"
        return Finding(name="sandbox", state="warning", detail=detail, is_needed=False)
    backend = sandbox.backend
    if sandbox.state == "full":
        return Finding(name="sandbox", state="ok", detail=f"{backend.name}: {backend.why}")
    fix = fix_for_backend(backend.why)
    if sandbox.state in ("held", "reduced"):
        detail = (
            f"{backend.name}: {backend.why}; in mode auto, too, ybs asks before commands that write"
        )
        return Finding(name="sandbox", state="warning", detail=detail, fix=fix)
    detail = f"{backend.why}; commands are refused"
    return Finding(name="sandbox", state="error", detail=detail, fix=fix)


def fix_for_backend(why: str, settings: Path = Path("/proc/sys")) -> str:
    """Return what gives this machine the whole sandbox."""
    if "not installed" in why:
        return install("bubblewrap")
    for name, bad, good in _SWITCHES:
        try:
            value = settings.joinpath(*name.split(".")).read_text().strip()
        except OSError:
            continue
        if value == bad:
            return f"sudo sysctl -w {name}={good}"
    if "bwrap does not work" in why:
        return "allow user namespaces here (in a container: that is up to whoever started it)"
    return "see `ybs help sandbox`"


def look_at_project(folder: Path) -> Finding:
    """Say whether files can be written here."""
    if os.access(folder, os.W_OK):
        return Finding(name="folder", state="ok", detail=str(folder))
    detail = f"{folder} cannot be written: nothing can be edited"
    return Finding(
        name="folder", state="warning", detail=detail, fix=f"sudo chown $USER '{folder}'"
    )


def look_at_sessions(folder: Path) -> Finding:
    """Say whether what is written down about sessions is the person's alone, and whether it can be written."""
    detail, fix = "", ""
    try:
        mode = stat.S_IMODE(folder.lstat().st_mode)
        private_file.make_folder(folder)  # it is there, so it is only looked at
    except FileNotFoundError:
        return _place_for(folder)
    except private_file.Unsafe as error:
        detail, mode = f"no session is kept: {error}", 0
    except OSError as error:
        detail, mode = f"no session is kept: {folder}: {error.strerror}", 0
    if mode & 0o077:
        detail, fix = f"{folder} is open to others (mode {mode:o})", f"chmod 700 '{folder}'"
    elif not detail and not os.access(folder, os.W_OK | os.X_OK):
        detail, fix = f"no session is kept: {folder} cannot be written", f"chmod 700 '{folder}'"
    if detail:
        return Finding(name="sessions", state="warning", detail=detail, fix=fix)
    return Finding(name="sessions", state="ok", detail=f"{folder}, private")


def _place_for(folder: Path) -> Finding:
    above = _nearest(folder)
    if os.access(above, os.W_OK):
        return Finding(name="sessions", state="ok", detail=f"{folder}, made when needed")
    detail = f"{folder} cannot be made: {above} cannot be written"
    return Finding(
        name="sessions", state="warning", detail=detail, fix=f"sudo chown $USER '{above}'"
    )


def _nearest(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


_SIGNS: Final = "›•✗…─⠋"  # noqa: RUF001 - what ybs draws
_FEWEST_COLUMNS: Final = 40


def look_at_screen(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the terminal; where the output goes elsewhere, there is little to say."""
    term, encoding = environ.get("TERM", ""), sys.stdout.encoding or "ascii"
    facts = f"TERM {term or 'not set'}, encoding {encoding}"
    if not sys.stdout.isatty():
        yield Finding(name="terminal", state="ok", detail=f"{facts}; output is not a terminal")
        return
    yield look_at_kind(facts, environ)
    yield look_at_encoding(encoding)


def look_at_kind(facts: str, environ: Mapping[str, str]) -> Finding:
    """Say what kind of terminal it is."""
    size = shutil.get_terminal_size()
    detail = f"{facts}, {size.columns} columns, {colours(environ)}"
    if is_dumb(environ):
        return Finding(
            name="terminal",
            state="warning",
            detail=f"{detail}; only plain text is possible",
            fix="export TERM=xterm-256color",
        )
    if size.columns < _FEWEST_COLUMNS:
        words = f"{detail}; ybs needs {_FEWEST_COLUMNS} or more"
        return Finding(name="terminal", state="warning", detail=words, fix="make the window wider")
    return Finding(name="terminal", state="ok", detail=detail)


def colours(environ: Mapping[str, str]) -> str:
    """Say which colours there are."""
    if not has_colour(environ):
        return f"no colour{' (NO_COLOR)' * bool(environ.get('NO_COLOR'))}"
    if environ.get("COLORTERM") in ("truecolor", "24bit"):
        return "true colour"
    return "256 colours" if "256" in environ.get("TERM", "") else "8 colours"


def look_at_encoding(encoding: str) -> Finding:
    """Say whether the signs can be shown."""
    try:
        _SIGNS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        detail = f"{encoding} has no {len(_SIGNS)} signs of ybs; ASCII stands in for them"
        return Finding(name="signs", state="warning", detail=detail, fix="export LC_ALL=C.UTF-8")
    return Finding(name="signs", state="ok", detail=_SIGNS)


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
    yield from look_at_screen(loaded.host.environ)
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
