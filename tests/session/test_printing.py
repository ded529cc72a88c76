"""What commands print while they run, with its secrets masked."""

import pytest

from ybs.core.events import ToolPrinted
from ybs.security.firewall.masking import Firewall
from ybs.session.masking import Printing

TOKEN = "ghp_" + "Q7xLm2Vb9Tz4Kc8Wd1Rf6Yh3Nj5Pg0Sa" + "Ue1x"


def told(pieces: list[str]) -> tuple[list[str], str]:
    """Return what is told of each piece, and what waits at the end."""
    firewall = Firewall()
    printing = Printing(lambda: firewall)
    texts = [printing.add(ToolPrinted(id="1", text=each), "main").text for each in pieces]
    return texts, printing.rest("1", "main")


@pytest.mark.parametrize("size", [1, 7, 39, 200])
@pytest.mark.parametrize("end", ["\n", " and more\n", ""])
def test_a_token_in_pieces_is_masked(size: int, end: str):
    text = f"first\ntoken: {TOKEN}{end}"
    texts, rest = told([text[at : at + size] for at in range(0, len(text), size)])
    whole = "".join(texts) + rest
    assert TOKEN[4:12] not in whole
    assert whole.startswith("first\ntoken: [ybs:secret:")
    assert whole.endswith(end)


def test_progress_is_told_at_once_and_a_word_when_it_ends():
    texts, rest = told(["..", ".F", ".", " 50%\r", "wai", "ting"])
    assert texts == ["..", ".", "F.", " 50%\r", "", ""]
    assert rest == "waiting"
