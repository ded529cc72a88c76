"""Which words stay: all while they fit, then the newest and those that say something of their own."""

import pytest

from rows import every_row
from ybs.compaction.layout import MARK, choose, part_of, words_of
from ybs.core.messages import Image, Message, Text, UserMessage


def cost(text: str) -> int:
    return 4 + len(text) // 4


ROUTINE = [f"Go on with step {n}." for n in range(100)]
REQUESTS = [
    f"Look at {place}/{file}.py and {verb} the {thing}."
    for place in ("core", "ui", "tools", "api")
    for file in ("parser", "lexer", "router", "cache", "index")
    for verb, thing in (("rename", "loop"), ("test", "helper"), ("split", "fixture"))
]


def test_words_that_fit_all_stay_in_order():
    chosen = choose(ROUTINE, 100_000, cost)
    assert list(chosen.kept) == ROUTINE
    assert chosen.left_out == ()
    assert chosen.tokens == sum(cost(MARK + text) for text in ROUTINE)
    assert choose([], 0, cost).kept == ()


@pytest.mark.integration
@every_row(
    "fact",
    [
        "Remember: deploys go to heron.",
        "Marta owns the branch release-lts.",
        "We ship on Thursdays.",
        "The port is 5439.",
        "Das Passwort kennt nur Ingrid.",
        "リリースは木曜日です",
        'The button must say "Carry on".',
    ],
)
def test_what_says_something_of_its_own_outlives_routine(fact: str):
    for others in (["continue"] * 200, ROUTINE * 3, REQUESTS):
        words = [*others[:5], fact, *others[5:]]
        chosen = choose(words, sum(map(cost, words)) // 5, cost)
        assert fact in chosen.kept, others[0]
        assert chosen.kept[-1] == words[-1]
        assert chosen.tokens <= sum(map(cost, words)) // 5


def test_words_are_either_kept_or_left_out_and_nothing_is_made_up():
    words = [*ROUTINE[:50], "The port is 5439.", *ROUTINE[50:]]
    chosen = choose(words, 400, cost)
    assert sorted([*chosen.kept, *chosen.left_out]) == sorted(words)
    assert [w for w in words if w in chosen.kept] == list(chosen.kept)


def test_one_gigantic_message_does_not_take_all_the_room():
    paste = "Here is the log. " + "error in line 7\n" * 5_000 + "What is wrong with it?"
    chosen = choose([*ROUTINE, paste, "The port is 5439.", "go on"], 1_000, cost)
    assert "The port is 5439." in chosen.kept
    [short] = [words for words in chosen.kept if words.startswith("Here is the log.")]
    assert short.endswith("What is wrong with it?")
    assert "characters left out" in short
    assert chosen.tokens <= 1_000
    assert choose([paste], 50, cost).tokens <= 50


def test_words_come_out_of_a_summary_as_they_went_in():
    words = ["first", MARK + "second", "\n\n> third", "> fourth\n\n> fifth"]
    said: list[Message] = [
        UserMessage(content=(Text(text="summary"), *map(part_of, words)), origin="summary"),
        UserMessage.of("a reminder", origin="guard"),
        UserMessage.of("$ ls", origin="shell"),
        UserMessage(content=(Text(text="look @a.py"), Text(text="[File a.py]"))),
        UserMessage(content=(Text(text=" "), Image(media_type="image/png", data=b""))),
    ]
    assert words_of(said) == [*words, "look @a.py"]
