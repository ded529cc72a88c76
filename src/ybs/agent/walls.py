"""Which part of the sandbox a failed command ran into, read from what it printed: for the person, and for the model."""

from collections.abc import Sequence
from typing import Final

from ybs.core.lazy import lazy
from ybs.security.sandbox.launch import GIT_READ_ONLY

NO_NETWORK: Final = "there is no network in the sandbox"
NO_KEYS: Final = "keys and logins are not in the sandbox"
HOME_EMPTY: Final = "the home folder begins empty in the sandbox"
NO_SERVERS: Final = "servers of this machine cannot be reached from the sandbox"
READ_ONLY: Final = "in the sandbox only the project can be written, without the files in it that other programs run"
ALL_READ_ONLY: Final = "what runs without a question has the project read-only"

OWN_CODE: Final = "ybs itself runs from there, so it is read-only in the sandbox"

_NETWORK = lazy(
    r"Network is unreachable|ENETUNREACH|No route to host|EHOSTUNREACH"
    r"|Temporary failure in name resolution|Temporary failure resolving|Could not resolve|Couldn't resolve"
    r"|Name or service not known|nodename nor servname|No address associated with hostname|no such host"
    r"|ENOTFOUND|EAI_AGAIN|getaddrinfo|unable to resolve|failed to lookup address|dns error"
    r"|offline mode|Failed to fetch https?:|unable to access 'https?:"
)
_KEYLESS = lazy(
    r"Permission denied \(publickey|authentication agent|Host key verification failed|gh auth login"
    r"|could not read (?:Username|Password) for|terminal prompts disabled|Authentication failed for 'https?:"
)
_REFUSED = lazy(r"Connection refused|ECONNREFUSED|Couldn't connect to server")
_READ_ONLY = lazy(r"Read-only file system|\bEROFS\b")
_UNWRITABLE = lazy(
    r"Read-only file system|\bEROFS\b|Permission denied|\bEACCES\b|Device or resource busy|\bEBUSY\b|Errno (?:13|16|30)\b"
)
_GIT = lazy(
    r"\.git(?:/[^\n]*)?['\"]?: Read-only file system|could not lock config file|cannot lock ref"
    r"|(?:[Uu]nable|failed) to (?:create|write|open)[^\n]*\.git\b"
)
_MISSING = lazy(r"No such file or directory|not found|ENOENT|does not exist")
_PATH = lazy(r"(?<![\w.~/])(?:~|/)/?[^\s:'\"`]*")


def wall_of(
    said: str,
    home: str,
    shown: Sequence[str] = (),
    *,
    has_network: bool = False,
    is_read_only: bool = False,
    code: Sequence[str] = (),
) -> str:
    """Return what in the sandbox stood in the way, as half a sentence; nothing where that does not show.

    `shown` are the folders that commands see as they are, `code` names of where ybs's own code lies.
    """
    for wall, words in ((NO_NETWORK, _NETWORK), (NO_KEYS, _KEYLESS)):
        if words().search(said) and not (has_network and wall == NO_NETWORK):
            return wall
    if any(path in said for path in code) and _UNWRITABLE().search(said):
        return OWN_CODE
    if _UNWRITABLE().search(said) and _GIT().search(said):
        return GIT_READ_ONLY
    if _READ_ONLY().search(said):
        return ALL_READ_ONLY if is_read_only else READ_ONLY
    if not has_network and _REFUSED().search(said):
        return NO_SERVERS
    missed = (line for line in said.splitlines() if _MISSING().search(line))
    return HOME_EMPTY if any(_is_of_home(line, home, shown) for line in missed) else ""


def _is_of_home(line: str, home: str, shown: Sequence[str]) -> bool:
    """Return whether a line names a path of the home folder that commands do not see as it is."""
    for path in _PATH().findall(line):
        real = home + path[1:] if path.startswith("~") else path
        if real.startswith(f"{home}/") and not any(
            real == top or real.startswith(f"{top}/") for top in shown
        ):
            return True
    return False
