"""The person's word on commits: asked once for a repository, kept outside of it, and bound to its place."""

from pathlib import Path

from hosts import this_host
from rows import every_row
from ybs.git.consent import CommitWish, Consent, _Answer, answers, forget, keep, recall

HERE, THERE = Path("/here/.git"), Path("/there/.git")


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
async def test_an_answer_for_the_repository_counts_more_than_a_yes_to_all(rule, kept, commits):
    forget(this_host(), HERE)
    if kept is not None:
        keep(this_host(), HERE, may_commit=kept)
    consent = Consent(this_host(), rule)  # pyright: ignore[reportArgumentType] - one of the three
    assert consent.is_possible(HERE) == commits
    assert await consent.given(HERE, (), "") == commits


@every_row("said", [True, False])
async def test_the_person_is_asked_once_for_a_repository(said: bool):
    forget(this_host(), HERE)
    person = Person(said)
    for _ in range(2):  # sessions
        consent = Consent(this_host(), "ask", ask=person)
        assert consent.is_possible(HERE) in (said, not answers(this_host()))
        assert await consent.given(HERE, (), "") == said
        assert await consent.given(HERE, (), "") == said
    assert person.asked == [CommitWish(repository=HERE)]
    assert recall(this_host(), HERE) == _Answer(repository=str(HERE), may_commit=said)
    assert recall(this_host(), THERE) is None


async def test_a_question_that_was_not_answered_comes_again_in_the_next_session():
    person = Person(None, True)
    first = Consent(this_host(), "ask", ask=person)
    assert not await first.given(HERE, (), "")
    assert not await first.given(HERE, (), "")
    assert not first.is_possible(HERE)
    assert await Consent(this_host(), "ask", ask=person).given(HERE, (), "")
    assert len(person.asked) == 2


async def test_hooks_run_where_the_person_saw_them_or_trusts_the_project():
    person = Person(True, False, True)
    hooks = ("pre-commit",)
    assert await Consent(this_host(), "ask", ask=person).given(HERE, hooks, "one")
    assert person.asked == [CommitWish(repository=HERE, hooks=hooks)]
    assert await Consent(this_host(), "ask").given_to_hooks(HERE, hooks, "one")
    assert not await Consent(this_host(), "ask").given_to_hooks(HERE, hooks, "other")
    assert await Consent(this_host(), "ask", trusts_hooks=True).given_to_hooks(HERE, hooks, "other")
    assert not await Consent(this_host(), "ask", ask=person).given_to_hooks(HERE, hooks, "other")
    assert Consent(this_host(), "ask").is_possible(HERE)  # the no was about the hooks
    assert await Consent(this_host(), "ask", ask=person).given_to_hooks(HERE, hooks, "other")
    assert person.asked[1:] == [CommitWish(repository=HERE, hooks=hooks, are_new=True)] * 2


def test_answers_are_listed_forgotten_and_private_and_damaged_ones_are_none(monkeypatch):
    assert answers(this_host()) == []
    keep(this_host(), THERE, may_commit=True)
    keep(this_host(), HERE, may_commit=False)
    assert [answer.repository for answer in answers(this_host())] == [str(HERE), str(THERE)]
    files = sorted((this_host().state_folder / "commits").iterdir())
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    files[0].write_text("{")
    assert len(answers(this_host())) == 1
    assert None in (recall(this_host(), HERE), recall(this_host(), THERE))
    files[0].write_bytes(files[1].read_bytes())  # moved there from another place
    assert None in (recall(this_host(), HERE), recall(this_host(), THERE))
    assert forget(this_host(), HERE)
    assert not forget(this_host(), HERE)
