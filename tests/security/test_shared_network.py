"""The network that a session's commands share, where it cannot be had; with real servers: `tests/session/test_servers.py`."""

import os
import socket
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from ybs.core.errors import ToolError
from ybs.security.launcher import BUBBLEWRAP, system_program
from ybs.security.sandbox import shared_network
from ybs.security.sandbox.choice import has_bubblewrap
from ybs.security.sandbox.shared_network import SharedNetwork

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux")


@pytest.fixture
def wanted() -> SharedNetwork:
    network = SharedNetwork()
    network.want()
    return network


@pytest.mark.integration
def test_a_program_that_makes_no_namespace_does_not_open_the_machines_network(wanted, tmp_path):
    pretended = tmp_path / "bwrap"
    pretended.write_text("#!/bin/sh\necho $$\nread -r _\n")
    pretended.chmod(0o755)
    assert wanted.prefix(str(pretended)) == ()
    wanted.close()


@pytest.mark.integration
def test_a_program_that_says_nothing_is_not_waited_for(wanted, tmp_path, monkeypatch):
    monkeypatch.setattr(shared_network, "_SECONDS", 0.05)
    silent = tmp_path / "bwrap"
    silent.write_text("#!/bin/sh\nread -r _\n")
    silent.chmod(0o755)
    assert wanted.prefix(str(silent)) == ()
    wanted.close()


def test_without_nsenter_each_command_keeps_a_network_of_its_own(wanted, monkeypatch):
    monkeypatch.setattr(shared_network, "ENTER", ("/gone/nsenter",))
    assert wanted.prefix(str(system_program(BUBBLEWRAP))) == ()
    assert wanted.listening() == []
    with pytest.raises(ToolError, match="Nothing is running"):
        wanted.forward(3456)


def test_it_is_made_when_it_is_wanted_and_where_that_fails_not_again(monkeypatch):
    made: list[str] = []

    def fail(_self: SharedNetwork, bubblewrap: str) -> None:
        made.append(bubblewrap)
        raise OSError

    monkeypatch.setattr(SharedNetwork, "_make", fail)
    network = SharedNetwork()
    assert (network.prefix("bwrap"), network.is_wanted, made) == ((), False, [])
    network.want()
    assert (network.prefix("bwrap"), network.prefix("bwrap"), made) == ((), (), ["bwrap"])
    network.close()
    assert (network.is_wanted, network.prefix("bwrap"), made) == (False, (), ["bwrap"])
    network.want()
    network._prefix = ("enter",)
    assert (network.prefix("bwrap"), made) == (("enter",), ["bwrap"])
    network._prefix = ()
    assert (network.prefix("again"), made) == ((), ["bwrap", "again"])


def test_closing_it_lets_go_of_the_namespace():
    network = SharedNetwork()
    reading, writing = os.pipe()
    network._descriptors, network._prefix = [writing], ("enter",)
    network.close()
    assert os.read(reading, 1) == b""
    os.close(reading)
    assert network.prefix("bwrap") == ()


def test_only_ports_that_are_listened_on_are_told(wanted, monkeypatch):
    table = """\
  sl  local_address rem_address   st tx_queue
   0: 0100007F:1F90 00000000:0000 0A 00000000
   1: 0100007F:0D80 0100007F:1F90 01 00000000
   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A
   1: a:0051 0A

"""

    # There are machines without IPv6, on which it fails.
    monkeypatch.setattr(shared_network, "ask", lambda *_: (1, table.encode(), b""))
    assert wanted.listening() == []
    wanted._prefix = ("enter",)
    assert wanted.listening() == [80, 8080]


def test_a_forward_is_ended_once():
    network = SharedNetwork()
    ended: list[str] = []
    process: Any = SimpleNamespace(
        kill=lambda: ended.append("killed"),
        communicate=lambda: ended.append("gone"),
        poll=lambda: None,
    )
    gone: Any = SimpleNamespace(poll=lambda: 0)
    network._forwards = {80: (8080, process), 81: (8181, gone)}
    assert network.forwards == {80: 8080}
    assert network.forward(80) == 8080
    assert [network.end(port) for port in (80, 80, 7)] == [True, False, False]
    assert ended == ["killed", "gone"]


@pytest.mark.integration
def test_a_port_is_forwarded_once(wanted: SharedNetwork):
    if not has_bubblewrap():
        pytest.skip("NOT TESTED: bubblewrap does not work here")
    assert wanted.prefix(str(system_program(BUBBLEWRAP)))
    try:
        outside = wanted.forward(3456)
        assert wanted.forward(3456) == outside
        assert wanted.forwards == {3456: outside}
    finally:
        wanted.close()
    assert wanted.forwards == {}


@pytest.mark.integration
def test_a_port_that_the_machine_has_in_use_is_forwarded_to_another_one(wanted: SharedNetwork):
    if not has_bubblewrap():
        pytest.skip("NOT TESTED: bubblewrap does not work here")
    assert wanted.prefix(str(system_program(BUBBLEWRAP)))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        try:
            assert wanted.forward(port) not in (0, port)
        finally:
            wanted.close()
