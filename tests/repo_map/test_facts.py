from ybs.repo_map import facts
from ybs.repo_map.facts import DEFINES, STEPS, FactReader

CODE = b"def parse_header(line):\n    return line.split()\n"


def test_a_word_counts_by_where_it_stands() -> None:
    read = FactReader().read("wire/codec.py", CODE, "python").weights
    assert read["wir"] == facts.FOLDER_WEIGHT * STEPS
    assert read["codec"] == facts.NAME_WEIGHT * STEPS
    assert read["line"[:-1]] == 2 * facts.CONTENT_WEIGHT * STEPS
    assert read["header"[:-2]] == (facts.CONTENT_WEIGHT + facts.SYMBOL_WEIGHT) * STEPS


def test_a_definition_is_found_by_its_name_as_it_is_written() -> None:
    data = b"class HeaderParser:\n    pass\n"
    assert DEFINES + "HeaderParser" in FactReader().read("a.py", data, "python").weights


def test_without_data_the_path_alone_counts() -> None:
    read = FactReader().read("images/logo.png")
    assert set(read.weights) == {"imag", "logo", "png"}
    assert read.length == 0


def test_the_length_is_the_number_of_words() -> None:
    assert FactReader().read("a.py", b"one two_three one 17 +").length == 3


def test_keys_are_not_among_the_facts() -> None:
    key = b"4eC39HqLyjWDarjtT1zdp7dc"
    read = FactReader().read("a.py", b"sk_live_%b = 1\ndef f_%b(): pass\n" % (key, key), "python")
    assert not [term for term in read.weights if "4ec39" in term.lower()]


def test_any_bytes_can_be_read_and_paths_that_are_no_text_too() -> None:
    read = FactReader().read("a\udcff\n/b.py", bytes(range(256)) * 3, "python")
    assert all(isinstance(term, str) and term.encode() for term in read.weights)
