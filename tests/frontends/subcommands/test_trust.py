import json
import re
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from hosts import this_host, trust
from ybs.core.errors import ConfigError
from ybs.frontends.subcommands import trust as subcommand
from ybs.frontends.terminal.questions.late import ask_trust
from ybs.session.options import Options
from ybs.trust.settings import load

OWN = "Your own MCP servers, hooks and tools start"


def test_trust_is_shown_given_and_taken_back(project: Path, capsys: pytest.CaptureFixture[str]):
    assert trust(this_host(), "show", project) == 0
    assert trust(this_host(), "give", project) == 0
    nothing = "this project; its own files ask for nothing."
    outside = f"Not trusted. {OWN} outside of {nothing} Trust it with: ybs trust give\n"
    inside = f"Trusted. {OWN} in {nothing}\n"
    assert capsys.readouterr().out == outside + inside
    trust(this_host(), "show", project)
    assert capsys.readouterr().out == inside
    (project / ".ybs.json").write_text('{"hooks": {"start": ["./x\\u001b[2J"]}}')
    wish = '.ybs.json: runs programs at start: "./x\\u001b[2J"\n'
    trust(this_host(), "show", project)
    ignored = f"Not trusted, so all of this is ignored. {OWN} outside of this project."
    new = ".ybs.json is new since you trusted this project\n"
    said = capsys.readouterr().out
    assert said.startswith(wish + new + f"{ignored} Trust exactly this with: ybs trust give ")
    assert re.search(r" [0-9a-f]{32}\n\Z", said)
    trust(this_host(), "give", project)
    trust(this_host(), "show", project)
    given = f"Trusted as it is now. If any of it changes, ybs asks again. {OWN} in this project.\n"
    assert capsys.readouterr().out == wish + new + given + wish + given
    assert load(this_host(), folder=project).config.hooks
    trust(this_host(), "revoke", project)
    trust(this_host(), "revoke", project)
    assert (
        capsys.readouterr().out
        == "This project is no longer trusted.\nThis project was not trusted.\n"
    )
    assert not load(this_host(), folder=project).config.hooks


def test_trust_is_data_for_programs(project: Path, capsys: pytest.CaptureFixture[str]):
    trust(this_host(), "show", project, is_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "folder": str(project),
        "is_trusted": False,
        "digest": ANY,
        "wants": [],
        "files": [],
    }
    (project / ".ybs.json").write_text('{"skills": {"only": ["x"]}}')
    trust(this_host(), "give", project, is_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "folder": str(project),
        "is_trusted": True,
        "digest": ANY,
        "wants": ['.ybs.json: sets skills.only to "x"'],
        "files": [".ybs.json"],
    }
    trust(this_host(), "revoke", project, is_json=True)
    assert json.loads(capsys.readouterr().out)["was"] is True


def test_what_cannot_be_trusted_is_an_error(project: Path, capsys: pytest.CaptureFixture[str]):
    (project / ".mcp.json").symlink_to("/etc/hostname")
    trust(this_host(), "show", project)
    said = capsys.readouterr().out
    assert said.startswith("This project cannot be trusted: .mcp.json is a link")
    assert said.count("\n") == 1
    with pytest.raises(ConfigError, match="cannot be trusted"):
        trust(this_host(), "give", project)


HOOK = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo one"}]}]}}'


def give(project: Path, digest: str = "", names: tuple[str, ...] = (), **more: Any) -> int:
    arguments = Namespace(action="give", grant=names, format="text", digest=digest, **more)
    return subcommand.trust(arguments, Options(host=this_host(), folder=project))


def digest_in(project: Path, capsys: pytest.CaptureFixture[str]) -> str:
    trust(this_host(), "show", project, is_json=True)
    return json.loads(capsys.readouterr().out)["digest"]


def hooks(project: Path) -> Any:
    return load(this_host(), folder=project).config.hooks


def test_what_came_after_it_was_shown_is_not_trusted(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    trust(this_host(), "show", project)  # it asks for nothing
    (project / ".ybs.json").write_text(HOOK)
    capsys.readouterr()
    assert give(project) == 5
    said = capsys.readouterr()
    assert "echo one" in said.out
    assert "nobody can be asked here" in said.err
    assert not hooks(project)
    digest = digest_in(project, capsys)
    (project / ".ybs.json").write_text(HOOK.replace("one", "two"))
    assert give(project, digest) == 5
    assert "this is not what had that digest" in capsys.readouterr().err
    assert not hooks(project)
    assert give(project, digest_in(project, capsys)) == 0
    assert hooks(project)


def test_the_digest_is_of_the_words_too(project: Path, capsys: pytest.CaptureFixture[str]):
    """The same bytes lead elsewhere: what was shown was another path."""
    entry = {"command": "x", "read": ["../notes/private"]}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"s": entry}}))
    digest = digest_in(project, capsys)
    (project.parent / "notes").symlink_to("/srv/elsewhere")
    assert give(project, digest) == 5


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_on_a_terminal_all_of_it_is_shown_and_asked_about(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
):
    (project / ".ybs.json").write_text(HOOK)

    def read(question: str) -> str:
        assert "echo one" in capsys.readouterr().out
        assert question.startswith("Trust exactly this?")
        (project / ".ybs.json").write_text(HOOK.replace("one", "two"))
        return answer

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr(
        "ybs.frontends.terminal.questions.late.ask_trust", partial(ask_trust, read=read)
    )
    assert give(project) == (0 if answer == "yes" else 5)
    assert not hooks(project)  # what was put there meanwhile is another thing
    (project / ".ybs.json").write_text(HOOK)
    assert bool(hooks(project)) is (answer == "yes")


def test_a_project_that_asks_for_nothing_is_trusted_as_that(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    assert give(project) == 0
    assert "Trusted." in capsys.readouterr().out
    (project / ".ybs.json").write_text(HOOK)
    assert not hooks(project)


def test_a_variable_of_a_trusted_project_is_granted_by_its_name(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    entry = {"command": "x", "env": {"T": "${SOME_TOKEN}"}}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"s": entry}}))
    trust(this_host(), "give", project)
    assert "ybs trust give --grant SOME_TOKEN" in capsys.readouterr().out
    assert give(project, names=("SOME_TOKEN",)) == 0
    assert "the MCP server s): granted" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="waits for no grant of OTHER"):
        give(project, names=("OTHER",))
