"""The person's word on commits: asked once for a repository, kept outside of it, and bound to its place."""

import json
import shutil
from pathlib import Path

import pytest

from hosts import this_host
from rows import every_row
from ybs.git.consent import CommitWish, Consent, _Answer, forget, keep, recall
from ybs.trust.place import place_of


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return made(tmp_path / "here")


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return made(tmp_path / "there")


def made(folder: Path) -> Path:
    """Make what git makes first, and return git's folder."""
    git_folder = folder / ".git"
    git_folder.mkdir(parents=True)
    (git_folder / "description").write_text("Unnamed repository")
    return git_folder


class Person:
    """Answers each question with the next of some answers, and remembers what was asked."""

    def __init__(self, *said: bool | None) -> None:
        self.said = list(said)
        self.asked: list[CommitWish] = []

    async def __call__(self, wish: CommitWish) -> bool | None:
        self.asked.append(wish)
        return self.said.pop(0)


@every_row(
    "rule, kept, commits",
    [
        ("always", None, True),
        ("always", False, False),
        ("never", None, False),
        ("never", True, False),
        ("ask", None, False),
        ("ask", True, True),
        ("ask", False, False),
    ],
)
async def test_an_answer_for_the_repository_counts_more_than_a_yes_to_all(
    rule, kept, commits, here: Path
):
    forget(this_host(), here)
    if kept is not None:
        keep(this_host(), here, may_commit=kept)
    consent = Consent(this_host(), rule)  # pyright: ignore[reportArgumentType] - one of the three
    assert consent.is_possible(here) == commits
    assert await consent.given(here, (), "") == commits


@every_row("said", [True, False])
async def test_the_person_is_asked_once_for_a_repository(said: bool, here: Path, there: Path):
    forget(this_host(), here)
    person = Person(said)
    for _ in range(2):  # sessions
        consent = Consent(this_host(), "ask", ask=person)
        assert consent.is_possible(here) in (said, recall(this_host(), here) is None)
        assert await consent.given(here, (), "") == said
        assert await consent.given(here, (), "") == said
    assert person.asked == [CommitWish(repository=here)]
    assert recall(this_host(), here) == _Answer(
        repository=str(here), may_commit=said, place=place_of(this_host(), here)
    )
    assert recall(this_host(), there) is None


async def test_a_question_that_was_not_answered_comes_again_in_the_next_session(here: Path):
    person = Person(None, True)
    first = Consent(this_host(), "ask", ask=person)
    assert not await first.given(here, (), "")
    assert not await first.given(here, (), "")
    assert not first.is_possible(here)
    assert await Consent(this_host(), "ask", ask=person).given(here, (), "")
    assert len(person.asked) == 2


async def test_hooks_run_where_the_person_agreed_to_these_very_ones(here: Path):
    person = Person(True, False, True)
    hooks = ("pre-commit",)
    assert await Consent(this_host(), "ask", ask=person).given(here, hooks, "one")
    assert person.asked == [CommitWish(repository=here, hooks=hooks)]
    assert await Consent(this_host(), "ask").given_to_hooks(here, hooks, "one")
    assert not await Consent(this_host(), "ask").given_to_hooks(here, hooks, "other")
    assert not await Consent(this_host(), "ask", ask=person).given_to_hooks(here, hooks, "other")
    assert Consent(this_host(), "ask").is_possible(here)  # the no was about the hooks
    assert await Consent(this_host(), "ask", ask=person).given_to_hooks(here, hooks, "other")
    assert person.asked[1:] == [CommitWish(repository=here, hooks=hooks, are_new=True)] * 2


def test_answers_are_forgotten_and_private_and_damaged_ones_are_none(
    monkeypatch, here: Path, there: Path
):
    keep(this_host(), there, may_commit=True)
    keep(this_host(), here, may_commit=False)
    files = sorted((this_host().state_folder / "commits").iterdir())
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    files[0].write_text("{")
    assert None in (recall(this_host(), here), recall(this_host(), there))
    files[0].write_bytes(files[1].read_bytes())  # moved there from another place
    assert None in (recall(this_host(), here), recall(this_host(), there))
    assert forget(this_host(), here)
    assert not forget(this_host(), here)


async def test_a_yes_is_not_for_another_repository_at_the_path_and_a_no_is(here: Path):
    for said in (True, False):
        keep(this_host(), here, may_commit=said, hooks="one")
        shutil.rmtree(here.parent)
        made(here.parent)
        person = Person(True)
        consent = Consent(this_host(), "ask", ask=person)
        assert await consent.given_to_hooks(here, ("pre-commit",), "one")
        assert len(person.asked) == said
        assert await consent.given(here, (), "") == said


def test_a_yes_is_for_the_repository_that_is_restored_from_a_backup(here: Path):
    keep(this_host(), here, may_commit=True)
    kept = here.parent.rename(here.parent.with_name("kept"))
    shutil.copytree(kept, here.parent)
    assert recall(this_host(), here) is not None


def test_a_yes_without_a_place_is_for_no_repository(here):
    keep(this_host(), here, may_commit=True)
    (file,) = (this_host().state_folder / "commits").iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), "place": ""}))
    assert recall(this_host(), here) is None
    keep(this_host(), here, may_commit=True)
    assert recall(this_host(), here) is not None
