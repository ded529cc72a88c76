"""`ybs permissions`: rules of the project and of the person, without a session."""

from pathlib import Path

import pytest
from msgspec import json

from hosts import this_host
from ybs.cli import main
from ybs.trust.project_rules import ProjectRules


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["permissions", *words])
    return code, *capsys.readouterr()


@pytest.mark.integration
def test_rules_are_kept_listed_and_removed(project: Path, capsys: pytest.CaptureFixture[str]):
    assert run(capsys, "allow", "run_shell(make *)")[0] == 0
    assert run(capsys, "deny", "user", "run_shell(curl *)")[0] == 0
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    assert "1  allowed  run_shell(make *)  this project, kept" in out
    assert "2  refused  run_shell(curl *)" in out
    assert ProjectRules(this_host(), project).record.allow == ("run_shell(make *)",)
    listed = json.decode(run(capsys, "list", "--format", "json")[1])
    assert [rule["origin"] for rule in listed] == ["project", "settings"]
    assert run(capsys, "remove", "1")[0] == 0
    assert run(capsys, "remove", "1")[0] == 0
    assert run(capsys)[1].startswith("No rules")


@pytest.mark.integration
def test_what_is_not_understood_is_bad_usage(project: Path, capsys: pytest.CaptureFixture[str]):
    for words in (("allow",), ("remove", "x"), ("remove", "7"), ("list", "more")):
        code, out, err = run(capsys, *words)
        assert (code, out) == (2, "")
        assert err.startswith("ybs: ")


def test_a_damaged_file_is_a_warning(project: Path, capsys: pytest.CaptureFixture[str]):
    run(capsys, "allow", "read_file")
    (file,) = (Path.home() / ".local" / "state" / "ybs" / "permissions").iterdir()
    file.write_text("{")
    code, out, err = run(capsys)
    assert code == 0
    assert out.startswith("No rules")
    assert "is damaged" in err


def test_what_is_kept_for_a_project_only_denies_where_others_speak(project: Path):
    rules = ProjectRules(this_host(), project)
    for kind in ("grants", "allow", "deny"):
        rules.add(kind, f"run_shell({kind})")
    record = ProjectRules(this_host(), project, only_denies=True).record
    assert (record.grants, record.allow, record.deny) == ((), (), ("run_shell(deny)",))
