"""S21, N01, N02, E01, E05: a hostile command in the real sandbox. Nothing may come of any attempt but the known holes."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from security.escapes.attempts import (
    ATTEMPTS,
    DESTRUCTIVE,
    NOT_UNSANDBOXED,
    OF_THE_NETWORK,
    Attempt,
    applicable,
    holes_of,
)
from security.escapes.world import NOBODY, PYTHON, World
from ybs.config.host import Host
from ybs.security.sandbox import landlock as landlock_module
from ybs.security.sandbox.bubblewrap import Bubblewrap, attempt, find
from ybs.security.sandbox.choice import Backend
from ybs.security.sandbox.landlock import Kernel, open_kernel
from ybs.security.sandbox.launch import Access
from ybs.security.sandbox.places import Places, see

HERE = applicable(os.uname().machine)
MakeBackend = Callable[[Places], Backend]

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
    pytest.mark.timeout(60),
    pytest.mark.skipif(
        not PYTHON, reason="NOT TESTED: no Python of the system can be seen in a sandbox"
    ),
]
as_root = pytest.mark.skipif(os.getuid() != 0, reason="NOT TESTED: only root can try both users")


@pytest.fixture(scope="module")
def bubblewrap() -> MakeBackend:
    program = find()
    options, why = attempt(program) if program else (None, "bubblewrap is not installed")
    if options is None or program is None:
        pytest.skip(f"NOT TESTED: {why}")
    return partial(Bubblewrap, program=program, options=options, why="")


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    found, why = landlock_module.attempt(open_kernel())
    if found is None:
        pytest.skip(f"NOT TESTED: {why}")
    return found


@pytest.fixture
def landlock(kernel: Kernel) -> MakeBackend:
    def make(places: Places) -> Backend:
        backend = landlock_module.Landlock(places, kernel, "")
        for path in (backend.private.path, backend.private.home, backend.private.temporary):
            os.chown(path, places.uid, -1)
        return backend

    return make


def successes(
    make: MakeBackend, user: int, attempts: Sequence[Attempt] = HERE, *, network: bool = False
) -> set[str]:
    """Let a user make the attempts in a sandbox; return those that succeeded."""
    with World(user) as world:
        places = see(
            Host.of({"HOME": str(world.home)}),
            world.project,
            blocked=["hidden", "deep/vault"],
            uid=user,
        )
        command = world.command(attempts)
        launch = make(places).launch(command, world.project, world.environ, Access(network=network))
        results = world.attack(launch, attempts)
    return {id_ for id_, said in results.items() if said == "won"}


def test_there_are_more_than_a_hundred_attempts_and_each_has_an_id() -> None:
    counts = Counter(one.family for one in ATTEMPTS)
    assert len({one.id for one in ATTEMPTS}) == len(ATTEMPTS) == counts.total() >= 100
    assert set(counts) == set("WLRENK")


def test_S21_nothing_escapes_from_bubblewrap(bubblewrap: MakeBackend) -> None:
    assert successes(bubblewrap, os.getuid()) == set()


@pytest.mark.slow
@as_root
def test_S21_nothing_escapes_from_bubblewrap_as_an_ordinary_user(bubblewrap: MakeBackend) -> None:
    assert successes(bubblewrap, NOBODY) == set()


@pytest.mark.slow
def test_S21_only_the_known_holes_are_open_in_landlock(
    landlock: MakeBackend, kernel: Kernel
) -> None:
    assert successes(landlock, os.getuid()) == holes_of(kernel.abi)


@pytest.mark.slow
@as_root
def test_S21_only_the_known_holes_are_open_in_landlock_as_an_ordinary_user(
    landlock: MakeBackend, kernel: Kernel
) -> None:
    assert successes(landlock, NOBODY) == holes_of(kernel.abi)


@pytest.mark.slow
@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5])
def test_S21_an_older_landlock_has_no_more_holes_than_are_known(kernel: Kernel, abi: int) -> None:
    older = Kernel(kernel.syscall, kernel.prctl, min(abi, kernel.abi))

    def make(places: Places) -> Backend:
        return landlock_module.Landlock(places, older, "")

    assert successes(make, os.getuid()) == holes_of(older.abi)


@pytest.mark.slow
def test_N02_the_network_opens_the_network_and_no_socket_of_this_machine(
    bubblewrap: MakeBackend, landlock: MakeBackend, kernel: Kernel
) -> None:
    attempts = [one for one in HERE if one.id not in NOT_UNSANDBOXED]
    opened = successes(bubblewrap, os.getuid(), attempts, network=True)
    assert opened == OF_THE_NETWORK
    opened = successes(landlock, os.getuid(), attempts, network=True)
    assert opened == OF_THE_NETWORK | holes_of(kernel.abi)


@pytest.mark.slow
@pytest.mark.parametrize("user", [os.getuid(), pytest.param(NOBODY, marks=as_root)])
def test_without_a_sandbox_most_attempts_succeed(user: int) -> None:
    """The control: a suite whose attempts are all too weak would prove nothing."""
    attempts = [one for one in HERE if one.id not in DESTRUCTIVE | NOT_UNSANDBOXED]
    with World(user) as world:
        results = world.attack(world.unsandboxed(attempts), attempts)
    won = {id_ for id_, said in results.items() if said == "won"}
    assert len(won) >= 0.75 * len(attempts), sorted(set(results) - won)
    assert {one.id for one in attempts if one.family == "R"} - won <= {"R25", "R32", "R33", "R35"}


@pytest.mark.slow
@pytest.mark.parametrize("id_", sorted(DESTRUCTIVE))
def test_without_a_sandbox_each_destructive_attempt_succeeds(id_: str) -> None:
    if id_ in ("L22", "L23") and (os.getuid() != 0 or os.uname().machine != "x86_64"):
        pytest.skip("NOT TESTED: needs root and the calls of x86_64")
    attempts = [one for one in ATTEMPTS if one.id == id_]
    with World() as world:
        assert world.attack(world.unsandboxed(attempts), attempts) == {id_: "won"}


def test_S19_the_reduced_sandbox_keeps_what_matters(landlock: MakeBackend, kernel: Kernel) -> None:
    """A part of the attempts, one of each kind, so that the quick suite sees this sandbox too."""
    ids = (
        "W01",
        "W05",
        "W14",
        "W25",
        "L01",
        "L06",
        "L14",
        "R01",
        "R24",
        "R29",
        "E01",
        "N01",
        "N05",
        "N08",
    )
    some = [one for one in ATTEMPTS if one.id in ids]
    assert successes(landlock, os.getuid(), some) == set()


def test_S20_programs_of_the_project_stay_in_the_sandbox(bubblewrap: MakeBackend) -> None:
    """A project's folder that comes first in PATH changes what runs inside, never what runs the sandbox."""
    with World() as world:
        tools = world.project / "tools"
        tools.mkdir()
        for name in ("bwrap", "sh", "python3"):
            (tools / name).write_text(f"#!/bin/sh\necho S20 > {world.outside}/W01\n")
            (tools / name).chmod(0o755)
        environ = {**world.environ, "PATH": f"{tools}:{world.environ['PATH']}"}
        some = [one for one in ATTEMPTS if one.id == "W02"]
        places = see(Host.of({"HOME": str(world.home)}), world.project)
        launch = bubblewrap(places).launch(world.command(some), world.project, environ)
        assert Path(launch.argv[0]).parent != tools
        assert world.attack(launch, some)["W02"] != "won"
        assert not (world.outside / "W01").exists()
