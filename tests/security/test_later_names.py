"""Names of files that other programs run or read by themselves, and keys among the arguments of a server."""

import pytest

from ybs.security.paths.autorun import kind_of
from ybs.tools.mcp.settings import Server


@pytest.mark.parametrize("name", ["latexmkrc", "mypy.ini", "gradle.properties", "a.csproj.user"])
def test_what_other_programs_act_on_is_told(name: str) -> None:
    assert kind_of(name) == "told"


def test_a_key_behind_an_option_of_a_server_is_a_secret_and_a_plain_word_is_none() -> None:
    key = "Qm7vT2xLr9" + "Kp4WzN8bHs"
    for args in (("--api-key", key, "some-package"), (f"--token={key}", "some-package")):
        assert Server(name="s", command="npx", args=args).secrets == [key]
