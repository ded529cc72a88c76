"""`ybs doctor`: what works here and what does not. Nothing is changed and nobody beyond this machine is contacted."""

import asyncio
import os
import platform
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, assert_never

from msgspec import Struct, to_builtins

from ybs import __version__
from ybs.agent.model_choice import asks_for_router
from ybs.commands.advice import INSTALL_STARTER
from ybs.commands.model_choices import whose
from ybs.config import private_file
from ybs.config.host import Host, system_name
from ybs.config.layers import Loaded
from ybs.config.schema import Config
from ybs.core.errors import AuthError, ConfigError, ModelError, YbsError
from ybs.core.remedies import Remedy
from ybs.frontends.headless.output import write_json
from ybs.frontends.headless.run import code_of
from ybs.frontends.tty import NARROW, columns, fit_width, has_colour, is_dumb
from ybs.providers import reachable as reach
from ybs.providers.local import models
from ybs.providers.registry import chosen_name, find_provider, provider_names, shown_name
from ybs.security.gate import put
from ybs.security.launcher import persons_program, trusted_program
from ybs.session.settings import load_settings

if TYPE_CHECKING:
    from argparse import Namespace

    from ybs.session.options import Options

#: `untried`: it is there, and whether it works is known only beyond this machine.
State: TypeAlias = Literal["ok", "untried", "missing", "warning", "error"]
_INDENT: Final = " " * 9
#: The installer of a system, by the program it is.
_INSTALLERS: Final = {
    "brew": "brew install",
    "apt-get": "sudo apt-get install",
    "dnf": "sudo dnf install",
    "pacman": "sudo pacman -S",
    "zypper": "sudo zypper install",
    "apk": "sudo apk add",
}


class Finding(Struct, frozen=True):
    """One thing that was looked for. `fix` is a line to paste; what is not needed spoils nothing."""

    name: str
    state: State
    detail: str
    fix: str = ""
    is_needed: bool = True

    @property
    def needs_fix(self) -> bool:
        """Whether the person is better off doing something about it."""
        return self.is_needed and self.state not in ("ok", "untried")


def write_findings(findings: Sequence[Finding]) -> None:
    """Print one line for each, dim where there is nothing to do, with its fix where there is something."""
    is_drawn = sys.stdout.isatty() and not is_dumb()
    width = 0 if columns() < NARROW else max(len(each.name) for each in findings)
    for each in findings:
        line = f"{each.state:<7}  {each.name:<{width}}  {each.detail}"
        put(fit_width(line, _INDENT), sys.stdout, is_dim=is_drawn and not each.needs_fix)
        if each.fix and each.needs_fix:  # in one piece: it is there to be pasted
            put(f"{_INDENT}fix: {each.fix}", sys.stdout)
    put(f"\n{summary(findings)}", sys.stdout)


def summary(findings: Sequence[Finding]) -> str:
    """Return how much there is to do."""
    match sum(each.needs_fix for each in findings):
        case 0:
            return "No problems found."
        case 1:
            return "1 problem to fix."
        case count:
            return f"{count} problems to fix."


def is_installed(program: str) -> bool:
    """Return whether this machine has a program, so that the person can be told to use it; it is not run."""
    return persons_program(program, environ=os.environ) is not None


def install(package: str) -> str:
    """Return the command that installs a package on this system."""
    there = (command for program, command in _INSTALLERS.items() if is_installed(program))
    return f"{next(there, 'install')} {package}"


def look_at_model(loaded: Loaded, trouble: YbsError | None) -> Iterator[Finding]:
    """Look at the provider and the model that a session would have."""
    host, config = loaded.host, loaded.config
    name = chosen_name(config)
    has_router = config.router.enabled and len(config.router.arms) > 1
    if trouble is None and (has_router or asks_for_router(name, config.llm.model)):
        yield _router(loaded)
    elif name is None and models.starter_installed(host):
        yield Finding("provider", "ok", "none chosen, so the starter model is used")
    elif name is None:
        words = "none chosen; `ybs setup` helps you to choose one"
        yield Finding("provider", "missing", words, "ybs setup")
    elif trouble is not None:
        words = str(trouble).partition("\n")[0]
        yield Finding("provider", "error", words, _fix_of(trouble, name, config))
    else:
        yield Finding("provider", "ok", shown_name(name, config))
        yield _model(host, name, config)


def _router(loaded: Loaded) -> Finding:
    from ybs.router.roster import roster_of  # few route

    roster = roster_of(loaded)
    arms = f"the router picks from {', '.join(arm.name for arm in roster.arms)}"
    if roster.problems:
        problems = "; ".join((arms, *roster.problems))
        return Finding("provider", "warning", problems, "ybs config check")
    return Finding("provider", "ok", arms)


def look_at_providers(host: Host, config: Config, needed: str | None = None) -> Iterator[Finding]:
    """Look at every provider; only the one that is needed has to be there."""

    async def look() -> list[reach.Reachability]:
        names = provider_names(config)
        return await asyncio.gather(*(reach.look(host, name, config) for name in names))

    for found in asyncio.run(look()):
        if not reach.is_unused(found, config):
            yield _provider(found, is_needed=found.provider == needed)


def look_at_starter(host: Host) -> Finding:
    """Look for the starter model. Where it is the chosen one and not there, the provider's line says so."""
    if models.starter_installed(host):
        return Finding("starter model", "ok", str(models.starter_path(host)))
    words = f"`{INSTALL_STARTER}` fetches it ({models.STARTER_SIZE})"
    return Finding("starter model", "missing", words, INSTALL_STARTER, is_needed=False)


def _fix_of(trouble: YbsError, name: str, config: Config) -> str:
    """Return what lets a session start."""
    if not isinstance(trouble, AuthError):
        return INSTALL_STARTER if Remedy("install_model") in trouble.remedies else "ybs setup"
    variables = find_provider(name, config).key_variables
    return f"export {variables[0]}=..." if variables else "ybs setup"


def _model(host: Host, name: str, config: Config) -> Finding:
    """Say whether the chosen model is there. Only a server on this machine is asked."""
    try:
        found = asyncio.run(reach.look_at_model(host, name, config))
    except ModelError as error:
        return Finding("model", "warning", str(error), "ybs setup")
    words = f"{found.name}, window {found.window:,}"
    match found.state:
        case "listed" | "embedded":
            return Finding("model", "ok", words)
        case "unasked":
            return Finding("model", "untried", f"{words}, not checked")
        case "unsaid":
            words = f"{found.name}; {found.complaint or 'the provider does not list it'}"
            state = "warning" if found.complaint else "ok"
            return Finding("model", state, words.rstrip("."))
        case "unlisted":
            words = f"{found.name} is not available at {found.endpoint}"
            fix = f"ollama pull {found.name}" if found.wire == "ollama" else "ybs setup"
            return Finding("model", "missing", words, fix)
        case _:
            assert_never(found.state)


def _provider(found: reach.Reachability, *, is_needed: bool) -> Finding:
    """Say whether a provider could be used, and the fix if not."""
    name = f"provider {found.provider}"
    if found.state == "unusable":
        return Finding(name, "warning", found.complaint, "ybs config check")
    if found.is_ready:
        is_near = found.state in ("running", "startable", "installed")
        return Finding(name, "ok" if is_near else "untried", _ready(found))
    detail, fix = lack_of(found)
    return Finding(name, "missing", detail, fix, is_needed=is_needed)


def _ready(found: reach.Reachability) -> str:
    match found.state:
        case "running":
            owner = f", {whose(found.owner)}" if found.owner else ""
            return f"running at {found.endpoint}{owner}"
        case "startable":
            return "not running; it starts with the first request"
        case "installed":
            return "installed; log in there, if you have not"
        case "keyed":
            return f"key found ({found.variable or 'configuration'}), not tried"
        case _:
            return f"at {found.endpoint}, not checked"


def lack_of(found: reach.Reachability) -> tuple[str, str]:
    """Return what a provider lacks, and the line that gives it."""
    match found.state:
        case "empty":
            return (f"no model yet; `{INSTALL_STARTER}` fetches the starter", INSTALL_STARTER)
        case "absent":
            command = found.advice.split("`")[1] if "`" in found.advice else ""
            return f"not installed; {found.advice}", command
        case "stopped":
            hint = f"; {found.advice}" if found.advice else ""
            command = found.advice.split("`")[1] if "`" in found.advice else "ybs setup"
            return f"not running at {found.endpoint}{hint}", command
        case _ if found.variable:
            return f"no key; set {found.variable}", f"export {found.variable}=..."
        case _:
            return "no key", ""


def look_at_agents(loaded: Loaded) -> Iterator[Finding]:
    """Look for the programs of the kinds that are other agents."""
    if not loaded.config.agents.acp:
        return
    from ybs.conductor.acp.presets import fix_for, kind_of, problem_with, title_of

    for name, entry in loaded.config.agents.acp.items():
        try:
            agent = kind_of(name, entry, "").acp or entry
            problem = problem_with(agent, loaded.host)
            words, fix = problem or f"{title_of(agent)} is there", fix_for(agent)
        except ConfigError as error:
            problem = words = str(error)
            fix = "ybs config check"
        state = "missing" if problem else "untried"
        yield Finding(f"agent {name}", state, words, fix, is_needed=False)


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

    rg = program(host.environ)
    git = trusted_program("git", environ=host.environ)
    yield look_at_program("rg", rg, "what search_files searches with", "ripgrep")
    yield look_at_program("git", str(git or ""), "branch and history", "git")
    yield look_at_project(Path.cwd())
    if config.session.auto_save and not config.incognito.enabled:
        yield look_at_sessions(host.expand(config.session.storage_path, Path.cwd()))
    else:
        yield Finding("sessions", "ok", "not saved, as your settings say (session.auto_save)")


def look_at_program(name: str, path: str, purpose: str, package: str) -> Finding:
    """Say where a program is that ybs uses."""
    if path:
        return Finding(name, "ok", f"{path} ({purpose})")
    return Finding(name, "missing", purpose, install(package))


def look_at_sandbox(host: Host, config: Config) -> Finding:
    """Say which sandbox commands run in."""
    from ybs.security.sandbox.sandbox import Sandbox

    sandbox = Sandbox(host, Path.cwd(), blocked=config.safety.sandbox_blocked_paths)
    if not config.safety.sandbox_enabled:
        detail = "turned off by your settings (safety.sandbox_enabled)"
        return Finding("sandbox", "warning", detail, is_needed=False)
    backend = sandbox.backend
    if sandbox.state == "full":
        return Finding("sandbox", "ok", f"{backend.name}: {backend.why}")
    fix = fix_for_backend(backend.why)
    if sandbox.state in ("held", "reduced"):
        detail = (
            f"{backend.name}: {backend.why}; in mode auto, too, ybs asks before commands that write"
        )
        return Finding("sandbox", "warning", detail, fix)
    detail = f"{backend.why}; commands are refused"
    return Finding("sandbox", "error", detail, next((r.value for r in backend.remedies), fix))


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
        return Finding("folder", "ok", str(folder))
    detail = f"{folder} cannot be written: nothing can be edited"
    return Finding("folder", "warning", detail, f"sudo chown $USER {quote(str(folder))}")


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
        detail, fix = (
            f"{folder} is open to others (mode {mode:o})",
            f"chmod 700 {quote(str(folder))}",
        )
    elif not detail and not os.access(folder, os.W_OK | os.X_OK):
        detail, fix = (
            f"no session is kept: {folder} cannot be written",
            f"chmod 700 {quote(str(folder))}",
        )
    if detail:
        return Finding("sessions", "warning", detail, fix)
    return Finding("sessions", "ok", f"{folder}, private")


def _place_for(folder: Path) -> Finding:
    above = next(path for path in folder.parents if path.exists())
    if os.access(above, os.W_OK):
        return Finding("sessions", "ok", f"{folder}, made when needed")
    detail = f"{folder} cannot be made: {above} cannot be written"
    return Finding("sessions", "warning", detail, f"sudo chown $USER {quote(str(above))}")


_SIGNS: Final = "›•✗…─⠋"  # noqa: RUF001 - what ybs draws
_FEWEST_COLUMNS: Final = 40


def look_at_screen(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the terminal; where the output goes elsewhere, there is little to say."""
    term, encoding = environ.get("TERM", ""), sys.stdout.encoding or "ascii"
    facts = f"TERM {term or 'not set'}, encoding {encoding}"
    if not sys.stdout.isatty():
        yield Finding("terminal", "ok", f"{facts}; output is not a terminal")
        return
    yield look_at_kind(facts, environ)
    yield look_at_encoding(encoding)


def look_at_kind(facts: str, environ: Mapping[str, str]) -> Finding:
    """Say what kind of terminal it is."""
    size = shutil.get_terminal_size()
    detail = f"{facts}, {size.columns} columns, {colours(environ)}"
    if is_dumb(environ):
        return Finding(
            "terminal",
            "warning",
            f"{detail}; only plain text is possible",
            "export TERM=xterm-256color",
        )
    if size.columns < _FEWEST_COLUMNS:
        words = f"{detail}; ybs needs {_FEWEST_COLUMNS} or more"
        return Finding("terminal", "warning", words, "make the window wider")
    return Finding("terminal", "ok", detail)


def colours(environ: Mapping[str, str]) -> str:
    """Return which colours there are."""
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
        return Finding("signs", "warning", detail, "export LC_ALL=C.UTF-8")
    return Finding("signs", "ok", _SIGNS)


def doctor(arguments: "Namespace", options: "Options") -> int:
    """Print what was found. The exit code is that of a start: 0, or the one of what makes it impossible."""
    loaded = load_settings(options)
    trouble = why_no_start(loaded)
    findings = list(find(loaded, trouble))
    if arguments.format == "json":
        write_json([to_builtins(finding) for finding in findings])
    else:
        write_findings(findings)
    return 0 if trouble is None else code_of(trouble)


def find(loaded: Loaded, trouble: YbsError | None = None) -> Iterator[Finding]:
    """Look at one thing after the other."""
    yield Finding("ybs", "ok", __version__)
    python = f"{platform.python_version()} at {sys.executable}"
    yield Finding("python", "ok", python)
    yield Finding("system", "ok", system_name())
    yield from _configuration(loaded)
    yield from look_at_model(loaded, trouble)
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
        yield Finding(name, "ok", ", ".join(parts))


def why_no_start(loaded: Loaded) -> YbsError | None:
    """Return what a session could not be opened for, if anything. That nothing is chosen does not count."""
    from ybs.agent.model_choice import NothingConfigured, open_model

    try:
        _, model = open_model(loaded)
    except NothingConfigured:
        return None
    except (YbsError, ImportError) as error:
        return error if isinstance(error, YbsError) else YbsError(str(error))
    asyncio.run(model.aclose())
    return None


def _configuration(loaded: Loaded) -> Iterator[Finding]:
    name, path = "configuration", loaded.host.user_config_file
    if path.is_file():
        yield Finding(name, "ok", str(path))
    else:
        no_file = f"the defaults; your own settings would be in {path}"
        yield Finding(name, "ok", no_file)
    if (short := loaded.host.home_config_file).is_file():
        yield Finding(name, "ok", str(short))
    for warning in loaded.warnings:
        yield Finding(name, "warning", warning, "ybs config check")
