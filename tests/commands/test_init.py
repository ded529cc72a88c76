"""/init writes a first AGENTS.md, once, and never over anything."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rows import every_row
from ybs.agent.prompt_context import PromptContext
from ybs.commands import init as room
from ybs.core.errors import ToolError
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.testing import OpenAIServer, RecordedEvents

Open = Callable[..., tuple[Session, RecordedEvents]]


@pytest.fixture(autouse=True)
def maps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have the map say this; no process is started for it. An empty list: there is no map."""
    texts = ["src/b.py: Cart\nsrc/a.py\n"]

    async def map_text(self: PromptContext, query: str) -> str:
        del self
        assert not query
        if not texts:
            raise ToolError("there is no map")
        return texts[0]

    monkeypatch.setattr(PromptContext, "map_text", map_text)
    return texts


async def replies_to(open_session: Open, *lines: str, **options: object) -> list[Reply]:
    async with OpenAIServer([]) as server:
        session, _ = open_session(server, **options)
        async with session:
            replies = [await session.handle(line) for line in lines]
        assert not server.requests
    assert all(isinstance(reply, Reply) for reply in replies)
    return [reply for reply in replies if isinstance(reply, Reply)]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.integration
@every_row("name", ["AGENTS.md", "CLAUDE.md", "agents.md", "Claude.md"])
async def test_nothing_is_written_where_the_project_has_one(
    open_session: Open, project: Path, name: str
):
    (project / name).symlink_to("gone")
    try:
        (reply,) = await replies_to(open_session, "/init")
        assert reply.is_error
        assert reply.text.startswith(f"{name} exists already, and /init does not overwrite it.")
        assert names_in(project) == [name]
    finally:
        (project / name).unlink()


async def test_one_that_comes_up_meanwhile_is_not_overwritten(
    open_session: Open, project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "AGENTS.md").write_text("mine")

    def none_there(_session: Session) -> str:
        return ""

    monkeypatch.setattr(room, "_there", none_there)
    (reply,) = await replies_to(open_session, "/init")
    assert reply.is_error
    assert (project / "AGENTS.md").read_text() == "mine"


@pytest.mark.parametrize(
    ("line", "options"), [("/init force", {}), ("/init show", {}), ("/init", {"dry_run": True})]
)
async def test_these_write_nothing(
    open_session: Open, project: Path, line: str, options: dict[str, object]
):
    (project / "go.mod").touch()
    (reply,) = await replies_to(open_session, line, **options)
    assert names_in(project) == ["go.mod"]
    match line, options:
        case "/init force", _:
            assert (reply.is_error, reply.text) == (True, room.USAGE)
        case "/init show", _:
            assert "Go.\n\n## Commands" in reply.text
        case _:
            assert reply.text == "AGENTS.md was not written, because this is a dry run."


@pytest.mark.parametrize("is_incognito", [False, True])
async def test_it_writes_what_it_shows_and_says_so(
    open_session: Open, project: Path, is_incognito: bool, maps: list[str]
):
    (project / "Cargo.toml").touch()
    (project / "src").mkdir()
    (project / "src/a.py").touch()
    (project / "src/b.py").touch()
    (project / ".gitignore").write_text("ignored.py\n")
    (project / "ignored.py").touch()
    if is_incognito:
        maps.clear()
    shown, wrote = await replies_to(open_session, "/init show", "/init", incognito=is_incognito)
    text = (project / "AGENTS.md").read_text()
    assert shown.text == text.rstrip()
    assert ("Used and changed most: `src/b.py`, `src/a.py`" in text) == (not is_incognito)
    assert "`src/`: 2 Python files" in text
    assert "at the top" not in text
    lines = len(text.splitlines())
    assert wrote.text == (
        f"Wrote AGENTS.md, {lines} lines: Rust (cargo).\n"
        "Read it through and add your own rules under Rules. To undo this, delete the file.\n"
        "It applies from the next session on; /new starts one."
    )
    assert (project / "AGENTS.md").stat().st_mode & 0o777 == 0o644


async def test_a_project_of_no_kind_gets_one_too(open_session: Open, project: Path):
    wrote, again = await replies_to(open_session, "/init", "/init")
    assert "no known kind of project" in wrote.text
    assert again.is_error
    assert (project / "AGENTS.md").read_text().endswith("## Rules\n")
