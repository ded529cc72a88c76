"""Start of a chat: CPU until the prompt is drawn and a typed key is echoed, beside importing prompt_toolkit alone."""

import time
from pathlib import Path

from lab import YBS, Lab, Row, interleave, median
from typist import PROMPT, Typist

IMPORT = "import prompt_toolkit"
#: It stands nowhere on the screen of a new chat in this project.
KEY = "~"


def measure(lab: Lab, rounds: int) -> list[Row]:
    runs = interleave(
        rounds,
        chat=lambda: start(lab),
        bare=lambda: lab.python(IMPORT),
        nothing=lambda: lab.python("pass"),
    )
    chat = median(cpu for cpu, _ in runs["chat"])
    bare = median(ended.cpu_seconds for ended in runs["bare"])
    nothing = median(ended.cpu_seconds for ended in runs["nothing"])
    return [
        Row(f"ybs until a key is echoed, CPU / {IMPORT}", chat / bare, "x", 2.2),
        Row("ybs until a key is echoed, CPU", chat * 1000, "ms"),
        Row("ybs until a key is echoed", median(wall for _, wall in runs["chat"]) * 1000, "ms"),
        Row(f"{IMPORT}, CPU", bare * 1000, "ms"),
        Row("python -c pass, CPU / the same", nothing / bare, "x"),
    ]


def start(lab: Lab) -> tuple[float, float]:
    """Start ybs on a terminal, type a key at its prompt, and return CPU and wall time until it is seen.

    It is killed at once, so that what ends it does not count.
    """
    words = [YBS, "--provider", "openai", "--model", "fake", "--endpoint", f"{lab.address}/chat/v1"]
    begun = time.monotonic()
    with Typist(words, lab.folder / "template", lab.environment) as typist:
        typist.waits_for(PROMPT)
        typist.echo_seconds(KEY)
        wall_seconds = time.monotonic() - begun
        beside = sum(cpu_of(pid) for pid in family_of(typist.pid))
    return typist.used.ru_utime + typist.used.ru_stime + beside, wall_seconds


def family_of(pid: int) -> list[int]:
    """Return the processes below this one that still run; Linux alone says."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for word in file.read_text().split():
            found += [int(word), *family_of(int(word))]
    return found


def cpu_of(pid: int) -> float:
    """Return the CPU time of a process, all its threads together."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9
