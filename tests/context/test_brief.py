"""What a small model is told of the documents with a request."""

from ybs.context.prompt import MOST_CHARS, WHOLE_CHARS, Section, brief_of

PROSE = "\n".join(f"Sentence {number} is about the weather of the coast." for number in range(40))


def section(text: str, name: str = "AGENTS.md") -> Section:
    return Section(name=name, text=text, source=name)


def test_a_short_document_is_told_whole_whatever_the_request_is_about():
    told = brief_of([section("Answer in German.")], "How many files are there?")
    assert told == '<document name="AGENTS.md" from="AGENTS.md">\nAnswer in German.\n</document>'


def test_a_long_document_is_told_where_it_is_about_the_request():
    text = f"# Testing\n{PROSE}\nTesting is done with tox.\nImports are sorted."
    told = brief_of([section(text)], "Which testing do you do?")
    assert told.splitlines()[1:-1] == ["Testing is done with tox."]


def test_nothing_is_told_of_a_long_document_about_something_else():
    assert brief_of([section(PROSE)], "hello") == ""
    assert brief_of([], "hello") == ""


def test_lines_stay_in_their_order_and_the_best_of_many_fit():
    text = f"{PROSE}\nWeather on the coast is measured hourly with an anemometer."
    told = brief_of([section(text)], "Is the weather on the coast measured with an anemometer?")
    lines = told.splitlines()[1:-1]
    assert lines[-1].startswith("Weather on the coast is measured")
    assert lines == sorted(lines, key=text.split("\n").index)
    assert len(lines) > 1
    assert sum(map(len, lines)) <= MOST_CHARS


def test_of_a_paragraph_in_one_line_the_sentences_are_told_that_are_about_the_request():
    paragraph = f"{PROSE} Testing is done with tox; run it twice. Imports are sorted!".replace(
        "\n", " "
    )
    told = brief_of([section(f"# Guide\n\n{paragraph}\n")], "Which testing do you do?")
    assert told.splitlines()[1:-1] == ["Testing is done with tox; run it twice."]
    unbroken = "testing" * MOST_CHARS
    told = brief_of([section(f"{unbroken}\nTesting is done with tox.")], "Which testing?")
    assert told.splitlines()[1:-1] == ["Testing is done with tox."]


def test_documents_share_what_there_is():
    long = "coast " * (WHOLE_CHARS // 5)
    sections = [section(f"{long}\n{PROSE}", "CODE.md"), section(PROSE)]
    told = brief_of(sections, "Which weather has the coast?")
    assert len(told) < 2 * MOST_CHARS
