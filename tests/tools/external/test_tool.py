"""External tools at work in the real sandbox: what they get, what they cannot do, and what the person is asked."""

import sys
from pathlib import Path
from typing import Any

import pytest

from processes import is_alive
from tools.external.programs import install, playing, script
from trusting import put
from ybs.core.ports import Answer
from ybs.security.own_programs import WHY_APART
from ybs.security.sandbox import choice
from ybs.session.questions import grant_text

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]


async def test_one_without_needs_only_reads_and_is_not_asked_about(project, home, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "x" * 20)
    put(home, ".ssh/id_rsa", "private")
    (project / "a.txt").write_text("content")
    tries = (
        "cat; cd $YBS_PROJECT_DIR; cat a.txt; touch b.txt; cat ~/.ssh/id_rsa; echo token=$MY_TOKEN;"
        " (exec 3<>/dev/tcp/127.0.0.1/9) && echo connected"
    )
    put(home, ".config/ybs/tools/look", script(tries, shell="/bin/bash"), 0o755)
    async with playing(project) as played:
        result = await played.run("look", word="é")
    said = result.output
    assert '{"word":"é"}content' in said
    assert "Read-only file system" in said
    assert "private" not in said
    assert "token=\n" in said
    assert "connected" not in said
    assert not (project / "b.txt").exists()
    assert played.questions == []


async def test_what_it_needs_is_asked_for_once_and_given(project, home, monkeypatch):
    monkeypatch.setenv("MY_SETTING", "blue")
    put(home, "data/numbers", "1 2 3")
    needs = {"project": "write", "environment": ["MY_SETTING"], "read": ["~/data"]}
    install(
        home,
        "work",
        "echo $MY_SETTING > $YBS_PROJECT_DIR/made; cat ~/data/numbers",
        {"needs": needs},
    )
    async with playing(project, "auto") as played:
        played.answer = Answer(is_allowed=True, is_for_session=True)
        assert (await played.run("work", n=1)).output == "1 2 3"
        assert (await played.run("work", n=2)).output == "1 2 3"
        (question,) = played.questions
        assert question.reason == "it needs to change files, your MY_SETTING, to read ~/data"
        assert "It needs to change files, your MY_SETTING" in question.preview.body
        shown = "work(*) with to change files, your MY_SETTING, to read ~/data"
        assert question.grant.startswith(f"{shown} as ")
        assert grant_text(question) == shown
    assert (project / "made").read_text() == "blue\n"


async def test_an_always_counts_for_no_other_program_under_the_name_nor_for_another_place_to_start(
    project: Path, home: Path
):
    async def asked(program: str, **more: Any) -> int:
        said = {"name": "send", "needs": {"network": True}, **more}
        install(home, program, "echo sent", said)
        try:
            async with playing(project, "auto") as played:
                played.answer = Answer(is_allowed=True, is_for_project=True)
                assert (await played.run("send")).output == "sent"
                return len(played.questions)
        finally:
            (home / f".config/ybs/tools/{program}").unlink()

    assert [await asked("send"), await asked("send")] == [1, 0]
    assert [await asked("other"), await asked("other")] == [1, 0]
    assert await asked("send", cwd="apart") == 1
    assert await asked("send", description="Send it.") == 0


async def test_one_with_a_key_loads_nothing_that_a_command_left_in_its_home(
    project, home, monkeypatch
):
    monkeypatch.setenv("MY_SETTING", "blue")
    needs = {"needs": {"project": "write", "environment": ["MY_SETTING"]}}
    install(home, "work", "find ~ $TMPDIR -type f; : > ~/mine; echo $HOME", needs)
    async with playing(project, "auto") as played:
        monkeypatch.setattr(choice, "tried_bubblewrap", lambda: (None, (), "it is gone"))
        sandbox = played.environment.sandbox
        sandbox.backend = choice.choose(sandbox.backend.places)
        if sandbox.backend.name == "none":
            pytest.skip(f"NOT TESTED: {sandbox.backend.why}")
        played.answer = Answer(is_allowed=True, is_for_session=True)
        for command in ("ls | tee ~/left $TMPDIR/left", "touch ~/left $TMPDIR/left"):
            assert not (await played.run("run_shell", command=command)).is_error
        homes = [(await played.run("work")).output for _ in range(2)]
        assert len({*homes}) == 2
        assert not any(map(Path.exists, map(Path, homes)))


async def test_a_no_is_a_refusal_and_a_rule_allows_it(project: Path, home: Path):
    install(home, "send", "echo sent", {"needs": {"network": True}})
    async with playing(project, "auto") as played:
        played.answer = Answer(is_allowed=False, reason="not now")
        result = await played.run("send")
        assert result.is_refused
        assert "not now" in result.output
    async with playing(project, "ask", **{"safety.allow": ["send"]}) as played:
        assert (await played.run("send")).output == "sent"
        assert played.questions == []


@pytest.mark.parametrize(
    ("body", "output", "is_error"),
    [
        ("echo '{\"success\": true, \"result\": \"it works\"}'", "it works", False),
        ("echo '{\"success\": true, \"results\": [1, 2]}'", '{"results":[1,2]}', False),
        ("echo '{\"success\": false, \"error\": \"no such page\"}'", "no such page", True),
        ("echo plain text", "plain text", False),
        (":", "It answered nothing.", False),
        ("echo so far; echo it broke >&2; exit 3", f"it failed with exit code 3.\nso far\n[stderr]\nit broke\n({WHY_APART})", True),
        ("printf '\\377\\033[31mred'", "\ufffdred", False),
        ("kill -9 $$", f"it failed with exit code 137.\n({WHY_APART})", True),
    ],
)  # fmt: skip
async def test_what_it_answers_is_what_the_model_reads(body, output, is_error, project, home):
    install(home, "it", body)
    async with playing(project) as played:
        result = await played.run("it")
    assert (result.output, result.is_error) == (output, is_error)


async def test_one_that_never_ends_is_stopped_with_all_that_it_started(project: Path, home: Path):
    described = {"timeout_seconds": 1, "needs": {"project": "write"}}
    install(home, "it", "echo begun; sleep 300 & echo $! > pid; wait", described)
    async with playing(project) as played:
        result = await played.run("it")
    assert result.is_error
    assert result.output.startswith("it was stopped after 1 s.\nbegun")
    assert not [pid for pid in _sleeping() if is_alive(pid)]


def _sleeping() -> list[int]:
    found = list[int]()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            found += [int(folder.name)] if words[:2] == [b"sleep", b"300"] else []
    return found


async def test_arguments_are_checked_before_it_is_started(project: Path, home: Path):
    schema = {"n": {"type": "integer", "required": True}}
    needs = {"project": "write"}
    install(home, "it", "touch started", {"parameters": schema, "needs": needs})
    async with playing(project) as played:
        result = await played.run("it", n="many")
    assert result.is_error
    assert "`n`" in result.output or "n:" in result.output or "'n'" in result.output
    assert not (project / "started").exists()
    assert played.questions == []


async def test_what_leaves_the_project_by_a_link_cannot_be_declared(project: Path, home: Path):
    put(home, "Documents/diary.txt", "private")
    (project / "notes").symlink_to(home / "Documents")
    said = (
        "/notes leads to ~/Documents by a link that a project may have put there; name that place"
    )
    for name in ("notes", str(project / "notes")):
        install(home, "it", f"cat {project}/notes/diary.txt", {"needs": {"read": [name]}})
        async with playing(project) as played:
            result = await played.run("it")
        assert said in result.output


async def test_places_of_keys_cannot_be_declared(project: Path, home: Path):
    put(home, ".ssh/id_rsa", "private")
    install(home, "it", "cat ~/.ssh/id_rsa", {"needs": {"read": ["~/.ssh"]}})
    async with playing(project) as played:
        result = await played.run("it")
    assert "It needs to read ~/.ssh, which no program may be shown." in result.output
