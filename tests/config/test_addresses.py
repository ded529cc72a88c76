"""Which address `localhost` is taken for, and which proxy is on the way to one."""

import os
import socket
import sys
from pathlib import Path
from pwd import getpwuid
from types import SimpleNamespace

import pytest

from rows import every_row
from ybs.config import addresses
from ybs.config.addresses import loopback_hosts, other_user_at, proxy_for


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
    monkeypatch.setattr(addresses, "_TABLES", ("/none",))
    assert loopback_hosts(port) == ["127.0.0.1", "::1"]


HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
ROW = " 0: {}:{:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 {} 0 1\n"


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Stand in for the tables in which Linux says who listens."""
    files = tmp_path / "tcp", tmp_path / "tcp6"
    for file in files:
        file.write_text(HEAD)
    monkeypatch.setattr(addresses, "_TABLES", tuple(map(str, files)))
    return files


def test_another_users_server_comes_last(tables: tuple[Path, Path]) -> None:
    tables[0].write_text(HEAD + ROW.format("0100007F", 8080, 54321))
    tables[1].write_text(HEAD + ROW.format("0" * 32, 8080, os.getuid()))
    assert loopback_hosts(8080) == ["::1", "127.0.0.1"]
    assert loopback_hosts(8081) == ["127.0.0.1", "::1"]
    assert other_user_at("localhost", 8080) == ""
    assert other_user_at("127.0.0.1", 8080) == "54321"


def test_only_another_persons_server_is_another_users(tables: tuple[Path, Path], monkeypatch):
    monkeypatch.setattr("pwd.getpwuid", lambda user: SimpleNamespace(pw_name=f"user{user}"))
    users = {1: os.getuid(), 2: 0, 3: 999, 4: 65534, 5: 54321, 6: 200_000}
    rows = (ROW.format("0" * 8, port, user) for port, user in users.items())
    tables[0].write_text(HEAD + "".join(rows))
    assert [other_user_at("127.0.0.1", port) for port in (*users, 7)] == [
        *("", "", "", "", "user54321", "user200000", "")
    ]


def test_a_server_at_all_addresses_answers_at_each(tables: tuple[Path, Path]) -> None:
    tables[1].write_text(HEAD + ROW.format("0" * 32, 8080, 54321))
    places = ("127.0.0.1", "::1", "localhost", "127.0.0.2")
    assert [other_user_at(place, 8080) for place in places] == ["54321"] * 4


@pytest.mark.parametrize("address", ["0100007F", "0" * 8])
def test_a_server_of_ipv6_at_an_address_of_ipv4_is_seen(tables: tuple[Path, Path], address: str):
    tables[1].write_text(HEAD + ROW.format(f"{'0' * 16}FFFF0000{address}", 8080, 54321))
    assert other_user_at("127.0.0.1", 8080) == "54321"
    assert other_user_at("::1", 8080) == ""
    assert loopback_hosts(8080) == ["127.0.0.1", "::1"]


def test_other_addresses_of_this_machine_are_looked_up_too(tables: tuple[Path, Path]) -> None:
    rows = (
        ROW.format(place, 8080, user) for place, user in (("0100007F", 54321), ("0200007F", 54322))
    )
    tables[0].write_text(HEAD + "".join(rows))
    places = ("127.0.0.1", "0.0.0.0", "127.0.0.2", "127.0.0.3", "::1")
    found = [other_user_at(place, 8080) for place in places]
    assert found == ["54321", "54321", "54322", "", ""]


@pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: only Linux says who listens")
def test_the_system_writes_such_an_address_that_way(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET6) as server:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind(("::ffff:127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            name = getpwuid(os.getuid()).pw_name
            monkeypatch.setattr(addresses, "_PEOPLE", (range(2**32),))
            monkeypatch.setattr(os, "getuid", lambda: 54321)
            assert other_user_at("127.0.0.1", port) == name


NEAR, FAR = "http://127.0.0.1:1/mcp", "https://mcp.example.com/mcp"
OTHER = "http://proxy:1"


@every_row(
    "url, environ, proxy, expected",
    [
        (FAR, {}, None, None),
        (FAR, {"HTTPS_PROXY": OTHER}, None, OTHER),
        (FAR, {"https_proxy": "proxy:1"}, None, OTHER),
        (FAR, {"HTTP_PROXY": OTHER}, None, None),
        (FAR, {"ALL_PROXY": OTHER}, None, OTHER),
        (FAR, {"HTTPS_PROXY": OTHER}, "http://own:2", "http://own:2"),
        (NEAR, {"HTTP_PROXY": OTHER}, "http://own:2", None),
        (FAR, {"HTTPS_PROXY": OTHER, "NO_PROXY": "example.com"}, None, None),
        (FAR, {"HTTPS_PROXY": OTHER, "no_proxy": "a, .Example.com"}, None, None),
        (FAR, {"HTTPS_PROXY": OTHER, "NO_PROXY": "*"}, None, None),
        (FAR, {"HTTPS_PROXY": OTHER, "NO_PROXY": "*.example.com"}, None, None),
        (FAR, {"HTTPS_PROXY": OTHER, "NO_PROXY": "ample.com,,10.0.0.0/8"}, None, OTHER),
        ("http://10.1.2.3/mcp", {"HTTP_PROXY": OTHER, "NO_PROXY": "10.0.0.0/8"}, None, None),
        ("http://11.1.2.3/mcp", {"HTTP_PROXY": OTHER, "NO_PROXY": "10.0.0.0/8"}, None, OTHER),
        ("http://10.1.2.3/mcp", {"HTTP_PROXY": OTHER, "NO_PROXY": "a 10.0.0.0/8"}, None, None),
        ("http://[fd00::1]/mcp", {"HTTP_PROXY": OTHER, "NO_PROXY": "[fd00::1]"}, None, None),
        ("http://h:81/", {"HTTP_PROXY": OTHER, "NO_PROXY": "h:81"}, None, None),
        ("http://h:82/", {"HTTP_PROXY": OTHER, "NO_PROXY": "h:81"}, None, OTHER),
        (FAR, {"HTTPS_PROXY": "http://else:1", "https_proxy": OTHER}, None, OTHER),
        (FAR, {"HTTPS_PROXY": OTHER, "https_proxy": ""}, None, None),
    ],
)
def test_the_proxy_is_that_of_the_settings_or_of_the_environment(url, environ, proxy, expected):
    assert proxy_for(url, environ, proxy) == expected


def test_where_the_environment_names_no_proxy_those_of_macos_count(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("urllib.request.getproxies", lambda: {"https": OTHER})
    monkeypatch.setattr("urllib.request.proxy_bypass", lambda host: host == "near.example")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert proxy_for(FAR, {}) == OTHER
    assert proxy_for("https://near.example/", {}) is None
    assert proxy_for(FAR, {"NO_PROXY": "", "ALL_PROXY": "http://own:1"}) == "http://own:1"
