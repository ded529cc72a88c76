"""What is kept of recurring tasks, what is offered when, and what is forgotten."""

from pathlib import Path

import pytest

from learning.past_sessions import BEGUN, CHANGELOG, turn, write
from ybs.config.host import Host
from ybs.core.errors import YbsError
from ybs.learning.detector import DAY_SECONDS, Cluster
from ybs.learning.preferences import Preference
from ybs.learning.store import LearningStore

WORDS = (
    "update the changelog for 1.2.0",
    "add the changes to the changelog, version 1.3.0",
    "changelog for version 1.4.1 please",
    "please write the changelog of version 2.0",
)
NOW = BEGUN.timestamp() + 30 * DAY_SECONDS


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host.of({"HOME": str(tmp_path)})


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """Four weeks in each of which the changelog was asked for."""
    folder = tmp_path / "sessions"
    for week, words in enumerate(WORDS):
        write(folder, f"changelog-{week}", week * 7, turn(words, CHANGELOG))
        write(folder, f"other-{week}", week * 7 + 1, turn(f"why does {'abcd'[week] * 6} crash", ()))
    return folder


def test_sessions_are_read_once_and_what_recurs_is_offered_once(host: Host, sessions: Path) -> None:
    store = LearningStore(host)
    with store.changing() as learned:
        assert learned.update(sessions) == 8
        found = learned.next_offer(NOW)
    assert isinstance(found, Cluster)
    assert [each.text for each in found.last] == list(WORDS)
    with store.changing() as learned:
        assert learned.update(sessions) == 0
        assert learned.next_offer(NOW + 1) is None


def test_at_most_two_offers_a_week(host: Host, tmp_path: Path) -> None:
    for number, (verb, what) in enumerate(
        (("translate", "strings"), ("deploy", "image"), ("tag", "release"), ("measure", "latency"))
    ):
        for week in range(4):
            steps = (("run_shell", {"command": f"{verb}tool {what}"}),)
            words = f"{verb} the {what} of {['staging', 'nightly', 'main', 'beta'][number]}"
            write(tmp_path / "s", f"s{number}-{week}", week * 7 + number, turn(words, steps))
    with LearningStore(host).changing() as learned:
        learned.update(tmp_path / "s")
        told = [learned.next_offer(NOW + hour * 3_600) for hour in range(6)]
        later = [learned.next_offer(NOW + 8 * DAY_SECONDS) for _ in range(4)]
    assert sum(each is not None for each in told) == 2
    assert sum(each is not None for each in later) == 2


def test_a_no_is_remembered(host: Host, sessions: Path) -> None:
    with LearningStore(host).changing() as learned:
        learned.update(sessions)
        found = learned.next_offer(NOW)
        assert isinstance(found, Cluster)
        learned.settle(found.id, "dismissed")
        assert learned.next_offer(NOW + 99 * DAY_SECONDS) is None
        assert learned.state_of(found.id) == "dismissed"


def test_what_is_forgotten_is_gone_from_the_file(host: Host, sessions: Path) -> None:
    store = LearningStore(host)
    with store.changing() as learned:
        learned.update(sessions)
    assert b"changelog for version" in store.path.read_bytes()
    store.forget_all()
    assert b"changelog" not in store.path.read_bytes()
    with store.changing() as learned:
        assert learned.update(sessions) == 0, "the past was learned again"


def test_a_deleted_session_leaves_no_word(host: Host, sessions: Path) -> None:
    store = LearningStore(host)
    with store.changing() as learned:
        learned.update(sessions)
        learned.forget_session("changelog-1")
    data = store.path.read_bytes()
    assert WORDS[1].encode() not in data
    assert WORDS[2].encode() in data


def test_a_damaged_file_is_named_and_kept(host: Host, sessions: Path) -> None:
    store = LearningStore(host)
    with store.changing() as learned:
        learned.update(sessions)
    store.path.write_bytes(b"{")
    with pytest.raises(YbsError, match="cannot be read"), store.changing():
        pass
    assert store.path.read_bytes() == b"{"
    store.forget_all()
    assert store.load().known.requests == 0


def test_the_file_is_the_persons_alone(host: Host, sessions: Path) -> None:
    store = LearningStore(host)
    with store.changing() as learned:
        learned.update(sessions)
    assert store.path.stat().st_mode & 0o777 == 0o600


def test_what_is_said_while_a_learned_task_is_done_is_noted(host: Host, sessions: Path) -> None:
    with LearningStore(host).changing() as learned:
        learned.update(sessions)
        found = learned.next_offer(NOW)
        assert isinstance(found, Cluster)
        learned.settle(found.id, "accepted", made="/x/changelog.md")
        again = turn(
            "update the changelog for 2.1.0", CHANGELOG, steered="newest first", is_undone=True
        )
        write(sessions, "later", 29, again)
        learned.update(sessions)
        offer = learned.offers[found.id]
    assert (offer.corrections, offer.undone) == (["newest first"], 1)


def test_a_command_is_no_request_of_its_own_but_a_use_of_the_task_that_made_it(
    host: Host, sessions: Path
) -> None:
    with LearningStore(host).changing() as learned:
        learned.update(sessions)
        found = learned.next_offer(NOW)
        assert isinstance(found, Cluster)
        learned.settle(found.id, "accepted", made="/x/changelog.md")
        for day, name in enumerate(("/changelog", "/fix", "/fix", "/fix")):
            again = turn("Always use evil for it", CHANGELOG, steered="no", typed=name)
            write(sessions, f"later-{day}", 29 + day, again)
        known = learned.known.requests
        assert learned.update(sessions) == 4
        assert learned.known.requests == known + 1
        offer = learned.offers[found.id]
        assert (offer.used_at, offer.corrections) == (NOW - DAY_SECONDS, ["no"])
        assert found.last[-1].text == found.last[-2].text == WORDS[-1]
        assert not any("evil" in each.text for each in learned.preferences.stated)


def test_what_is_said_in_three_sessions_is_offered_as_a_memory(host: Host, tmp_path: Path) -> None:
    said = (
        "fix the form. always use pnpm, not npm",
        "Always use pnpm not npm! add a button",
        "tests please; always use pnpm, not npm",
    )
    for day, words in enumerate(said):
        write(tmp_path / "s", f"s{day}", day, turn(words))
    with LearningStore(host).changing() as learned:
        learned.update(tmp_path / "s")
        found = learned.next_offer(NOW)
        assert learned.next_offer(NOW + 1) is None
    assert isinstance(found, Preference)
    assert "pnpm" in found.text
    assert len(found.sessions) == 3


def test_no_sessions_are_no_error(host: Host, tmp_path: Path) -> None:
    with LearningStore(host).changing() as learned:
        assert learned.update(tmp_path / "missing") == 0
        assert learned.listed() == []


@pytest.mark.integration
def test_an_old_session_that_goes_on_is_read_within_a_day(host: Host, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    for number in range(120):
        write(folder, f"s{number:03}", 0, turn(f"why is {chr(97 + number % 26) * 7} so"))
    with LearningStore(host).changing() as learned:
        assert learned.update(folder, NOW) == 120
        write(folder, "s000", 1, turn("go on with the oldest"))
        write(folder, "s119", 1, turn("go on with the newest"))
        write(folder, "s120", 1, turn("begin another one"))
        assert learned.update(folder, NOW + 60) == 2
        assert learned.update(folder, NOW + DAY_SECONDS + 60) == 1
        assert learned.update(folder, NOW - DAY_SECONDS) == 0, "a clock that was set back"
