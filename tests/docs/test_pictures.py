"""What `make pictures` makes of a screen."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest


@pytest.fixture
def film(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module of the pictures' terminal; scripts are not a package."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "scripts"))
    import film

    return film


def test_what_moves_is_replaced_and_the_ends_of_lines_stay(film: Any) -> None:
    wrong: list[str] = []
    for before, after in (
        ("• read      cart.py: 21 lines                19 ms", "4 ms"),
        ("• shell     make test                         1.9 s", "0.3 s"),
        ("✗ shell     make test   exit code 1         812 ms", "0.3 s"),
        ("  15k in · 447 out · 13.4 s                       ", "  15k in · 447 out · 6.2 s"),
        (
            "⠋ shell     sleep 60  11 s   esc to stop          ",
            "⠹ shell     sleep 60  2 s   esc to stop",
        ),
        ("(7.3k in, 288 out, 113 ms)                        ", "(7.3k in, 288 out, 6.2 s)"),
        ('  File "/tmp/abcdefgh/shop/a.py"                  ', '  File "~/shop/a.py"'),
        ("  nothing that moves, such as 3 s of it           ", "such as 3 s of it"),
    ):
        row = [film.Cell(letter, film.Style()) for letter in before]
        text = "".join(cell.text for cell in film.normal(row, "/tmp/abcdefgh"))
        if len(text) != len(before) or not text.rstrip().endswith(after):
            wrong.append(text)
    assert wrong == []


def test_a_picture_holds_text_colours_bold_dim_and_the_cursor(film: Any) -> None:
    screen = film.DimScreen(20, 2)
    film.pyte.Stream(screen).feed("\x1b[1mbold\x1b[22m <&> \x1b[2;36mdim\x1b[0m \x1b[7mx\x1b[0m")
    row = [film.cell_of(screen.buffer[0][column]) for column in range(20)]
    picture = film.draw([row], 20, film.Place(0, 12), "a <title>")
    tree = ElementTree.fromstring(picture)
    name = "{http://www.w3.org/2000/svg}"
    texts = {text.text: text.attrib for text in tree.iter(f"{name}text")}
    assert list(texts) == ["bold", "<&>", "dim", "x"]
    assert texts["bold"]["font-weight"] == "bold"
    assert "fill" in texts["dim"]
    assert float(texts["dim"]["opacity"]) < 1
    assert "opacity" not in texts["<&>"]
    assert len(tree.findall(f".//{name}rect")) == 3  # the ground, what is reversed, the cursor
