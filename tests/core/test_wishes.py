"""Whether words ask for a change."""

from rows import every_row
from ybs.core.wishes import (
    files_in,
    output_wanted_of,
    paths_in,
    wishes_change,
    wishes_last,
    wishes_more,
)


@every_row(
    "words",
    [
        "Set the timeout to 45.",
        "In a.css replace red by blue.",
        "The colour ought to be teal.",
        "MAX has to be 80.",
        "Please fix the bug.",
        "Can you add a test?",
        "Find the cause and fix it.",
        "a.txt is old, get rid of it.",
        "I need a file with the number 5 in it.",
        "The port should be 8080",
        "Translate the comments of a.py into German.",
        "The heading of page.html has to read Summer Plan.",
        "config.toml must contain debug = true.",
        "notes.txt needs another line: milk",
        "The parser needs two more tests.",
        "Owner in notes.md: Juno instead of Basil, thanks",
        "run.sh: variable TGT -> TARGET. it appears twice",
        "New value for rain.csv, it goes at the bottom: 2024-06-03,18",
        "As we stopped selling them, the file candles.yaml has to go.",
        "Could you put that right?",
        "When I run check.py it stops with an error. Sort it out, please.",
        "Give this project a .ruby-version file with 3.3.0 in it.",
        "nothing uses logo.svg any more -> get rid of it",
        "We are moving to 16. Update the image in compose.yml.",
    ],
)
def test_a_change_is_asked_for(words: str):
    assert wishes_change(words)


@every_row(
    "words",
    [
        "",
        "Good morning!",
        "What does change() do?",
        "How do I add a file?",
        "Is there a fix for it?",
        "Explain how the update works.",
        "Run the tests.",
        "In which file is MAX given its value?",
        "Tell me the names of all files.",
        "Translate cat into French.",
        "Which table needs a new column?",
        "A good cake needs a walnut.",
        "whats the port? should be in a.toml",
        "Im trying to remember which song it is, can you check the folder?",
        "Could you tell me what level is set in a.ini?",
        "I can't make sense of a.js, what is it good for?",
        "I need the name of the bucket, it ought to be in a.properties",
        "When is the next release?",
        "Be so kind and tell me the day, it is in days.md.",
        "One page links to a.html. Tell me which.",
        "pls list the targets of the Makefile",
        "Run a.py",
    ],
)
def test_an_answer_is_asked_for(words: str):
    assert not wishes_change(words)


def test_what_is_to_be_run_and_where_something_is_to_be_added():
    assert output_wanted_of("What does `wc -l a.txt` print?") == ["wc -l a.txt"]
    assert output_wanted_of("Run `make all` for me.") == ["make all"]
    assert output_wanted_of("Why is `rm -rf build` dangerous?") == []
    added = (
        *("Append a line.", "Put it at the top.", "The index is missing in a.sql."),
        *("It needs one more line at the end.", "Change it."),
    )
    assert [wishes_more(words) for words in added] == [True, True, True, True, False]
    assert [wishes_last(words) for words in added] == [True, False, False, True, False]
    assert paths_in("See a.txt, b.txt. And a.txt.") == ["See", "a.txt", "b.txt", "And"]


def test_a_file_is_named_by_its_ending_or_by_being_called_one():
    assert files_in("Make a file named VERSION with 1.0 in it, and a.txt.") == ["VERSION", "a.txt"]
    assert files_in("Save it in a file called `notes`.") == ["notes"]
    assert files_in("Is JSON written to out/b.json?") == ["out/b.json"]


def test_an_ending_alone_names_no_file():
    assert files_in("Which .sh and .map files are there?") == []
    assert files_in("Add dist/ to .gitignore and .ruby-version.") == [".gitignore", ".ruby-version"]
