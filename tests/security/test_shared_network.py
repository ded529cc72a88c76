"""The network that a session's commands share, where it cannot be had; with real servers: `tests/session/test_servers.py`."""

import socket
import sys
from pathlib import Path

import pytest

from ybs.core.errors import ToolError
from ybs.security.sandbox import shared_network
from ybs.security.sandbox.choice import has_bubblewrap
from ybs.security.sandbox.programs import BUBBLEWRAP, system_program
from ybs.security.sandbox.shared_network import SharedNetwork

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux")


@pytest.fixture
def wanted() -> SharedNetwork:
    network = SharedNetwork()
    network.want()
    return network


@pytest.mark.integration
def test_a_program_that_makes_no_namespace_does_not_open_the_machines_network(
    wanted: SharedNetwork, tmp_path: Path
):
    pretended = tmp_path / "bwrap"
    pretended.write_text("#!/bin/sh\necho $$\nread -r _\n")
    pretended.chmod(0o755)
    assert wanted.prefix(str(pretended)) == ()
    wanted.close()


def test_without_nsenter_each_command_keeps_a_network_of_its_own(
    wanted: SharedNetwork, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shared_network, "ENTER", ("/gone/nsenter",))
    assert wanted.prefix(str(system_program(BUBBLEWRAP))) == ()
    assert wanted.listening() == []
    with pytest.raises(ToolError, match="Nothing is running"):
        wanted.forward(3456)


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
