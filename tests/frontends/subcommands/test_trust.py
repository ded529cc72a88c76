import json
from pathlib import Path

import pytest

from hosts import this_host, trust
from ybs.core.errors import ConfigError
from ybs.trust.settings import load

OWN = "Your own MCP servers, hooks and tools start"


def test_trust_is_shown_given_and_taken_back(project: Path, capsys: pytest.CaptureFixture[str]):
    assert trust(this_host(), "show", project) == 0
    assert trust(this_host(), "give", project) == 0
    nothing = "This project asks for nothing that needs your trust.\n"
    outside = f"Not trusted. {OWN} outside of this project. Trust it with: ybs trust give\n"
    inside = f"Trusted. {OWN} in this project.\n"
    assert capsys.readouterr().out == nothing + outside + nothing + inside
    trust(this_host(), "show", project)
    assert capsys.readouterr().out == nothing + inside
    (project / ".ybs.json").write_text('{"hooks": {"start": ["./x\\u001b[2J"]}}')
    wish = '.ybs.json: runs programs at start: "./x\\u001b[2J"\n'
    trust(this_host(), "show", project)
    ignored = f"Not trusted, so all of this is ignored. {OWN} outside of this project."
    new = ".ybs.json is new since you trusted this project\n"
    assert capsys.readouterr().out == wish + new + f"{ignored} Trust it with: ybs trust give\n"
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
        "wants": [],
        "files": [],
    }
    (project / ".ybs.json").write_text('{"profiles": {"x": 1}}')
    trust(this_host(), "give", project, is_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "folder": str(project),
        "is_trusted": True,
        "wants": [".ybs.json: sets profiles.x to 1"],
        "files": [".ybs.json"],
    }
    trust(this_host(), "revoke", project, is_json=True)
    assert json.loads(capsys.readouterr().out)["was"] is True


def test_what_cannot_be_trusted_is_an_error(project: Path, capsys: pytest.CaptureFixture[str]):
    (project / ".mcp.json").symlink_to("/etc/hostname")
    trust(this_host(), "show", project)
    assert "cannot be trusted: .mcp.json is a link" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="cannot be trusted"):
        trust(this_host(), "give", project)
