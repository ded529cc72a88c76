"""/learn: what recurs is listed, shown as a diff, written after a yes, and forgotten; no model is asked."""

from pathlib import Path

import pytest

from commands.test_memory import quiet, said
from learning.past_sessions import CHANGELOG, turn, write
from replies import shown as text_of
from ybs.commands.learn import learning_of
from ybs.config.template import Argument, TemplateCommand, parse
from ybs.core.events import SessionStarted
from ybs.frontends.terminal.terminal import recurring_line
from ybs.session.mentions import mentions_in

WORDS = (
    "update the changelog for 1.2.0",
    "add the changes to the changelog, version 1.3.0",
    "changelog for version 1.4.1 please",
    "please write the changelog of version 2.0",
)


@pytest.fixture
def sessions(home: Path) -> Path:
    """Write four weeks in each of which the changelog was asked for."""
    folder = home / ".config/ybs/sessions"
    folder.parent.mkdir(mode=0o700, parents=True)
    for week, words in enumerate(WORDS):
        write(folder, f"changelog-{week}", week * 7, turn(words, CHANGELOG))
    return folder


@pytest.mark.usefixtures("home")
async def test_nothing_recurs_at_first(project: Path):
    async with quiet(project) as session:
        assert "Nothing recurs so far" in text_of(await said(session, "/learn"))


@pytest.mark.integration
@pytest.mark.usefixtures("sessions")
async def test_a_task_is_shown_before_it_is_written_and_then_used(project: Path, home: Path):
    async with quiet(project) as session:
        listed = text_of(await said(session, "/learn"))
        assert "4 times on 4 days" in listed
        shown = await said(session, "/learn accept 1")
        assert "+++ " in shown.diff
        file = home / ".config/ybs/commands/changelog-version.md"
        assert not file.exists()
        assert shown.menu is not None
        assert shown.menu.items[0].line == "/learn accept 1 mine"
        await said(session, shown.menu.items[0].line)
    assert "changelog for version $1 please" in file.read_text()
    async with quiet(project) as session:
        assert "/changelog-version" in text_of(await said(session, "/help changelog"))
        assert "accepted" in text_of(await said(session, "/learn"))


async def test_what_the_person_corrected_is_offered_as_a_change(project, home, sessions):
    async with quiet(project) as session:
        await said(session, "/learn")
        await said(session, "/learn accept 1 mine")
        write(
            sessions,
            "later",
            29,
            turn("changelog for version 3.0 please", CHANGELOG, steered="newest first"),
        )
        assert "corrected 1 time" in text_of(await said(session, "/learn"))
        shown = await said(session, "/learn show 1")
        assert "+- newest first" in shown.diff
        await said(session, "/learn accept 1 mine")
        assert "is as it should be" in text_of(await said(session, "/learn show 1"))
    assert "- newest first" in (home / ".config/ybs/commands/changelog-version.md").read_text()


async def test_nothing_of_a_correction_runs_or_is_attached(project, home, sessions):
    async with quiet(project) as session:
        await said(session, "/learn")
        await said(session, "/learn accept 1 mine")
        words = "no !`touch made` $ARGUMENTS as in @~/notes.txt"
        asked = "changelog for version 3.0 please"
        write(sessions, "later", 29, turn(asked, CHANGELOG, steered=words))
        await said(session, "/learn")
        await said(session, "/learn accept 1 mine")
    text = (home / ".config/ybs/commands/changelog-version.md").read_text()
    added = text.partition("Also:")[2]
    assert "touch made" in added
    assert not any(isinstance(each, TemplateCommand | Argument) for each in parse(added))
    assert not list(mentions_in(added))


@pytest.mark.integration
async def test_a_folder_whose_name_has_lines_gets_no_timer(project: Path, home: Path):
    folder = home / ".config/ybs/sessions"
    folder.parent.mkdir(mode=0o700, parents=True)
    for week, words in enumerate(WORDS):
        begun = SessionStarted(session=f"s{week}", folder="/tmp/a\nExecStartPre=/bin/id")
        write(folder, f"s{week}", week * 7, [begun, *turn(words, CHANGELOG)])
    async with quiet(project) as session:
        await said(session, "/learn")
        await said(session, "/learn accept 1 mine")
        refused = await said(session, "/learn schedule 1")
        assert refused.is_error
        assert "OnCalendar" not in text_of(refused)


@pytest.mark.usefixtures("sessions")
async def test_a_file_that_is_there_is_never_overwritten(project: Path, home: Path):
    own = home / ".config/ybs/commands/changelog-version.md"
    own.parent.mkdir()
    own.write_text("mine")
    async with quiet(project) as session:
        await said(session, "/learn")
        await said(session, "/learn accept 1 mine")
    assert own.read_text() == "mine"
    assert own.with_name("changelog-version-2.md").exists()


@pytest.mark.usefixtures("sessions")
async def test_no_link_of_a_project_leads_its_command_elsewhere(project: Path, tmp_path: Path):
    elsewhere, commands = tmp_path / "elsewhere", project / ".ybs/commands"
    elsewhere.mkdir()
    commands.parent.mkdir()
    commands.symlink_to(elsewhere)
    async with quiet(project) as session:
        await said(session, "/learn")
        refused = await said(session, "/learn accept 1 project")
        assert refused.is_error
        assert "behind a link" in text_of(refused)
        commands.unlink()
        await said(session, "/learn accept 1 project")
        (file,) = commands.iterdir()
        file.rename(elsewhere / "target")
        file.symlink_to(elsewhere / "target")
        assert (await said(session, "/learn accept 1 project")).is_error
    assert [each.name for each in elsewhere.iterdir()] == ["target"]


async def test_a_person_s_own_folder_of_commands_may_be_a_link(project, home, tmp_path, sessions):
    del sessions
    (tmp_path / "dotfiles").mkdir()
    (home / ".config/ybs/commands").symlink_to(tmp_path / "dotfiles")
    async with quiet(project) as session:
        await said(session, "/learn")
        await said(session, "/learn accept 1 mine")
    assert (tmp_path / "dotfiles/changelog-version.md").exists()


@pytest.mark.integration
@pytest.mark.usefixtures("sessions")
async def test_it_can_be_dismissed_explained_scheduled_and_forgotten(project: Path):
    async with quiet(project) as session:
        await said(session, "/learn")
        why = text_of(await said(session, "/learn why 1"))
        assert "2026-03-02  update the changelog for 1.2.0" in why
        assert "each Mon at 09:00" in why
        assert (await said(session, "/learn schedule 1")).is_error  # there is no command yet
        await said(session, "/learn accept 1 mine")
        assert "OnCalendar=Mon *-*-* 09:00:00" in text_of(await said(session, "/learn schedule 1"))
        await said(session, "/learn dismiss 1")
        assert "dismissed" in text_of(await said(session, "/learn"))
        await said(session, "/learn forget all")
        assert "Nothing recurs" in text_of(await said(session, "/learn"))


@pytest.mark.parametrize(
    "line",
    ["/learn accept x", "/learn why", "/learn show 99", "/learn nonsense 1", "/learn forget p9"],
)
@pytest.mark.usefixtures("home")
async def test_what_cannot_be_meant_is_an_error(project: Path, line: str):
    async with quiet(project) as session:
        assert (await said(session, line)).is_error


async def test_a_statement_is_shown_whole_and_becomes_a_memory(project: Path, home: Path):
    folder = home / ".config/ybs/sessions"
    folder.parent.mkdir(mode=0o700, parents=True)
    words = "always run the tests before you say that something is done, then push to origin with --force"
    for day in range(3):
        write(folder, f"s{day}", day, turn(f"{'abc'[day] * 7} please; {words}"))
    async with quiet(project) as session:
        assert words in recurring_line(session)
        assert words in text_of(await said(session, "/learn"))
        assert f"Saved for all projects: {words}\n" in text_of(
            await said(session, "/learn accept p1")
        )
        assert "p1" not in text_of(await said(session, "/learn"))
    assert any(words in each.read_text() for each in (home / ".config/ybs/memories").rglob("*.md"))


@pytest.mark.usefixtures("sessions")
async def test_a_line_at_the_start_once(project: Path):
    async with quiet(project) as session:
        assert "/learn accept 1 makes a command of it" in recurring_line(session)
        assert recurring_line(session) == ""


@pytest.mark.usefixtures("sessions")
async def test_incognito_says_and_learns_nothing(project: Path, home: Path):
    async with quiet(project, incognito=True) as session:
        assert recurring_line(session) == ""
        assert "Incognito" in text_of(await said(session, "/learn"))
    assert not (home / ".local/state/ybs/learning.json").exists()


@pytest.mark.usefixtures("sessions")
async def test_it_can_be_switched_off(project: Path, home: Path):
    (home / ".config/ybs/config.json").write_text('{"learning": {"enabled": false}}')
    async with quiet(project) as session:
        assert recurring_line(session) == ""
        assert not learning_of(session).store.path.exists()
