"""docs/web.md is true to the page: its pictures, its keys and its options."""

import re
from pathlib import Path

from ybs.cli.subcommands import subcommand_parser
from ybs.frontends.web import access

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "web.md").read_text(encoding="utf-8")
SCRIPT = (ROOT / "src/ybs/frontends/web/static/app.js").read_text(encoding="utf-8")


def test_every_picture_is_there_is_small_and_is_shown_with_words_for_who_cannot_see_it() -> None:
    shown = re.findall(r"!\[[^\]]{20,}\]\(pictures/(web-[\w-]+\.png)\)", PAGE)
    pictures = sorted((ROOT / "docs" / "pictures").glob("*.png"))
    assert sorted(shown) == [each.name for each in pictures]
    for picture in pictures:
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size < 120_000


def test_the_options_that_it_names_are_understood() -> None:
    helps = "".join(subcommand_parser(each)[0].format_help() for each in ("web", "serve"))
    known = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", helps)) | {"--mode"}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE))
    assert {"--port", "--proxy"} <= named
    assert named <= known


def test_the_numbers_that_it_names_are_those_of_the_code() -> None:
    assert f"at least {access.SHORTEST_PASSWORD} characters" in PAGE
    assert f"after {access.LOGIN_SECONDS / 86_400:.0f} days without use" in PAGE
    assert access.LINK_SECONDS == 1_800  # "half an hour"
    assert "GUARD_MS = 300" in SCRIPT  # "0.3 seconds"
    assert access.FREE_TRIES == 5
    assert access.FIRST_WAIT_SECONDS == 30
