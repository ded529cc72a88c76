"""What this machine has: processors, memory within a container's limit, graphics processors of three makers."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rows import every_row
from ybs.core.errors import ConfigError
from ybs.providers.local import hardware
from ybs.providers.local.hardware import Ask, Gpu, Machine, detect

MEMORY = "MemTotal:       16000 kB\nMemFree:  1 kB\nMemAvailable:    8000 kB\n"
SYSCTL = "hw.memsize: 17179869184\nhw.physicalcpu: 8\nhw.perflevel0.physicalcpu: 4\n"
PAGES = (
    "Mach Virtual Memory Statistics: (page size of 16384 bytes)\nPages free:     100000.\n"
    "Pages active: 5.\nPages inactive:  200000.\nPages speculative: 1.\nPages purgeable: 0.\n"
)


#: A container that a model was downloaded in.
FULL = {"sys/fs/cgroup/memory.max": "4000", "sys/fs/cgroup/memory.current": "3800"}
FILES = (
    "anon 1000\nfile 2400\nactive_file 1400\ninactive_file 1000\nslab_reclaimable 100\nslab 150\n"
)


def silent(_argv: Sequence[str]) -> str:
    return ""


def system(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


@every_row(("cores", "expected"), [(1, 1), (2, 1), (4, 3), (64, hardware.MOST_THREADS)])
def test_one_core_is_left_to_everything_else(cores: int, expected: int):
    assert Machine(cores=cores).threads == expected


@every_row(("cores", "expected"), [(1, 1), (2, 2), (64, hardware.MOST_THREADS)])
def test_all_cores_read_prompts(cores: int, expected: int):
    assert Machine(cores=cores).reading_threads == expected


def test_the_cores_that_this_process_may_use_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2}, raising=False)
    assert detect(tmp_path, platform="linux", ask=silent).cores == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert detect(tmp_path, platform="linux", ask=silent).cores == 6


@every_row(
    ("limit", "cores"),
    [
        ("max 100000\n", 8),
        ("200000 100000\n", 2),
        ("250000 100000", 2),
        ("50000 100000", 1),
        ("6400000 100000", 8),
        ("many", 8),
        ("1 0", 8),
        ("", 8),
    ],
)
def test_the_time_that_a_container_gets_counts_in_cores(tmp_path_factory, limit, cores):
    root = system(tmp_path_factory.mktemp("root"), {"sys/fs/cgroup/cpu.max": limit})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)), raising=False)
        assert detect(root, platform="linux", ask=silent).cores == cores


def test_the_variable_names_the_threads():
    assert hardware.asked_threads({"YBS_LLAMA_THREADS": "5"}) == 5
    assert hardware.asked_threads({}) is None


@every_row("asked", ["many", "0", "257", "-1", "1.5"])
def test_a_wrong_number_of_threads_is_refused(asked: str):
    with pytest.raises(ConfigError, match="YBS_LLAMA_THREADS"):
        hardware.asked_threads({"YBS_LLAMA_THREADS": asked})


@every_row(
    ("files", "total", "free"),
    [
        ({}, None, None),
        ({"proc/meminfo": ""}, None, None),
        ({"proc/meminfo": "MemAvailable: much\n"}, None, None),
        ({"proc/meminfo": MEMORY}, 16_384_000, 8_192_000),
        ({"proc/meminfo": MEMORY, "sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.current": "1"}, 16_384_000, 8_192_000),
        ({"proc/meminfo": MEMORY, "sys/fs/cgroup/memory.max": "4000\n", "sys/fs/cgroup/memory.current": "1000\n"}, 4000, 3000),
        ({"proc/meminfo": MEMORY, "sys/fs/cgroup/memory.max": "4000", "sys/fs/cgroup/memory.current": "9000"}, 4000, 0),
        ({"sys/fs/cgroup/memory.max": "4000", "sys/fs/cgroup/memory.current": "1000"}, 4000, 3000),
        ({**FULL, "sys/fs/cgroup/memory.stat": "anon 500\nfile 3000\n"}, 4000, 200),
        ({**FULL, "sys/fs/cgroup/memory.stat": FILES}, 4000, 2700),
        ({**FULL, "sys/fs/cgroup/memory.stat": "active_file 9000\n"}, 4000, 4000),
    ],
)  # fmt: skip
def test_memory_is_what_the_kernel_and_the_container_give(tmp_path_factory, files, total, free):
    root = system(tmp_path_factory.mktemp("root"), files)
    found = detect(root, platform="linux", ask=silent)
    assert (found.memory_bytes, found.free_bytes) == (total, free)


def test_every_nvidia_card_is_listed(tmp_path: Path):
    def ask(argv: Sequence[str]) -> str:
        assert argv[0] == "nvidia-smi"
        return (
            "NVIDIA GeForce RTX 4090, 24564, 20000\nNVIDIA T4, 15360, 15000\n[N/A], [N/A], [N/A]\n"
        )

    found = detect(tmp_path, platform="linux", ask=ask).gpus
    assert [(gpu.maker, gpu.name, gpu.free_bytes >> 20) for gpu in found] == [
        ("nvidia", "NVIDIA GeForce RTX 4090", 20_000),
        ("nvidia", "NVIDIA T4", 15_000),
    ]


def test_amd_cards_are_found_in_the_files_of_the_kernel(tmp_path: Path):
    here = "sys/class/drm/card{}/device/{}"
    files = {
        here.format(0, "mem_info_vram_total"): "8000",
        here.format(0, "mem_info_vram_used"): "3000",
        here.format(0, "product_name"): "Radeon RX 6600\n",
        here.format(1, "mem_info_vram_total"): "9000",
        here.format(1, "mem_info_vram_used"): "9500",
        here.format(2, "mem_info_vram_total"): "7000",
        "sys/class/drm/card3/device/vendor": "0x8086",
    }
    found = detect(system(tmp_path, files), platform="linux", ask=silent).gpus
    assert found == (
        Gpu(maker="amd", name="Radeon RX 6600", total_bytes=8000, free_bytes=5000),
        Gpu(maker="amd", name="AMD GPU", total_bytes=9000, free_bytes=0),
    )


def mac(sysctl: str, pages: str) -> Ask:
    """Answer as the programs of macOS do: `sysctl` fails where it does not know one of the names."""
    known = dict(line.split(": ") for line in sysctl.splitlines())

    def ask(argv: Sequence[str]) -> str:
        if argv[0] != "sysctl":
            return pages
        is_known = all(name in known for name in argv[1:])
        return "".join(f"{name}: {known[name]}\n" for name in argv[1:]) if is_known else ""

    return ask


def test_on_a_mac_the_graphics_processor_shares_the_memory(tmp_path: Path):
    found = detect(tmp_path, platform="darwin", ask=mac(SYSCTL, PAGES))
    assert (found.cores, found.memory_bytes) == (4, 16 << 30)
    assert found.free_bytes == 16_384 * 300_001
    (gpu,) = found.gpus
    assert gpu.is_shared
    assert gpu.total_bytes == int((16 << 30) * 0.7)
    assert gpu.free_bytes == found.free_bytes


def test_a_mac_without_an_apple_chip_has_processors_only(tmp_path: Path):
    intel = "hw.memsize: 17179869184\nhw.physicalcpu: 6\n"
    found = detect(tmp_path, platform="darwin", ask=mac(intel, "?"))
    assert (found.cores, found.memory_bytes) == (6, 16 << 30)
    assert (found.gpus, found.free_bytes) == ((), None)


def test_a_mac_that_does_not_say_what_is_free_is_trusted_with_its_share(tmp_path: Path):
    found = detect(tmp_path, platform="darwin", ask=mac(SYSCTL, ""))
    assert found.gpus[0].free_bytes == found.gpus[0].total_bytes


class Ended:
    """A program that ended."""

    def __init__(self, returncode: int, stdout: str) -> None:
        self.returncode, self.stdout = returncode, stdout


@every_row(
    ("outcome", "name"),
    [
        ((0, b"T4, 100, 50\n", b""), "T4"),
        ((9, b"T4, 100, 50\n", b""), ""),
        ((0, b"\xff, 100, 50\n", b""), ""),
        (FileNotFoundError("nvidia-smi"), ""),
        (TimeoutError("it took longer than 5 s"), ""),
    ],
)
def test_a_program_that_is_missing_fails_or_hangs_says_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outcome: Any, name: str
):
    def answer_of(*_: Any) -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(hardware, "answer_of", answer_of)
    found = detect(tmp_path, platform="linux").gpus
    assert [gpu.name for gpu in found] == ([name] if name else [])


@every_row(
    ("machine", "words"),
    [
        (Machine(cores=1), "1 core"),
        (Machine(cores=8, memory_bytes=16 * 10**9), "8 cores, 16.0 GB of memory"),
        (
            Machine(
                cores=8,
                memory_bytes=16 * 10**9,
                free_bytes=10**10,
                gpus=(Gpu(maker="nvidia", name="T4", total_bytes=15 * 10**9, free_bytes=1),),
            ),
            "8 cores, 16.0 GB of memory (10.0 GB free), T4 with 15.0 GB",
        ),
        (
            Machine(
                cores=2,
                idle_gpus=(Gpu(maker="nvidia", name="T4", total_bytes=15 * 10**9, free_bytes=1),),
            ),
            "2 cores, T4 with 15.0 GB",
        ),
    ],
)
def test_a_machine_in_words(machine: Machine, words: str):
    assert machine.words == words
