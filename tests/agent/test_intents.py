"""What a request asks for, measured on requests that nothing was learnt from."""

from pathlib import Path

import pytest

from rows import every_row
from ybs.agent.small_models.intents import (
    INTENTS,
    Classifier,
    Intent,
    intent_of,
    read_examples,
    sure_intent_of,
    surely_asks,
    wants_action,
    wants_change,
)

HELD = Path(__file__).with_name("requests_held.tsv")
ASKING = {"question", "count", "run", "chat"}


def held() -> list[list[str]]:
    return [line.split("\t") for line in HELD.read_text("utf-8").splitlines()[1:]]


def test_what_was_written_by_somebody_who_saw_nothing_is_understood():
    rows = held()
    assert len(rows) == 260
    assert {intent for intent, _ in rows} == set(INTENTS)
    right = [intent_of(request) == intent for intent, request in rows]
    assert sum(right) / len(rows) > 0.88
    as_change = [wants_change(request) == (intent not in ASKING) for intent, request in rows]
    assert sum(as_change) / len(rows) > 0.97
    for each in INTENTS:
        of_it = [intent_of(request) == each for intent, request in rows if intent == each]
        assert sum(of_it) / len(of_it) >= 0.7, each


def test_what_is_sure_is_right():
    sure = [(intent, sure_intent_of(request)) for intent, request in held()]
    said = [(intent, found) for intent, found in sure if found]
    assert len(said) > 0.6 * len(sure)
    assert sum(intent == found for intent, found in said) / len(said) > 0.97
    asked = [intent for intent, request in held() if surely_asks(request)]
    assert set(asked) <= ASKING
    assert len(asked) > 0.8 * 80


def test_no_example_is_in_the_measure_nor_twice():
    requests = [request.casefold() for _, request in read_examples()]
    assert len(requests) == len(set(requests)) > 2_000
    assert not {request.casefold() for _, request in held()} & set(requests)


def test_an_example_with_an_unknown_intent_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "requests.tsv").write_text("intent\trequest\nsing\tSing!\n")
    monkeypatch.setattr("ybs.agent.small_models.intents.__file__", str(tmp_path / "intents.py"))
    with pytest.raises(KeyError, match="sing"):
        list(read_examples())


def test_words_that_were_never_seen_say_nothing():
    examples: list[tuple[Intent, str]] = [("chat", "hello you"), ("chat", "hello"), ("run", "go")]
    classifier = Classifier(examples)
    assert classifier.ranked("zzz")[0] == classifier.ranked("qqq zzz")[0]
    assert classifier.ranked("go")[0][1] == "run"


@every_row(
    "words",
    [
        "Set the timeout to 45.",
        "In a.css replace red by blue.",
        "The colour ought to be teal.",
        "Please fix the bug.",
        "Can you add a test?",
        "Find the cause and fix it.",
        "a.txt is old, get rid of it.",
        "I need a file with the number 5 in it.",
        "The heading of page.html has to read Summer Plan.",
        "The parser needs two more tests.",
        "Owner in notes.md: Juno instead of Basil, thanks",
        "Could you put that right?",
        "nothing uses logo.svg any more -> get rid of it",
        "We are moving to 16. Update the image in compose.yml.",
    ],
)
def test_a_change_is_asked_for(words: str):
    assert wants_change(words)
    assert wants_action(words)


@every_row(
    "words",
    [
        "Good morning!",
        "What does change() do?",
        "How do I add a file?",
        "Is there a fix for it?",
        "Explain how the update works.",
        "In which file is MAX given its value?",
        "Which table needs a new column?",
        "whats the port? should be in a.toml",
        "Could you tell me what level is set in a.ini?",
        "When is the next release?",
        "One page links to a.html. Tell me which.",
    ],
)
def test_an_answer_is_asked_for(words: str):
    assert not wants_change(words)
    assert not wants_action(words)


def test_what_is_to_be_run_is_an_action_and_no_change():
    assert wants_action("Run the tests.")
    assert not wants_change("Run the tests.")
