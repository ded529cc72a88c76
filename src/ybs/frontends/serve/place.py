"""The server's files: its socket, the lock that lets one run, and its token."""

import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from ybs.config import private_file
from ybs.config.host import Host
from ybs.config.private_socket import short_path
from ybs.core.errors import ConfigError

_BACKLOG: Final = 100


class ServerPlace(Struct, frozen=True):
    """Where one server of this person is reached, and where it keeps what it has to know after a kill."""

    path: Path
    state_folder: Path
    is_own: bool

    @classmethod
    def of(cls, host: Host, named: Path | None = None) -> "ServerPlace":
        """Return the place in ybs's own folder, which no command of a model gets at, or the one that the person names."""
        folder = host.state_folder / "serve"
        return cls((named or folder / "serve.sock").absolute(), folder, named is None)

    @property
    def token_file(self) -> Path:
        """The token, for the person's own programs: needed over TCP, and where the socket is not in ybs's own folder."""
        return self.state_folder / "token"

    @property
    def log_file(self) -> Path:
        """What a server says that nobody watches."""
        return self.state_folder / "log"

    def lock(self) -> int:
        """Hold the lock of this place until the descriptor is closed. Raises Busy, Unsafe and OSError."""
        return private_file.open_locked(self.path.with_name(f"{self.path.name}.lock"))

    def make_token(self) -> None:
        """Make another token: each server has its own. Raises Unsafe and OSError."""
        private_file.replace(self.token_file, secrets.token_urlsafe(32).encode())

    def token(self) -> str:
        """Return the token of the server that runs. Raises Unsafe and OSError."""
        return (private_file.read(self.token_file) or b"").decode()

    def listen(self) -> socket.socket:
        """Return a socket that nobody but this person can reach. Raises ConfigError and OSError."""
        folder = self.path.parent
        private_file.make_folder(folder)
        facts = folder.stat()
        if facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
            raise ConfigError(
                f"The folder of the socket, {folder}, is open to others. It has to be yours alone: chmod 700 {folder}"
            )
        self.path.unlink(missing_ok=True)  # left by a server that was killed
        listening = socket.socket(socket.AF_UNIX)
        try:
            with short_path(self.path) as path:
                listening.bind(path)
            self.path.chmod(0o600)
            listening.listen(_BACKLOG)
        except BaseException:
            listening.close()
            raise
        return listening

    def close(self) -> None:
        """Take the socket away."""
        with suppress(OSError):
            self.path.unlink()
