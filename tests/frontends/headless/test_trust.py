import json
from pathlib import Path

import pytest

from hosts import this_host
from ybs.core.errors import ConfigError
from ybs.frontends.headless.trust import trust
from ybs.trust.settings import load


def test_trust_is_shown_given_and_taken_back(project: Path, capsys: pytest.CaptureFixture[str]):
    assert trust(this_host(), "show", project) == 0
    assert trust(this_host(), "give", project) == 0
    nothing = "This project asks for nothing that needs your trust.\n"
    assert capsys.readouterr().out == nothing * 2
    (project / ".ybs.json").write_text('{"hooks": {"start": ["./x\\u001b[2J"]}}')
    wish = '.ybs.json: runs programs at start: ["./x\\u001b[2J"]\n'
    trust(this_host(), "show", project)
    assert capsys.readouterr().out == (
        wish + "Not trusted, so all of this is ignored. Trust it with: ybs trust give\n"
    )
    trust(this_host(), "give", project)
    trust(this_host(), "show", project)
    given = "Trusted as it is now. If any of it changes, ybs asks again.\n"
    assert capsys.readouterr().out == (wish + given) * 2
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
    assert json.loads(capsys.readouterr().out) == {"is_trusted": False, "wants": []}
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
