"""What words mention."""

from rows import every_row
from ybs.agent.small_models.mentions import (
    command_to_run,
    commands_in,
    files_in,
    paths_in,
    without_commands,
)


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
