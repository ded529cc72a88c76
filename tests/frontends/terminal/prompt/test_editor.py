"""The draft in the person's own editor."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from stage import Stage, staged

from fake_session import FakeSession, says
from hosts import this_host
from rows import every_row
from ybs.core.events import TextStreamed
from ybs.frontends.terminal.prompt.input import NoEditor, edit, editor_command
from ybs.frontends.terminal.prompt.paste import Pastes
from ybs.session.mentions import named_in, paths_in

CTRL_G = "\x07"


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Make an editor of a shell script, which finds the file as $1; return where it may leave notes."""

    def make(script: str) -> Path:
        program, notes = tmp_path / "my editor", tmp_path / "notes"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
        monkeypatch.setenv("NOTES", str(notes))
        monkeypatch.setenv("VISUAL", f"'{program}' ")
        monkeypatch.setenv("EDITOR", "/nonexistent")
        return notes

    return make


def text_of(stage: Stage) -> str:
    return stage.terminal.window.draft.text


def left_of(notes: Path) -> tuple[list[int], bool]:
    """Return the modes of the folder and the file that an editor saw, and whether the file is still there."""
    *modes, file = notes.read_text().split()
    return [int(mode, 8) for mode in modes], Path(file).exists()


@pytest.mark.integration
async def test_the_draft_is_edited_in_a_private_file_that_is_gone_afterwards(editor):
    notes = editor(
        'stat -c %a "$(dirname "$1")" "$1" > "$NOTES"; echo "$1" >> "$NOTES"; echo more >> "$1"'
    )
    async with staged(FakeSession()) as stage:
        stage.keys("ü draft" + CTRL_G)
        await stage.sees("› ü draftmore")
        assert text_of(stage) == "ü draftmore"
        stage.keys("\x1f")
        await stage.until(lambda: text_of(stage) == "ü draft")
    assert left_of(notes) == ([0o700, 0o600], False)


@pytest.mark.integration
async def test_pastes_are_whole_in_the_editor_and_folded_again_behind_it(editor):
    notes = editor('cp "$1" "$NOTES"; printf " and this\\033[2J" >> "$1"')
    pasted = "\n".join(map(str, range(30)))
    async with staged(FakeSession()) as stage:
        stage.keys(f"a \x1b[200~{pasted}\x1b[201~ b")
        await stage.sees("[pasted 30 lines #1] b")
        stage.keys(CTRL_G)
        await stage.sees("› a [pasted 30 lines #1] b and this[2J")
        assert stage.terminal.window.draft.words == f"a {pasted} b and this[2J"
    assert notes.read_text() == f"a {pasted} b"


REPORT = "\n".join(
    f"typo {n} of a report" + ", see @~/private.txt, x" * (n in (12, 20)) for n in range(40)
)


@pytest.mark.integration
@pytest.mark.parametrize(
    "change",
    [
        "s/typo 7/line 7/",  # a line above
        "1s/a: /b: /",  # the words before it, which end in its first line
        "s/typo/line/",  # each line
        "12,14s/report/text/; 13s/, x/; x/",  # its line, at its end too
        "13s/see @/see: @/",
        "12,13d; 1a more typo 12 of a report, see @~/private.txt, x",  # a line that moved
        "1d; 13s/^/and /",
        ":a;N;$!ba;s/\\n/ /g",  # one line of all
    ],
)
async def test_what_is_left_of_a_paste_behind_the_editor_names_no_files(editor, change):
    editor(f"sed -i '{change}' \"$1\"; echo 'fix @mine.py for @~/private' >> \"$1\"")
    async with staged(session := FakeSession(says("ok")), columns=300) as stage:
        stage.keys(f"a: \x1b[200~{REPORT}\x1b[201~")
        await stage.sees("[pasted 40 lines #1]")
        stage.keys(CTRL_G)
        await stage.sees("fix @mine.py for @~/private")
        words = stage.terminal.window.draft.words
        stage.keys("\r")
        await stage.until(lambda: session.lines)
    assert session.lines == [words]
    assert "@~/private.txt" in words
    assert paths_in(named_in(session.sent[0])) == {"mine.py", "~/private"}


def test_a_long_text_that_was_changed_all_over_is_pasted():
    pastes, long = Pastes(), "\n".join(f"line {n} @a/{n}" for n in range(1000))
    draft = pastes.fold(long, "")
    again = pastes.refold(long.replace("line", "row"), draft)
    assert pastes.label(again) == "[pasted 1,000 lines #2]"
    assert pastes.refold("fix @mine alone", draft) == "fix @mine alone"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("script", "hint"),
    [
        ("echo gone > $1; exit 3", "ended with code 3; nothing was changed"),
        ('rm "$1"', "the edited text cannot be read"),
        ("kill -9 $$", "ended with code -9"),
    ],
)
async def test_an_editor_that_fails_changes_nothing(editor, script, hint):
    editor(script)
    async with staged(FakeSession(), columns=200) as stage:
        stage.keys("draft" + CTRL_G)
        await stage.sees(hint)
        assert text_of(stage) == "draft"
        stage.keys(" goes on")
        await stage.sees("› draft goes on")


@pytest.mark.integration
async def test_what_a_turn_says_meanwhile_is_drawn_afterwards(editor, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    editor(f'cat "{gate}" > /dev/null')
    release = asyncio.Event()

    async def speaks(session: FakeSession) -> None:
        await release.wait()
        session.emit(TextStreamed(text="said meanwhile\n\nand more\n\n"))

    async with staged(FakeSession(speaks), prompt="go") as stage:
        await stage.until(lambda: stage.session.is_busy)
        stage.keys("draft" + CTRL_G)
        await stage.until(lambda: stage.terminal.window.is_away)
        opened = await asyncio.to_thread(gate.open, "wb")  # the editor reads it
        before = stage.raw
        stage.size = stage.size._replace(columns=60)
        stage.terminal.window.app._on_resize()
        assert stage.raw == before  # the editor's screen is not ours
        release.set()
        await stage.until(lambda: not stage.terminal.work.is_busy)
        await stage.settles()
        assert "said meanwhile" not in stage.raw[len(before) :]
        opened.close()
        await stage.sees("and more")
        assert stage.screen.count("said meanwhile") == 1
        await stage.sees("› draft")


@pytest.mark.integration
async def test_incognito_opens_no_editor(editor: Callable[[str], Path]) -> None:
    notes = editor('echo x > "$NOTES"')
    session = FakeSession()
    session.is_incognito = True
    async with staged(session) as stage:
        stage.keys("draft" + CTRL_G)
        await stage.sees("no editor while incognito: it would save your prompt in a file")
    assert not os.path.exists(notes)  # noqa: ASYNC240, PTH110 - a test


def test_the_editor_is_the_persons_or_a_usual_one_and_never_the_projects(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, inside = tmp_path / "own", project / "bin"
    for folder in (own, inside):
        folder.mkdir()
        for name in ("nano", "vim", "code"):
            (folder / name).touch(0o700)
    (project / "nano").touch(0o700)
    (own / "circle").symlink_to("circle")
    (own / "theirs").symlink_to(inside / "vim")
    monkeypatch.chdir(project)
    this_host().work_in(project)
    path = f".:bin::/{'x' * 300}:{inside}:{own}"

    def command(**environ: str) -> list[str]:
        return editor_command({"PATH": path, **environ})

    assert command(VISUAL="code --wait 'a b'", EDITOR="vim") == [f"{own}/code", "--wait", "a b"]
    assert command(VISUAL=" ", EDITOR="vim") == [f"{own}/vim"]
    assert command(EDITOR="/bin/sh -x") == ["/bin/sh", "-x"]
    assert command() == [f"{own}/nano"]
    (own / "nano").unlink()
    assert command() == [f"{own}/vim"]
    for wrong in (
        "nano",
        "./nano",
        "bin/vim",
        "theirs",
        "circle",
        "x\0",
        f"{inside}/vim",
        f"{own}/theirs",
        "/any/where",
    ):
        with pytest.raises(NoEditor, match="outside of this project"):
            command(EDITOR=wrong)
    with pytest.raises(NoEditor, match="set the variable EDITOR"):
        editor_command({"PATH": str(inside)})
    with pytest.raises(NoEditor, match="VISUAL"):
        command(VISUAL="vi 'unclosed")


@pytest.mark.integration
async def test_the_editor_sees_no_keys(editor, monkeypatch):
    notes = editor('env > "$NOTES"')
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key-1234567")
    monkeypatch.setenv("LESS", "-R")
    assert await edit("x", [str(notes.parent / "my editor")]) == "x"
    seen = notes.read_text()
    assert "LESS=-R" in seen
    assert "canary" not in seen


@pytest.mark.integration
async def test_an_editor_that_cannot_be_started_or_writes_too_much_is_said(editor, monkeypatch):
    with pytest.raises(NoEditor, match="cannot be started"):
        await edit("x", ["/nonexistent/editor"])
    monkeypatch.setattr("ybs.frontends.terminal.prompt.input.MOST_BYTES", 3)
    with pytest.raises(NoEditor, match="larger than 3"):
        await edit("four", ["/bin/true"])


@pytest.mark.integration
async def test_an_editor_obeys_no_variable_and_no_folder_of_the_project(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, value in (("VIMINIT", f"source {project}/x"), ("BASH_ENV", f"{project}/x"), ("TMPDIR", str(project))):  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("tempfile.tempdir", None)
    this_host().work_in(project)
    said = tmp_path / "said"
    command = ["/bin/sh", "-c", f'env > {said}; pwd >> {said}; echo "$0" >> {said}']
    await edit("x", command)
    assert str(project) not in said.read_text()
    assert "/tmp/ybs-" in said.read_text()


@pytest.mark.integration
@every_row("command", ["exec sleep 60", "trap '' TERM; exec sleep 60"])
async def test_an_editor_ends_with_ybs(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setattr("ybs.frontends.terminal.prompt.input.GRACE_SECONDS", 0.05)
    task = asyncio.create_task(edit("x", ["/bin/sh", "-c", command]))
    while not any("sleep" in (child or "") for child in _children()):  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while any("sleep" in (child or "") for child in _children()):  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def _children() -> list[str]:
    own = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    names: list[str] = []
    for pid in own:
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        if ") Z " not in status:
            names.append(status)
    return names
