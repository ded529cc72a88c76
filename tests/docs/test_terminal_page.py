"""docs/terminal.md is true to the code, and its pictures show nothing but ybs."""

import re
import socket
from pathlib import Path
from tempfile import gettempdir
from xml.etree import ElementTree

from ybs.commands.table import COMMANDS
from ybs.config.schema import UiSettings
from ybs.frontends.terminal.prompt.keys import EMACS_KEYS, KEYS, VI_KEYS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "terminal.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
HOST = socket.gethostname()
#: What a machine would leave in a picture, and what a picture would fetch or run. A short name may be any word.
UNWANTED = (
    r"/(?:tmp|home|root|work|Users|var|private|opt)\b|127\.0\.0\.1|::1|localhost:|<script|href|url\(|@import"
    rf"|{re.escape(gettempdir())}" + (rf"|\b{re.escape(HOST)}\b" if len(HOST) > 8 else "")
)
SVG = "http://www.w3.org/2000/svg"


def rows(title: str) -> list[tuple[str, str]]:
    """Return the rows of the table under a heading, without its head."""
    section = re.split(r"^#{2,3} ", PAGE.split(f" {title}\n")[1], flags=re.MULTILINE)[0]
    return re.findall(r"^\| (.+?) \| (.+) \|$", section, re.MULTILINE)[1:]


def test_the_tables_of_keys_are_those_in_force() -> None:
    assert rows("Keys") == [*KEYS]
    assert rows("Editing") == [*EMACS_KEYS]
    assert rows("In vi mode") == [*VI_KEYS]


def test_every_setting_of_the_terminal_is_on_the_page_and_no_other() -> None:
    assert set(re.findall(r"`ui\.(\w+)", PAGE)) == set(UiSettings.__struct_fields__)


def test_every_command_on_the_page_is_there() -> None:
    named = set(re.findall(r"`/([a-z]+)[ `]", PAGE))
    assert len(named) > 12
    assert named <= set(COMMANDS)


def test_every_picture_is_there_and_shown_with_words_for_who_cannot_see_it() -> None:
    shown = re.findall(r"!\[([^\]]{10,})\]\(pictures/([\w-]+\.svg)\)", PAGE)
    assert {name for _, name in shown} == {file.name for file in PICTURES}
    assert PAGE.count("](pictures/") == len(shown)
    [picture] = re.findall(r"!\[[^\]]{10,}\]\(docs/pictures/([\w-]+\.svg)\)", README)
    assert picture in {file.name for file in PICTURES}


def test_every_picture_is_small_and_needs_and_tells_nothing_of_a_machine() -> None:
    wrong: list[str] = []
    for file in PICTURES:
        text = file.read_text(encoding="utf-8")
        tree = ElementTree.fromstring(text)
        kinds = {part.tag.removeprefix(f"{{{SVG}}}") for part in tree.iter()}
        if tree.tag != f"{{{SVG}}}svg" or kinds - {"svg", "title", "g", "rect", "text"}:
            wrong.append(f"{file.name}: {sorted(kinds)}")
        if found := re.search(UNWANTED, text.replace(SVG, "")):
            wrong.append(f"{file.name}: {found[0]}")
        if len(text) > 60_000:
            wrong.append(f"{file.name}: {len(text)} characters")
    assert wrong == []


def test_what_gives_a_machine_away_is_found() -> None:
    for sign in ("/tmp/x", "http://127.0.0.1:80", "/home/me", '<a href="x">', "url(https://x)"):
        assert re.search(UNWANTED, f"<text>{sign}</text>"), sign
    assert not re.search(UNWANTED, "<text>~/shop  main</text>")
