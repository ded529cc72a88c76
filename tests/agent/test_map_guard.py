"""The guard that says the map: when, to whom it does not, and what it waits for."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hosts import this_host
from rows import every_row
from ybs.agent import map_guard
from ybs.agent.map_guard import TITLE, MapGuard, map_tokens
from ybs.agent.prompt_context import PromptContext
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.events import Noticed, UserSaid
from ybs.core.messages import Message, Origin, UserMessage
from ybs.repo_map.mapper import FEWEST_FILES, Mapper, is_small
from ybs.repo_map.protocol import MapAnswer, MapRequest
from ybs.security.paths.roots import Roots
from ybs.session.options import Options
from ybs.session.settings import environment_of
from ybs.testing import RecordedEvents, ScriptedModel, ScriptedToolbox, call
from ybs.trust.settings import load

GOOD = MapAnswer(text="src/app.py", files=("src/app.py",), tokens=5, sources=9)
MAP = f"{TITLE}\n\nsrc/app.py"


class Drawer(Mapper):
    """A mapper whose answers come when the test says so."""

    def __init__(self, tokens: int = 100, *, is_near: bool = False) -> None:
        super().__init__(MapRequest.of(Path("/")), tokens, environ={})
        self.is_near = is_near
        self.asked: list[str] = []
        self.answers: list[asyncio.Future[MapAnswer | None]] = []

    @property
    def is_ready(self) -> bool:
        return self.is_near

    def begin(self, query: str) -> "asyncio.Task[MapAnswer | None]":
        self.asked.append(query)
        self.answers.append(asyncio.get_running_loop().create_future())
        return asyncio.ensure_future(self._wait(self.answers[-1]))

    async def _wait(self, answer: "asyncio.Future[MapAnswer | None]") -> MapAnswer | None:
        return await answer

    def give(self, answer: MapAnswer | None) -> None:
        self.answers[-1].set_result(answer)


class Stage:
    """A session whose model calls a tool before it answers; `at_work` is done while the tool runs."""

    def __init__(self, drawer: Drawer, messages: Sequence[Message] = ()) -> None:
        self.at_work: Callable[[], object] = lambda: None
        self.events = RecordedEvents()
        self.conversation = Conversation("system", messages)
        self.guard = MapGuard(drawer)

    async def turn(self, words: str = "fix it", origin: Origin = "person") -> list[int]:
        """Take a turn of two requests and return how many maps each of them held."""
        model = ScriptedModel([call("work"), "done"])
        toolbox = ScriptedToolbox({"work": self._work})
        agent = Agent(model, toolbox, self.events, self.conversation, [self.guard])
        await agent.run(UserMessage.of(words, origin=origin))
        return [sum(map(is_map, request.messages)) for request in model.requests]

    async def _work(self, *_: object) -> str:
        self.at_work()
        for _number in range(3):  # what was given arrives
            await asyncio.sleep(0)
        return "fine"

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events.of(Noticed)]


def is_map(message: Message) -> bool:
    return isinstance(message, UserMessage) and message.text == MAP and message.origin == "context"


async def test_a_map_that_comes_at_once_goes_with_the_first_request(monkeypatch):
    monkeypatch.setattr(map_guard, "WAIT_SECONDS", 9)
    drawer = Drawer(is_near=True)
    stage = Stage(drawer)
    asyncio.get_running_loop().call_later(0.001, lambda: drawer.give(GOOD))
    assert await stage.turn("where is it?") == [1, 1]
    assert drawer.asked == ["where is it?"]
    said = [(event.content, event.origin) for event in stage.events.of(UserSaid)]
    assert said == [("where is it?", "person"), (MAP, "context")]


@pytest.mark.integration
@every_row("is_near, wait_seconds", [(True, 0.01), (False, 30)])
async def test_a_map_that_comes_late_is_said_at_a_later_step_or_turn(
    is_near: bool, wait_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_guard, "WAIT_SECONDS", wait_seconds)
    drawer = Drawer(is_near=is_near)
    stage = Stage(drawer)
    stage.at_work = lambda: drawer.give(GOOD)
    assert await stage.turn() == [0, 1]
    slow = Drawer(is_near=is_near)
    stage = Stage(slow)
    assert await stage.turn("first") == [0, 0]
    slow.give(GOOD)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await stage.turn("second") == [1, 1]
    assert slow.asked == ["first"]


async def test_a_map_that_was_asked_for_before_the_turn_is_there_at_its_first_step() -> None:
    drawer = Drawer(is_near=True)
    stage = Stage(drawer)
    stage.guard.expect("where?", stage.conversation.messages)
    drawer.give(GOOD)
    assert await stage.turn("where?") == [1, 1]
    stage.guard.expect("and now?", stage.conversation.messages)
    assert drawer.asked == ["where?"]


async def test_a_map_is_said_once_and_anew_only_where_it_was_taken_away() -> None:
    drawer = Drawer()
    stage = Stage(drawer)
    stage.at_work = lambda: drawer.give(GOOD)
    assert await stage.turn("one") == [0, 1]
    stage.at_work = lambda: None
    assert await stage.turn("two") == [1, 1]
    assert drawer.asked == ["one"]
    kept = tuple(stage.conversation.messages)
    assert await Stage(drawer, kept).turn("three") == [1, 1]  # taken up again
    assert drawer.asked == ["one"]
    stage.conversation.replace([])
    stage.at_work = lambda: drawer.give(GOOD)
    assert await stage.turn("four") == [0, 1]
    assert drawer.asked == ["one", "four"]


async def test_a_map_that_comes_after_the_conversation_got_one_back_is_not_said_twice() -> None:
    drawer = Drawer()
    stage = Stage(drawer)
    assert await stage.turn("one") == [0, 0]
    drawer.give(GOOD)
    for _number in range(3):
        await asyncio.sleep(0)
    stage.conversation.append(UserMessage.of(MAP, origin="context"))  # as /restore does
    assert await stage.turn("two") == [1, 1]


async def test_a_map_that_compaction_cut_short_is_said_anew() -> None:
    drawer = Drawer()
    short = f"\n[{TITLE[:70]}… 4,000 characters were set aside to save room.]\n"
    stage = Stage(drawer, [UserMessage.of(short, origin="context")])
    await stage.turn("go on")
    assert drawer.asked == ["go on"]


async def test_without_a_map_the_person_is_told_once_and_nobody_waits_again() -> None:
    drawer = Drawer()
    drawer.problem = "its process ended"
    stage = Stage(drawer)
    stage.at_work = lambda: drawer.give(None)
    assert await stage.turn() == [0, 0]
    stage.at_work = lambda: None
    assert await stage.turn() == [0, 0]
    assert stage.notices == ["The repo map could not be made: its process ended."]
    assert len(drawer.asked) == 1


async def test_a_project_with_next_to_nothing_in_it_gets_no_map() -> None:
    for answer in (MapAnswer(text="a.py", sources=2), MapAnswer(text="", sources=9)):
        drawer = Drawer()
        stage = Stage(drawer)
        stage.at_work = lambda drawer=drawer, answer=answer: drawer.give(answer)
        assert await stage.turn() == [0, 0]
        assert not stage.notices


async def test_only_a_persons_words_ask_for_a_map_and_only_where_it_has_a_size() -> None:
    drawer = Drawer()
    stage = Stage(drawer)
    await stage.turn("[Shell command output]", origin="shell")
    assert not drawer.asked
    await stage.turn("why?")
    assert drawer.asked == ["why?"]
    nothing = Drawer(tokens=0)
    assert await Stage(nothing).turn() == [0, 0]
    assert not nothing.asked


async def test_a_turn_that_is_stopped_takes_nothing_from_the_next_one() -> None:
    drawer = Drawer()
    stage = Stage(drawer)
    turn = asyncio.ensure_future(stage.turn("one"))
    for _ in range(3):
        await asyncio.sleep(0)
    assert drawer.asked
    turn.cancel()
    await asyncio.wait((turn,))
    drawer.give(GOOD)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await stage.turn("two") == [1, 1]


#: Settings, whether the prompt is the short one, and the size of the map that follows.
SIZES: list[tuple[dict[str, int], bool, int]] = [
    ({}, False, 1024),
    ({}, True, 0),
    ({"context.repo_map_tokens": 300}, True, 300),
    ({"context.repo_map_tokens": 300}, False, 300),
    ({"context.repo_map_tokens": 0}, False, 0),
]


@pytest.mark.integration
@every_row("overrides, is_short, size", SIZES)
def test_the_size_is_that_of_the_settings_and_small_models_get_one_only_where_it_is_set(
    overrides: dict[str, int], is_short: bool, size: int, project: Path
) -> None:
    fill(project)
    loaded = load(this_host(), folder=project, overrides=overrides)
    assert map_tokens(loaded, Roots(this_host(), project), is_short=is_short) == size


def fill(folder: Path, count: int = FEWEST_FILES) -> None:
    """Make so many files, each in a folder of its own."""
    for number in range(count):
        (folder / f"part{number}").mkdir(parents=True, exist_ok=True)
        (folder / f"part{number}" / "code.py").touch()


def test_home_what_holds_it_and_what_tools_may_not_read_are_not_mapped(project, home):
    loaded = load(this_host(), folder=project)
    for folder in (home, home.parent, Path("/"), project):
        assert map_tokens(loaded, Roots(this_host(), folder), is_short=False) == 0
    inner = home / "project"
    fill(inner)
    assert map_tokens(loaded, Roots(this_host(), inner), is_short=False) == 1024
    assert map_tokens(loaded, Roots(this_host(), inner, allowed=(project,)), is_short=False) == 0


def test_a_project_that_one_listing_shows_is_not_mapped(project: Path) -> None:
    loaded = load(this_host(), folder=project)
    fill(project, FEWEST_FILES - 1)
    for name in (".git/objects", ".hidden", "node_modules/left"):
        fill(project / name)
    (project / "out").symlink_to("/usr")  # one file more: a link is not followed
    (project / "part0" / "code.py").unlink()
    assert map_tokens(loaded, Roots(this_host(), project), is_short=False) == 0
    (project / "part0" / "code.py").touch()
    assert map_tokens(loaded, Roots(this_host(), project), is_short=False) == 1024


@pytest.mark.integration
def test_a_project_of_many_folders_is_not_walked_to_its_end(project: Path) -> None:
    for number in range(100):
        (project / f"part{number}").mkdir()
    assert (
        map_tokens(load(this_host(), folder=project), Roots(this_host(), project), is_short=False)
        == 1024
    )


def test_a_folder_that_cannot_be_read_is_passed_over(project: Path) -> None:
    assert is_small(project / "missing")


@every_row("is_incognito", [True, False])
def test_the_process_is_told_what_is_blocked_and_in_incognito_to_keep_nothing(
    is_incognito: bool, project: Path
) -> None:
    overrides = {"safety.sandbox_blocked_paths": ["./hidden"], "incognito.enabled": is_incognito}
    environment = environment_of(
        Options(host=this_host(), folder=project),
        load(this_host(), folder=project, overrides=overrides),
    )
    job = PromptContext(environment).mapper.job
    assert job.folder == bytes(project.resolve())
    assert job.blocked == (b"./hidden", b"~/.config/ybs/sessions")
    assert job.is_kept != is_incognito
