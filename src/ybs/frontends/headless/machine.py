"""What `ybs doctor` says of this machine: sandbox, programs, folders, disk and clock."""

import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import ybs
from ybs.config import private_file
from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.frontends.headless.finding import Finding, install
from ybs.security.launcher import trusted_program

_LEAST_FREE_BYTES: Final = 1_000_000_000
_DAY_SECONDS: Final = 86_400
#: Settings of Linux that keep bubblewrap from making namespaces, the value that does, and one that does not.
_SWITCHES: Final = (
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user.max_user_namespaces", "0", "15000"),
)


def look_at_machine(host: Host, config: Config) -> Iterator[Finding]:
    """Look at what is around ybs."""
    yield look_at_sandbox(host, config)
    from ybs.tools.searching.ripgrep import program  # with the sandbox

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
    yield look_at_disk(shutil.disk_usage(_nearest(host.config_folder)).free)
    yield look_at_clock(time.time())


def look_at_program(name: str, path: str, purpose: str, package: str) -> Finding:
    """Say where a program is that ybs uses."""
    if path:
        return Finding(name=name, state="ok", detail=f"{path} ({purpose})")
    return Finding(name=name, state="missing", detail=purpose, fix=install(package))


def look_at_sandbox(host: Host, config: Config) -> Finding:
    """Say which sandbox commands run in."""
    from ybs.agent.sandbox import Sandbox

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


def look_at_disk(free_bytes: int) -> Finding:
    """Say whether there is room to write."""
    detail = f"{free_bytes / 1e9:.1f} GB free"
    if free_bytes >= _LEAST_FREE_BYTES:
        return Finding(name="disk", state="ok", detail=detail)
    return Finding(name="disk", state="warning", detail=detail, fix="du -xh ~ | sort -h | tail")


def look_at_clock(now: float) -> Finding:
    """Say whether the clock can be right: it is not before ybs was put here."""
    shown = time.strftime("%Y-%m-%d %H:%M", time.localtime(now))
    if now >= Path(ybs.__file__).stat().st_mtime - _DAY_SECONDS:
        return Finding(name="clock", state="ok", detail=shown)
    detail = f"{shown}, earlier than the installation of ybs: secure connections will fail"
    return Finding(
        name="clock", state="warning", detail=detail, fix="sudo timedatectl set-ntp true"
    )


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
