"""The rules of the reduced sandbox. That they hold is shown by the escapes."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rows import every_row
from ybs.config.host import Host
from ybs.core.errors import Refused
from ybs.security.sandbox import landlock
from ybs.security.sandbox.entry import Entry, Kernel
from ybs.security.sandbox.landlock import Landlock, handled_rights
from ybs.security.sandbox.places import see

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux")

READ, WRITE_FILE = 0b1101, 0b10


class FakeKernel(Kernel, frozen=True):
    """Gives out real descriptors, records the rules, and refuses if it is told to."""

    rules: dict[str, int]
    asked: list[tuple[int, int, int]]
    refuses: bool

    def create_ruleset(self, rights: int, *, network: int, scopes: int) -> int:
        self.asked.append((rights, network, scopes))
        return os.open("/dev/null", os.O_RDONLY)

    def allow(self, ruleset: int, descriptor: int, rights: int) -> None:
        if self.refuses:
            raise OSError("no more rules")
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        self.rules[path] = self.rules.get(path, 0) | rights


def fake(abi: int = 7, *, refuses: bool = False) -> FakeKernel:
    return FakeKernel(lambda *_: 0, lambda *_: 0, abi, {}, [], refuses)


def rules_of(project: Path, home: Path, kernel: FakeKernel | None = None, *, network: bool = False, **places: object) -> dict[str, int]:  # fmt: skip
    kernel = kernel or fake()
    backend = Landlock(see(Host.of({"HOME": str(home)}), project, **places), kernel, "")
    launch = backend.launch(("true",), project, {}, network=network)
    for descriptor in launch.descriptors:
        os.close(descriptor)
    return kernel.rules


def test_a_project_without_protected_names_is_writable_as_a_whole(
    project: Path, home: Path
) -> None:
    rules = rules_of(project, home)
    assert rules[str(project)] & WRITE_FILE
    assert rules["/usr"] == READ
    assert rules["/proc"] == READ
    assert "/" not in rules
    assert str(home) not in rules


def test_a_protected_name_makes_the_folder_around_it_read_only(project: Path, home: Path) -> None:
    for name in (".git", "src", "lib/sub/.git", "lib/more"):
        (project / name).mkdir(parents=True)
    (project / "file").write_text("")
    (project / "way").symlink_to("/etc")
    rules = rules_of(project, home)
    writable = {path for path, rights in rules.items() if rights & WRITE_FILE}
    inside = {
        str(Path(path).relative_to(project)) for path in writable if path.startswith(str(project))
    }
    assert inside == {"src", "file", "lib/more"}
    assert rules[str(project)] & 0b1100 == 0b1100, "all of it can be read"


def test_a_blocked_path_can_be_neither_read_nor_written(project: Path, home: Path) -> None:
    for name in ("secret", "src"):
        (project / name).mkdir()
    rules = rules_of(project, home, blocked=["secret"])
    assert str(project / "secret") not in rules
    assert rules[str(project)] == 0b1000, "only listed"
    assert rules[str(project / "src")] & WRITE_FILE


def test_a_whole_root_that_is_blocked_in_the_system_gets_no_rule(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "host_secrets", lambda: ["/usr"])
    assert "/usr" not in rules_of(project, home)


def test_a_folder_that_cannot_be_listed_gives_nothing(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path == "/etc":
            raise PermissionError
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(landlock, "host_secrets", lambda: ["/etc/shadow"])
    assert rules_of(project, home)["/etc"] == 0b1000


@pytest.mark.parametrize("name", ["swapped", "swapped/inner"])
def test_what_became_a_link_meanwhile_opens_nothing(
    project: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "outside" / "inner").mkdir(parents=True)
    (project / "swapped").symlink_to(tmp_path / "outside")
    monkeypatch.setattr(
        landlock, "_rules", lambda *_, **__: [(f"{project}/{name}", 0b1111), ("/usr", READ)]
    )
    rules = rules_of(project, home)
    assert rules["/usr"] == READ
    assert not any(path.startswith(str(tmp_path / "outside")) for path in rules)


def test_what_has_gone_meanwhile_gets_no_rule(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "git_folders", lambda _: ["/gone/.git", "/usr"])
    assert "/gone/.git" not in rules_of(project, home)


def test_files_get_the_rights_of_files(project: Path, home: Path) -> None:
    assert rules_of(project, home)["/dev/null"] == 0b110 | 1 << 14


def test_the_name_servers_file_is_read_with_the_network(project: Path, home: Path) -> None:
    real = os.path.realpath("/etc/resolv.conf")
    if not Path(real).exists():
        pytest.skip("NOT TESTED: this machine has no /etc/resolv.conf")
    assert rules_of(project, home, network=True)[real] & 0b100


@every_row(("abi", "top"), [(1, 12), (2, 13), (3, 14), (4, 14), (5, 15), (7, 15)])
def test_every_right_that_the_version_knows_is_withheld(abi: int, top: int) -> None:
    assert handled_rights(abi) == (1 << (top + 1)) - 1


@pytest.mark.parametrize(("abi", "network", "expected"), [(3, False, (0, 0)), (4, False, (3, 0)), (6, False, (3, 3)), (7, True, (0, 3))])  # fmt: skip
def test_network_and_scopes_are_asked_for_where_they_exist(
    project: Path, home: Path, abi: int, network: bool, expected: tuple[int, int]
) -> None:
    kernel = fake(abi)
    rules_of(project, home, kernel, network=network)
    assert [asked[1:] for asked in kernel.asked] == [expected]


def test_an_error_of_the_kernel_closes_the_ruleset(project: Path, home: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OSError, match="no more rules"):
        rules_of(project, home, fake(refuses=True))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_launch_enters_in_the_child_with_a_home_of_its_own(project: Path, home: Path) -> None:
    (home / ".pyenv").mkdir()
    backend = Landlock(see(Host.of({"HOME": str(home)}), project), fake(), "")
    launch = backend.launch(("sh", "-c", "x"), project, {"RUSTUP_HOME": "/opt/rust", "A_KEY": "k"})
    os.close(launch.descriptors[0])
    assert launch.argv == ("sh", "-c", "x")
    assert isinstance(launch.before_exec, Entry)
    assert launch.environ["HOME"] == backend.private.home
    assert launch.environ["TMPDIR"] == backend.private.temporary
    assert launch.environ["PYENV_ROOT"] == str(home / ".pyenv")
    assert launch.environ["RUSTUP_HOME"] == "/opt/rust"
    assert "NVM_DIR" not in launch.environ
    assert "A_KEY" not in launch.environ


def test_the_private_folder_is_the_owners_and_goes_with_the_sandbox(
    project: Path, home: Path
) -> None:
    backend = Landlock(see(Host.of({"HOME": str(home)}), project), fake(), "")
    folder = Path(backend.private.path)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert backend.private.path == str(folder), "made once"
    del backend
    assert not folder.exists()


def test_a_command_outside_of_the_sandbox_is_refused(project: Path, home: Path) -> None:
    with pytest.raises(Refused):
        Landlock(see(Host.of({"HOME": str(home)}), project), fake(), "").launch(
            ("x",), project.parent, {}
        )


def test_a_machine_without_a_filter_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="riscv64"))
    assert landlock.attempt(fake())[0] is None
