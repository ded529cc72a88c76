"""Variables that are set in front of a command: those that say how other programs run, and those that do no harm."""

import re

from ybs.core.lazy import lazy

#: Variables that say which programs run, or how.
_POWERFUL = lazy(
    r"(?:PATH|CDPATH|IFS|ENV|HOME|SHELL|SHELLOPTS|BASHOPTS|PS[0-4]|PROMPT_COMMAND|TERMINFO|TMPDIR|BROWSER|CC|CXX"
    r"|LD|MAKEFLAGS|MAKEFILES|PAGER|MANPAGER|EDITOR|VISUAL|FCEDIT|FPATH|ZDOTDIR|INPUTRC|LESS\w*|GCONV_PATH|RUSTC\w*"
    r"|PYTHON(?:PATH|HOME|STARTUP|BREAKPOINT|WARNINGS|INSPECT|EXECUTABLE|USERBASE)"
    r"|NODE_(?:OPTIONS|PATH)|PERL5?(?:LIB|OPT|DB)|RUBY(?:OPT|LIB)|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS"
    r"|(?:LD|DYLD|BASH|GIT|SSH|SUDO|XDG|npm_config|NPM_CONFIG|CARGO|PIP|UV|GOFLAGS|DOCKER|YBS|AWS|LC_ALL_)_\w+|GOFLAGS"
    r"|\w+_(?:PAGER|EDITOR|ASKPASS|PROXY|proxy|WRAPPER|PRELOAD))\+?=",
    re.ASCII,
)
#: Of these, the ones that add folders to look for the project's own code in.
_SEARCHED = ("PYTHONPATH", "NODE_PATH", "RUBYLIB", "PERL5LIB")
_PLAIN = re.compile(r"[A-Za-z_]\w*=[\w.:/=,@%+-]*", re.ASCII)


def is_powerful(assignment: str) -> bool:
    """Return whether `NAME=VALUE` says how other programs run."""
    return _POWERFUL().match(assignment) is not None


def is_harmless(assignment: str) -> bool:
    """Return whether `NAME=VALUE` may stand in front of what is always allowed: it reaches for nothing outside the project."""
    name, _, value = assignment.partition("=")
    if not _PLAIN.fullmatch(assignment):
        return False
    if is_powerful(assignment) and name not in _SEARCHED:
        return False
    pieces = value.split(":") if name in _SEARCHED else [value]
    return not any(piece.startswith("/") or ".." in piece.split("/") for piece in pieces)
