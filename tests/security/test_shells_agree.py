"""Random texts given to real shells: none runs a program that the policy's reading did not see."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from ybs.security.commands.dangers import blocked_entry
from ybs.security.commands.wrappers import read

PIECES = (
    *(
        "target",
        "target id",
        "echo",
        "x",
        "a=1",
        "'",
        '"',
        "`",
        "$(",
        ")",
        "(",
        "{ ",
        "}",
        ";",
        "&",
    ),
    *("|", "&&", "||", "\n", "\\", "\\\n", "#", " # ", "<<E\n", "<<'E'\n", "<<-E\n", "\nE\n", "E"),
    *(
        "\tE\n",
        " ",
        "\t",
        "$x",
        "${x}",
        "${x-",
        "}",
        "$",
        "<",
        ">",
        ">>",
        "<<<",
        "&>",
        "2>&1",
        ">&2",
    ),
    *("case x in x) ", " ;; esac", "if true; then ", " fi", "for i in 1; do ", " done", "f() { "),
    *(
        "!",
        "[[ ",
        " ]]",
        "[ ",
        " ]",
        "$((",
        "))",
        "((",
        "eval ",
        "\r",
        "$'",
        "\\'",
        '\\"',
        "*",
        "~",
    ),
    *("{a,b}", "=", "in", "do", "\x0b", "tar", "get", '""', "''", "<(", "|&", "time ", "@", "0"),
)
SHELLS = [path for name in ("dash", "bash") if (path := shutil.which(name))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.skipif(not SHELLS, reason="neither dash nor bash is here: nothing to compare with")
def test_what_a_shell_runs_was_seen_or_doubted(seed: int, tmp_path: Path):
    hit, programs, folder = tmp_path / "hit", tmp_path / "bin", tmp_path / "folder"
    programs.mkdir()
    folder.mkdir()
    (programs / "target").write_text(f"#!/bin/sh\n: > {hit}\n")
    (programs / "target").chmod(0o755)
    environment = {"PATH": str(programs), "HOME": str(folder)}
    dice, missed = random.Random(seed), list[str]()
    for _ in range(8_000):
        text = "".join(dice.choice(PIECES) + dice.choice(("", " ")) for _ in range(6))
        text += dice.choice(("", ";target id", "\ntarget id", "\n\\target id"))
        reading = read(text)
        if not reading.is_clear or blocked_entry(reading, ("target",)):
            continue
        for shell in SHELLS:
            subprocess.run(
                [shell, "-c", text], env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                capture_output=True, check=False, timeout=5,
            )  # fmt: skip
            if hit.exists():
                hit.unlink()
                missed.append(text)
    assert missed == []
