"""The environment of a sandboxed program: built from a list of names, never inherited."""

from collections.abc import Mapping

from ybs.core.errors import ToolError

#: Handed on as they are: language, time zone, who the person is, how wide the screen is, and the mark of a ybs around
#: this one, by which that one ends what it started.
_KEPT = (
    *("LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "COLUMNS", "LINES", "CI"),
    "RUN_BY_YBS",
    *("LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME"),
    *("LC_ADDRESS", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_NAME", "LC_PAPER", "LC_TELEPHONE"),
)
#: Where toolchains lie. Only an absolute path is handed on: nothing else has to be in these.
_KEPT_PATHS = (
    *("VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "GOROOT", "GOPATH", "RUSTUP_HOME", "PYENV_ROOT"),
    *("NVM_DIR", "RBENV_ROOT", "ASDF_DATA_DIR", "VOLTA_HOME", "BUN_INSTALL", "PNPM_HOME"),
)
#: Which of several toolchains: words, never paths.
_KEPT_WORDS = ("PYENV_VERSION", "RUSTUP_TOOLCHAIN", "NODE_ENV", "CONDA_DEFAULT_ENV")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
#: So that nothing waits for a person, draws a screen, or writes where it need not.
_SET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
}
#: Without a network more tries are vain, and npm alone would try for longer than a command may take. pip names the
#: network as the reason only when it tries again.
_SET_OFFLINE = {
    "PIP_RETRIES": "1",
    "UV_HTTP_RETRIES": "0",
    "CARGO_NET_RETRY": "0",
    "npm_config_fetch_retries": "0",
}
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_LONGEST_WORD = 100
#: No declaration may set these: they run code before the program does, or say where the sandbox is.
_NEVER = frozenset({"BASH_ENV", "ENV", "GCONV_PATH", "TMPDIR"})
#: The program that makes the sandbox gets the variables, too, and it is the dynamic linker that acts on these: it loads libraries, or writes files.
_NEVER_BEGINNING = ("LD_", "DYLD_")


def build(
    environ: Mapping[str, str],
    *,
    home: str,
    temporary: str = "/tmp",  # noqa: S108 - the sandbox's own, not the machine's
    network: bool = False,
    declared: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the variables of a sandboxed program; `environ` is the environment of ybs's own process.

    `declared` are variables that the person's own settings give to one program (a tool, an MCP server).
    Raises ToolError for a declared name or value that cannot be one.
    """
    built = {name: environ[name] for name in _KEPT if name in environ}
    built |= {
        name: value for name in _KEPT_PATHS if (value := environ.get(name, "")).startswith("/")
    }
    built |= {name: value for name in _KEPT_WORDS if _is_word(value := environ.get(name, ""))}
    built |= _proxies(environ) if network else _SET_OFFLINE
    built |= {"HOME": home, "PATH": path_of(environ), "TMPDIR": temporary, **_SET}
    return built | _checked(declared or {})


def build_open(
    environ: Mapping[str, str], *, declared: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the variables of a program that runs in no sandbox: in the person's own home, with the network."""
    home, temporary = environ.get("HOME", "/"), environ.get("TMPDIR", "/tmp")  # noqa: S108 - the machine's own
    return build(environ, home=home, temporary=temporary, network=True, declared=declared)


def path_of(environ: Mapping[str, str]) -> str:
    """Return PATH without relative and empty parts, which mean the folder a program happens to be in."""
    parts = environ.get("PATH", "").split(":")
    return ":".join(part for part in parts if part.startswith("/")) or _DEFAULT_PATH


def _is_word(value: str) -> bool:
    return 0 < len(value) <= _LONGEST_WORD and all(
        character.isalnum() or character in ".-_" for character in value
    )


def _proxies(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the proxies that programs need to get out, except those with a password in them."""
    names = [spelled for name in _PROXIES for spelled in (name, name.lower())]
    return {name: value for name in names if (value := environ.get(name)) and "@" not in value}


def _checked(declared: Mapping[str, str]) -> dict[str, str]:
    for name, value in declared.items():
        if not name or "=" in name or "\0" in name + value:
            raise ToolError(
                f"The variable {name!r} cannot be set: the name or the value is invalid."
            )
        if name in _NEVER or name.startswith(_NEVER_BEGINNING):
            raise ToolError(f"The variable {name} cannot be declared: it would change the sandbox.")
    return dict(declared)
