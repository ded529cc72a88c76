"""What `ybs doctor` says of the terminal: what it is, what it can show, and what tmux keeps to itself."""

import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from ybs.frontends.headless.finding import Finding
from ybs.frontends.tty import has_colour, is_dumb
from ybs.security.launcher import SYSTEM_ENVIRON, ask, trusted_program
from ybs.security.sandbox.launch import Launch

_SIGNS: Final = "›•✗…─⠋"  # noqa: RUF001 - what ybs draws
_FEWEST_COLUMNS: Final = 40
_PATIENCE_SECONDS: Final = 1
#: Options of tmux: the values that do, the one to set, and what is lost without it.
_TMUX: Final = {
    "extended-keys": (
        ("on", "always"),
        "on",
        "Shift-Enter cannot be told from Enter; use Alt-Enter or Ctrl-J for a new line",
    ),
    "set-clipboard": (("on", "external"), "on", "/copy cannot reach your clipboard"),
}


def look_at_screen(
    environ: Mapping[str, str], away_from: Collection[Path] = ()
) -> Iterator[Finding]:
    """Look at the terminal; where the output goes elsewhere, there is little to say."""
    term, encoding = environ.get("TERM", ""), sys.stdout.encoding or "ascii"
    facts = f"TERM {term or 'not set'}, encoding {encoding}"
    if not sys.stdout.isatty():
        yield Finding(name="terminal", state="ok", detail=f"{facts}; output is not a terminal")
        return
    yield look_at_kind(facts, environ)
    yield look_at_encoding(encoding)
    if environ.get("TMUX"):
        yield from look_at_tmux(environ, away_from)


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


def look_at_tmux(environ: Mapping[str, str], away_from: Collection[Path]) -> Iterator[Finding]:
    """Ask tmux, which is between ybs and the terminal, what it passes on."""
    program = trusted_program("tmux", away_from=away_from, environ=environ)
    for option, (good, right, loss) in _TMUX.items():
        value = None if program is None else _ask_tmux(program, option, environ)
        if value is None or value in good:
            continue
        fix = f"tmux set -s {option} {right}"
        detail = f"{option} is {value}: {loss}"
        yield Finding(name="tmux", state="warning", detail=detail, fix=fix)


def _ask_tmux(program: Path, option: str, environ: Mapping[str, str]) -> str | None:
    """Return the value of a server option, or None where tmux does not say."""
    kept = {name: environ[name] for name in ("TMUX", "TMUX_TMPDIR", "HOME") if name in environ}
    words = (str(program), "show-options", "-sv", option)
    try:
        printed = ask(Launch(words, {**SYSTEM_ENVIRON, **kept}), _PATIENCE_SECONDS)[1]
    except OSError:
        return None
    return os.fsdecode(printed).strip() or None
