"""A socket is connected to only where nobody else can have put it, and answers."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ybs.config import private_socket
from ybs.frontends.serve.client import ServerClient
from ybs.frontends.serve.place import ServerPlace


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[ServerPlace, socket.socket]]:
    """Listen at a socket, as `ybs serve` does."""
    folder = tmp_path / "serve"
    place = ServerPlace(folder / "serve.sock", folder, is_own=True)
    with place.listen() as listening:
        listening.settimeout(1)
        yield place, listening


def test_a_socket_of_this_user_is_connected_to(place: tuple[ServerPlace, socket.socket]):
    with private_socket.connect(place[0].path, 1) as link:
        assert private_socket.peer_uid(link) == os.geteuid()


@pytest.mark.parametrize("why", ["folder", "process"])
async def test_a_client_tells_nothing_to_a_server_that_could_be_somebody_elses(
    place: tuple[ServerPlace, socket.socket], why: str, monkeypatch: pytest.MonkeyPatch
):
    def another(_: socket.socket) -> int:
        return os.geteuid() + 1

    if why == "folder":
        place[0].path.parent.chmod(0o777)
    else:
        monkeypatch.setattr(private_socket, "peer_uid", another)
    with pytest.raises(PermissionError, match=why):
        await ServerClient.connect(place[0])
    if why == "process":
        with place[1].accept()[0] as heard:
            assert heard.recv(100) == b""
