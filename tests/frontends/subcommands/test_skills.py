"""`ybs skills`: what is printed of them, and a new one."""

import json
import os
import stat
from pathlib import Path

import pytest

from hosts import this_host
from tools.skills.folders import OWN, skill
from ybs.cli import main
from ybs.frontends.subcommands.skills import check_skills, list_skills, new_skill
from ybs.frontends.subcommands.tools import install
from ybs.session.options import Options


def test_they_are_listed_and_checked(project: Path, home: Path, capsys: pytest.CaptureFixture[str]):
    options = Options(host=this_host(), folder=project)
    assert check_skills(options, is_json=False) == 0
    assert "No skills were found" in capsys.readouterr().err
    skill(home / OWN, "good", head="license: MIT\n")
    skill(home / OWN, "odd").rename(home / OWN / "other")
    assert check_skills(options, is_json=False) == 0
    (home / OWN / "broken").mkdir()
    (home / OWN / "broken/SKILL.md").write_text("words")
    assert list_skills(options, is_json=False) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        f"good  ~/{OWN}/good   Does it.",
        f"odd   ~/{OWN}/other  Does it.",
    ]
    assert list_skills(options, is_json=True) == 0
    assert json.loads(capsys.readouterr().out)[0] == {
        "name": "good",
        "description": "Does it.",
        "place": f"~/{OWN}/good",
        "offered_to_the_model": True,
        "license": "MIT",
        "compatibility": "",
        "allowed_tools": [],
        "sub_agent": None,
    }
    assert check_skills(options, is_json=False) == 1
    said = capsys.readouterr().err
    assert f"~/{OWN}/other: its name 'odd' is not that of its folder" in said
    assert f"~/{OWN}/broken cannot be used: SKILL.md does not begin with front matter" in said
    (home / ".claude/commands").mkdir(parents=True)
    (home / ".claude/commands/go.md").write_text("---\nmodel: opus\n---\nGo.")
    assert check_skills(options, is_json=False) == 1
    assert "~/.claude/commands/go.md: without effect in ybs: model" in capsys.readouterr().err
    assert check_skills(options, is_json=True) == 1
    checked = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in checked["skills"]] == ["good", "odd"]
    assert [each["place"] for each in checked["problems"]] == [f"~/{OWN}/broken"]


def test_a_new_one_can_be_used(project: Path, home: Path, capsys: pytest.CaptureFixture[str]):
    assert new_skill(this_host(), "my-skill") == 0
    assert check_skills(Options(host=this_host(), folder=project), is_json=False) == 0
    assert f"ok  my-skill  ~/{OWN}/my-skill" in capsys.readouterr().out
    assert new_skill(this_host(), "my-skill") == 1
    assert "is not overwritten" in capsys.readouterr().err
    assert new_skill(this_host(), "../escape") == 2
    assert "cannot be the name of a skill" in capsys.readouterr().err


def test_what_is_made_for_the_person_is_theirs_alone_whatever_the_umask(home: Path):
    before = os.umask(0)
    try:
        assert new_skill(this_host(), "mine") == 0
        assert install(this_host(), "web-fetch") == 0
    finally:
        os.umask(before)
    config = home / ".config/ybs"
    files = config / "skills/mine/SKILL.md", config / "tools/web_fetch.py"
    folders = {folder for file in files for folder in file.parents} & {config, *config.rglob("*")}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    assert len(folders) == 4


def test_the_command_line_takes_them(project: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["skills", "new", "one"]) == 0
    assert main(["skills"]) == 0
    assert "one  ~/" in capsys.readouterr().out
    assert main(["skills", "check", "--json"]) == 0
    assert main(["skills", "list", "one"]) == 2
