"""What a request asks for, measured on requests that nothing was learnt from."""

from pathlib import Path

import pytest

from rows import every_row
from ybs.small_models.intents import (
    INTENTS,
    Intent,
    NaiveBayes,
    intent_of,
    read_examples,
    sure_intent_of,
    surely_asks,
    wants_action,
    wants_change,
)
from ybs.small_models.mentions import (
    command_to_run,
    commands_in,
    files_in,
    paths_in,
    without_commands,
)
from ybs.small_models.topics import is_about_one, topics_in

HELD = Path(__file__).with_name("requests_held.tsv")
ASKING = {"question", "count", "run", "chat"}


def held() -> list[list[str]]:
    return [line.split("\t") for line in HELD.read_text("utf-8").splitlines()[1:]]


@pytest.mark.integration
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


@pytest.mark.integration
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
    monkeypatch.setattr("ybs.small_models.intents.__file__", str(tmp_path / "intents.py"))
    with pytest.raises(KeyError, match="sing"):
        list(read_examples())


def test_words_that_were_never_seen_say_nothing():
    examples: list[tuple[Intent, str]] = [("chat", "hello you"), ("chat", "hello"), ("run", "go")]
    classifier = NaiveBayes(examples)
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


def test_a_command_is_quoted_and_has_several_words():
    words = "Run `make all`, then look at `a.txt`."
    assert commands_in(words) == ["make all"]
    assert without_commands(words) == "Run  , then look at `a.txt`."


def test_paths_are_told_once_and_in_their_order():
    assert paths_in("See a.txt, b.txt. And a.txt.") == ["See", "a.txt", "b.txt", "And"]


def test_a_file_is_named_by_its_ending_or_by_being_called_one():
    assert files_in("Make a file named VERSION with 1.0 in it, and a.txt.") == ["VERSION", "a.txt"]
    assert files_in("Save it in a file called `notes`.") == ["notes"]
    assert files_in("Is JSON written to out/b.json?") == ["out/b.json"]


def test_an_ending_alone_names_no_file():
    assert files_in("Which .sh and .map files are there?") == []
    assert files_in("Add dist/ to .gitignore and .ruby-version.") == [".gitignore", ".ruby-version"]


@every_row(
    "words, command",
    [
        ("Repair it. `make all` has to run afterwards.", "make all"),
        ("`make all` runs the checks; see to it that `make all` is content.", "make all"),
        ("Re-run `make all` when it is repaired.", "make all"),
        ("Repair what `make all` says.", ""),  # it may be what is to be written, or what failed
        ("Put `one two` into run.py.", ""),
        ("Repair it, but do not run `make all`.", ""),
        ("Repair it. Don't run `make all`, it runs for hours.", ""),
        ("Run `make all`, then run `make docs`.", ""),
        ("Repair it and run the checks.", ""),
    ],
)
def test_a_command_is_to_be_run_where_the_words_speak_of_running(words: str, command: str):
    assert command_to_run(words) == command


@every_row(
    "words, topics",
    [
        ("Which of my recipes needs walnuts?", ["walnut"]),
        ("Does anybody in the team speak Danish? Each has a file.", ["Danish"]),
        ("One page still links to http://a.example/b. Which?", ["http://a.example/b"]),
        ("Where is 'no such page' said?", ["no such page"]),
        ("Who calls parse_line and readAll?", ["parse_line", "readAll"]),
        ("What does a harp cost?", ["harp", "cost"]),
        ("When do we close on Fridays?", ["Friday"]),
        ("What is it for? One sentence is enough.", []),
        ("What recipes do we have at the moment?", []),
        ("Change the colour of the door.", []),
        ("Good morning!", []),
        ("What does `cat walnuts` print?", []),
    ],
)
def test_what_words_are_about(words: str, topics: list[str]):
    assert topics_in(words, ["recipes"]) == topics


def test_a_question_about_all_is_not_one_about_one():
    assert is_about_one("What does the harp cost?")
    assert not is_about_one("What is the cheapest one?")
    assert not is_about_one("How many harps are there?")
    assert not is_about_one("The harp costs 5.")
