"""docs/commands.md says what `ybs --help` and `/help` say: nothing more, nothing less."""

import re
from pathlib import Path

import pytest

from ybs.cli import main
from ybs.cli.flags import FORMATS, MODES
from ybs.cli.parser import EPILOG
from ybs.cli.subcommands import SUBCOMMANDS
from ybs.commands.table import LISTED
from ybs.providers.registry import provider_names

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return the text under a heading of the page."""
    return re.split(r"^## ", PAGE.split(f"\n## {title}\n")[1], flags=re.MULTILINE)[0]


def first_cells(title: str) -> str:
    """Return the left column of a section's table."""
    return "\n".join(re.findall(r"^\| (.+?) (?<!\\)\|", section(title), re.MULTILINE))


def test_every_option_is_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    shown = capsys.readouterr().out.split("subcommands:")[0]
    options = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", shown.partition("options:")[2]))
    assert set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", first_cells("Options"))) == options


def test_modes_and_formats_are_on_the_page() -> None:
    options = section("Options")
    for word in (*MODES, *FORMATS):
        assert f"`{word}`" in options
    assert set(re.findall(r"`([\w-]+)`", first_cells("Modes"))) == set(MODES)


def test_every_subcommand_and_action_is_on_the_page() -> None:
    page = section("Subcommands")
    assert set(re.findall(r"`ybs (\w+)", page)) == set(SUBCOMMANDS)
    for name, (_, actions) in SUBCOMMANDS.items():
        for action in actions:
            assert re.search(rf"`(?:ybs {name} )?{action}`", page), f"{name} {action}"


def test_every_exit_code_is_on_the_page() -> None:
    codes = re.findall(
        r"(?:^|  )(\d+) ([a-z, ]+?)(?=   |$)", EPILOG.split("exit codes:")[1], re.MULTILINE
    )
    assert len(codes) == 12
    assert re.findall(r"^\| (\d+) \| (.+?) \|$", section("Exit codes"), re.MULTILINE) == codes


def test_every_slash_command_is_on_the_page() -> None:
    page = section("In a chat")
    known = {name for command in LISTED for name in command.names}
    assert set(re.findall(r"`/([\w?-]+)", page)) == known
    shown = [f"/{command.names[0]} {command.arguments}".strip() for command in LISTED]
    rows = re.findall(r"^\| `(/.+?)` \|", page, re.MULTILINE)
    assert [row.replace("\\|", "|") for row in rows] == shown


def test_every_provider_is_named_on_the_page_and_in_the_help(capsys):
    main(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for name in provider_names():
        assert f"`{name}`" in section("Options")
        assert re.search(rf"-p.*\b{name}\b", shown)
