"""A token in disguise is masked in what the real tools show of a file, with numbered lines and signs."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.conftest import MakeBench
from ybs.security.firewall.masking import Firewall

TOKEN = "gh" + "p_" + "NqVwYS81VP7Hb1DX8pPd5khxE3pyIgKpaUnA"


def wrapped(text: str) -> str:
    code = base64.b64encode(f"the password is {text}".encode()).decode()
    return "\n".join(code[start : start + 20] for start in range(0, len(code), 20))


@pytest.mark.integration
@pytest.mark.parametrize(
    "disguise",
    [
        "\u200b".join,
        "\u00ad".join,
        lambda text: f"{text[:20]}\n{text[20:]}",
        lambda text: f"{text[:9]}\x1b[31m{text[9:]}",
        wrapped,
    ],
)
async def test_a_disguised_token_in_a_file_is_masked(
    make_bench: MakeBench, project: Path, disguise: Callable[[str], str]
) -> None:
    bench = make_bench()
    (project / "a.txt").write_text(f"one\n{disguise(TOKEN)}\nlast\n")
    read = await bench.ok("read_file", path="a.txt")
    found = await bench.ok("search_files", pattern=".")
    for shown in (read.output, found.output):
        assert "[ybs:secret:" in Firewall().mask(shown), shown
