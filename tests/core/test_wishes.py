"""Whether words ask for a change."""

from rows import every_row
from ybs.core.wishes import wishes_change


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
    ],
)
def test_an_answer_is_asked_for(words: str):
    assert not wishes_change(words)
