"""Completions and the manual page, made of the parser."""

import re
import shutil
import subprocess

import pytest

from ybs import cli
from ybs.cli.completion import completion
from ybs.cli.parser import chat_parser
from ybs.cli.subcommands import SUBCOMMANDS

pytestmark = pytest.mark.integration


def bash(*words: str) -> set[str]:
    """Return what bash offers for the last word."""
    script = (
        f"{completion('bash')}\nCOMP_WORDS=(ybs {' '.join(map(repr, words))})\n"
        f"COMP_CWORD={len(words)}\n_ybs\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return set(ran.stdout.split())


def test_bash_offers_subcommands_options_actions_and_values() -> None:
    assert bash("do") == {"doctor"}
    assert bash("--mod") == {"--mode", "--model"}
    assert bash("--mode", "a") == {"ask", "accept-edits", "auto"}
    assert bash("config", "s") == {"show", "set", "schema"}
    assert bash("--plain", "sessions", "--a") == {"--all"}
    assert "--mode" not in bash("sessions", "--")


@pytest.mark.parametrize("form", ["bash", "zsh", "fish", "man"])
def test_every_option_and_subcommand_is_in_every_form(form, capsys):
    assert cli.main(["completion", form]) == 0
    text = capsys.readouterr().out.replace("\\-", "-").replace("\\fB", " ")
    for action in chat_parser()[1]:
        for name in action.option_strings:
            shown = f"-{'l' * name.startswith('--') or 's'} {name.lstrip('-')}"
            assert (shown if form == "fish" else name) in text
    assert all(re.search(rf"\b{name}\b", text) for name in SUBCOMMANDS)


def test_the_manual_page_has_its_parts_and_nothing_that_troff_takes_for_a_request() -> None:
    page = completion("man")
    for part in ("NAME", "SYNOPSIS", "OPTIONS", "SUBCOMMANDS", "EXIT STATUS", "FILES"):
        assert f"\n.SH {part}\n" in page
    requests = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert requests == {".TH", ".SH", ".TP", ".B", ".br", ".RS", ".RE", ".nf", ".fi", ".I"}
    if shutil.which("groff"):
        ran = subprocess.run(
            ["groff", "-man", "-Tascii", "-ww"], input=page.encode(), capture_output=True
        )
        assert (ran.returncode, ran.stderr) == (0, b"")
