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
from ybs.security.sandbox.landlock import Kernel, Landlock, SandboxEntry, handled_rights
from ybs.security.sandbox.launch import Access, SandboxView
from ybs.security.sandbox.places import Places, see
from ybs.security.sandbox.resident import KeptFolder

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
    launch = backend.launch(("true",), project, {}, Access(network=network))
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


@pytest.mark.parametrize("read_only", [False, True])
def test_each_place_has_these_rights(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch, read_only: bool
) -> None:
    monkeypatch.setattr(landlock, "host_secrets", list)
    monkeypatch.setattr(landlock, "system_folders", lambda: [("/usr", ""), ("/bin", "usr/bin")])
    kernel = fake()
    backend = Landlock(see(Host.of({"HOME": str(home)}), project), kernel, "")
    launch = backend.launch(
        ("true",), project, {"PATH": f"{project}:/usr/bin"}, Access(read_only=read_only)
    )
    for descriptor in launch.descriptors:
        os.close(descriptor)
    own = backend.private
    all_but_ioctl = 0b111_1111_1111_1111
    devices = {
        f"/dev/{name}": 0b110 | 1 << 14 for name in ("null", "zero", "full", "random", "urandom")
    }
    system = {"/usr": READ, "/proc": READ, "/sys/devices/system/cpu": READ, **devices}
    writable = {str(project): all_but_ioctl, own.temporary: all_but_ioctl, own.home: all_but_ioctl}
    read = {str(project): READ, own.temporary: READ, own.unshared: all_but_ioctl}
    assert kernel.rules == {**system, **(read if read_only else writable)}
    folder = own.unshared if read_only else own.temporary
    environ = (launch.environ["HOME"], launch.environ["TMPDIR"], launch.environ["PATH"])
    assert environ == (folder if read_only else own.home, folder, f"{project}:/usr/bin")
    assert launch.scratch == own.path


@pytest.mark.integration
@every_row(("abi", "network", "read_only", "can_deny_truncate"), [(2, False, False, False), (3, True, False, True), (7, False, True, True)])  # fmt: skip
def test_the_filter_closes_what_this_version_of_landlock_cannot(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch, abi: int, network: bool, read_only: bool, can_deny_truncate: bool
) -> None:  # fmt: skip
    asked: list[object] = []

    def replacing(machine: str, **given: bool) -> bytes:
        asked.append((machine, given))
        return b"program "

    monkeypatch.setattr(landlock, "replacing_namespaces", replacing)
    backend = Landlock(see(Host.of({"HOME": str(home)}), project), fake(abi), "")
    launch = backend.launch(("true",), project, {}, Access(network=network, read_only=read_only))
    os.close(launch.descriptors[0])
    given = {"network": network, "can_deny_truncate": can_deny_truncate, "read_only": read_only}
    given["can_deny_signals"] = abi >= 6
    assert asked == [(os.uname().machine, given)]
    assert ("PIP_RETRIES" in launch.environ) is not network


def view_of(project: Path, *, is_writing: bool = False) -> SandboxView:
    return SandboxView(
        folder=str(project),
        git_folders=(str(project / ".git"),),
        shown=(str(project), str(project / "gone")),
        hidden=(str(project / "secret"), str(project / ".git")),
        is_writing=is_writing,
    )


@pytest.mark.parametrize("is_writing", [False, True])
def test_ybs_own_git_has_what_is_shown_and_its_folder(project: Path, is_writing: bool) -> None:
    for name in (".git", "secret", "src"):
        (project / name).mkdir()
    kernel = fake()
    devices = ("/dev/null",)
    ruleset = landlock.git_ruleset(kernel, ("/usr", "/gone"), devices, view_of(project, is_writing=is_writing))  # fmt: skip
    os.close(ruleset)
    assert kernel.rules == {
        "/usr": READ,
        "/dev/null": 0b110,
        str(project): 0b1000,
        str(project / "src"): READ,
        str(project / ".git"): 0b111_1111_1111_1111 if is_writing else READ,
    }
    assert kernel.asked == [((1 << 16) - 1, 3, 3)]


@every_row(("abi", "asked"), [(3, (0, 0)), (4, (3, 0)), (5, (3, 0)), (6, (3, 3))])
def test_ybs_own_git_is_held_by_all_that_the_version_knows(
    project: Path, abi: int, asked: tuple[int, int]
) -> None:
    kernel = fake(abi)
    os.close(landlock.git_ruleset(kernel, (), (), view_of(project)))
    assert kernel.asked == [(handled_rights(abi), *asked)]
    assert all(rights & ~handled_rights(abi) == 0 for rights in kernel.rules.values())


def test_a_device_that_is_missing_starts_no_git(project: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(FileNotFoundError):
        landlock.git_ruleset(fake(), (), ("/dev/gone",), view_of(project))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


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
    assert rules[str(project / "file")] == 0b111 | 1 << 14, "what is of folders is not of files"


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


def test_a_folder_beside_the_project_that_becomes_a_link_while_rules_are_made_opens_nothing(
    project: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "modules").symlink_to(tmp_path / "private")
    monkeypatch.setattr(Places, "seen", property(lambda _: [f"{tmp_path}/modules"]))
    rules = rules_of(project, home)
    assert rules["/usr"] == READ
    assert str(tmp_path / "private") not in rules


def test_keys_stay_closed_in_a_toolchain_that_is_a_link(
    project: Path, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "disk" / "bin").mkdir(parents=True)
    (tmp_path / "disk" / "credentials").write_text("x")
    (home / ".pyenv").symlink_to(tmp_path / "disk")
    rules = rules_of(project, home)
    assert rules[str(tmp_path / "disk" / "bin")] == READ
    assert str(tmp_path / "disk" / "credentials") not in rules


def test_a_toolchain_that_lies_on_another_disk_is_opened_by_its_link(
    project: Path, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "disk").mkdir()
    (home / ".pyenv").symlink_to(tmp_path / "disk")
    assert rules_of(project, home)[str(tmp_path / "disk")] == READ


def test_a_home_in_the_folder_of_temporary_files_has_no_rule_of_its_own(
    project: Path, home: Path
) -> None:
    kernel, kept = fake(), KeptFolder(home / "kept")
    backend = Landlock(see(Host.of({"HOME": str(home)}), project), kernel, "", kept)
    os.close(backend.launch(("true",), project, {}).descriptors[0])
    own = {path for path in kernel.rules if path.startswith(kept.path)}
    assert own == {kept.temporary}


def test_what_has_gone_meanwhile_gets_no_rule(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "_DEVICES", ("/dev/null", "/gone/device"))
    rules = rules_of(project, home)
    assert "/dev/null" in rules
    assert "/gone/device" not in rules


def test_what_is_seen_elsewhere_is_shown_only_while_it_is_what_was_judged(
    project: Path, home: Path, tmp_path: Path
) -> None:
    for name in ("seen", "swapped", "private"):
        (tmp_path / name).mkdir()
    kernel, names = fake(), [tmp_path / "seen", tmp_path / "swapped"]
    backend = Landlock(see(Host.of({"HOME": str(home)}), project, readable=names), kernel, "")
    (tmp_path / "swapped").rmdir()
    (tmp_path / "swapped").symlink_to("private")
    os.close(backend.launch(("true",), project, {}).descriptors[0])
    assert str(tmp_path / "seen") in kernel.rules
    assert str(tmp_path / "private") not in kernel.rules


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
    assert isinstance(launch.before_exec, SandboxEntry)
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


@every_row(("abi", "machine", "is_had", "why"), [
    (None, "x86_64", False, "the kernel offers no Landlock"),
    (0, "x86_64", False, "the kernel offers no Landlock"),
    (1, "x86_64", True, "Landlock ABI 1"),
    (1, "riscv64", False, "there is no system call filter for riscv64"),
])  # fmt: skip
def test_what_can_be_had_is_told(
    monkeypatch: pytest.MonkeyPatch, abi: int | None, machine: str, is_had: bool, why: str
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=machine))
    kernel = None if abi is None else fake(abi)
    assert landlock.attempt(kernel) == (kernel if is_had else None, why)
