import pytest

from timing import takes_at_most
from ybs.repo_map.rank import MOST_NAMES, MOST_TERMS, MOST_TIMES, Query, read_query


def test_a_request_without_words_asks_for_nothing() -> None:
    for text in ("", " \n\t", "?!... --- ///", "the of and to", "\0\1\x1b[31m"[:2]):
        found = read_query(text)
        assert (found.terms, found.first, found.names) == ({}, {}, frozenset()), text


def test_words_of_the_first_line_are_told_apart_and_come_in_all_terms() -> None:
    found = read_query("Parse dates in the header\n\nThe parser failed.\nparsing, parsed, parses")
    assert set(found.first) < set(found.terms)
    assert any(stem.startswith("head") for stem in found.first)
    assert any(stem.startswith("fail") for stem in found.terms.keys() - found.first.keys())
    assert max(found.terms.values()) <= MOST_TIMES
    assert found.first == read_query("Parse dates in the header").terms


def test_names_and_paths_are_taken_as_they_are_written() -> None:
    cases: dict[str, set[str]] = {
        "`load` fails in read_config when HTTPServer calls open(path)": {
            "load",
            "read_config",
            "HTTPServer",
            "open",
        },
        "Fix the build of Things": set(),
        "self._private_name and __init__": {"_private_name"},
        "camelCase, PascalCase and kebab-case": {"camelCase", "PascalCase"},
        "GrößeÄndern() größe_ändern": {"größe_ändern", "GrößeÄndern"},
    }
    found = {text: set(read_query(text).names) for text in cases}
    assert found == cases
    seen = read_query("See ./src/App/Main.tsx, setup.py and e.g. docs/guide/. Done.")
    assert {"src/app/main.tsx", "setup.py"} <= seen.paths


def test_addresses_and_who_signed_are_not_what_it_is_about() -> None:
    plain = read_query("Close the socket")
    noisy = read_query(
        "Close the socket\n\nSee https://example.com/issues/socket_factory.py?x=1\n"
        "Signed-off-by: Ada Writer <ada@writer.example>\nCo-authored-by: Bob <bob@x.example>"
    )
    assert noisy.paths == noisy.names == plain.names == frozenset()
    assert noisy.terms.keys() - plain.terms.keys() <= {"see", "se"}


def test_it_hears_tests_and_documents() -> None:
    heard = {
        text: (read_query(text).speaks_of_tests, read_query(text).speaks_of_documents)
        for text in ("Add tests", "A test for it", "latest contest", "Update README", "fix typos")
    }
    assert heard == {
        "Add tests": (True, False),
        "A test for it": (True, False),
        "latest contest": (False, False),
        "Update README": (False, True),
        "fix typos": (False, False),
    }


def test_other_alphabets_have_words_too() -> None:
    for text in ("исправить разбор даты", "日付の解析を修正する", "διόρθωση σφάλματος"):
        assert read_query(text).terms, text


@pytest.mark.integration
@pytest.mark.parametrize("unit", ["word%d other_%d ", "a.", "/", "`x", "A", "a@", "x-", "_a"])
def test_a_request_of_100_kilobytes_is_read_in_no_time(unit: str) -> None:
    text = "".join(unit.replace("%d", str(each)) for each in range(100_000 // len(unit)))
    with takes_at_most(0.5):
        found = read_query(text)
    assert isinstance(found, Query)
    assert len(found.terms) <= MOST_TERMS
    assert max(len(found.names), len(found.paths)) <= MOST_NAMES
