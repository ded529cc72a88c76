"""What words are about."""

from rows import every_row
from ybs.agent.small_models.topics import is_about_one, topics_in


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
