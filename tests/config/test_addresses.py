"""Which address `localhost` is taken for."""

import os
import socket
import sys
from pathlib import Path

import pytest

from ybs.config import addresses
from ybs.config.addresses import loopback_hosts


@pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: only Linux says who listens")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::"])
def test_localhost_is_where_a_server_of_the_persons_listens(host: str, monkeypatch):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as server:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip(f"NOT TESTED: this machine has no {host}")
        server.listen()
        port = server.getsockname()[1]
        found = ["::1", "127.0.0.1"] if ":" in host else ["127.0.0.1", "::1"]
        assert loopback_hosts(port) == found
    monkeypatch.setattr(addresses, "_LOCALHOST", {"a": ("/none", ()), "b": ("/none", ())})
    assert loopback_hosts(port) == ["a", "b"]


def test_another_users_server_comes_last(tmp_path: Path, monkeypatch):
    head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
    row = " 0: {}:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 {} 0 1\n"
    (tmp_path / "tcp").write_text(head + row.format("0100007F", 54321))
    (tmp_path / "tcp6").write_text(head + row.format("0" * 32, os.getuid()))
    tables = {
        "127.0.0.1": (str(tmp_path / "tcp"), ("0100007F",)),
        "::1": (str(tmp_path / "tcp6"), ("0" * 32,)),
    }
    monkeypatch.setattr(addresses, "_LOCALHOST", tables)
    assert loopback_hosts(8080) == ["::1", "127.0.0.1"]
    assert loopback_hosts(8081) == ["127.0.0.1", "::1"]
