"""How requests are sorted into kinds of task."""

from rows import every_row
from ybs.router.classifier import Features, KeywordClassifier

TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 3'


@every_row(
    "words, kind",
    [
        ("Fix the crash when the file is empty", "fix"),
        (f"What is this?\n{TRACE}", "fix"),
        ("the login doesn't work any more", "fix"),
        ("Write unit tests for parser.py", "test"),
        ("add a test that covers the empty list", "test"),
        ("Rename Foo to Bar everywhere", "refactor"),
        ("split this module in two and simplify it", "refactor"),
        ("Update the README to mention the new flag", "docs"),
        ("explain how the loop works", "explain"),
        ("Where is the configuration read?", "explain"),
        ("Add an option --json to the list command", "write"),
        ("implement a cache for the search", "write"),
        ("commit this and push it", "operate"),
        ("Propose a design for the new storage", "plan"),
        ("Explain the error in the log", "explain"),
        ("run the tests", "operate"),
        ("clean up the imports", "refactor"),
        ("see notes.md and guide.rst", "docs"),
        ("log line\n" * 500 + "please fix that", "fix"),
        ("yes", "other"),
        ("", "other"),
        ("mach weiter", "other"),
    ],
)
def test_a_request_is_sorted_by_its_words(words: str, kind: str) -> None:
    assert KeywordClassifier().kind_of(Features.of(words)) == kind


def test_features_are_what_the_words_show() -> None:
    text = f"look at src/a.py, b.test.TS and notes\n{TRACE}" + "x" * 5_000
    found = Features.of(text, tokens=7, tools=["grep"], image_count=1, turn=3)
    assert found.file_types == ("py", "ts")
    assert (found.length, len(found.words)) == (len(text), 4_001)
    assert found.has_error_trace
    assert (found.tokens, found.tools, found.image_count, found.turn) == (7, ("grep",), 1, 3)


@every_row(
    "text, is_trace",
    [
        ("thread 'main' panicked at src/main.rs:4", True),
        ("error[E0382]: borrow of moved value", True),
        ("    at foo (/a/b.js:3:4)", True),
        ("FAILED tests/test_a.py::test_b", True),
        ("java.lang.NullPointerException: null", True),
        ("panic: oh\n\ngoroutine 1 [running]:", True),
        ("please handle errors better", False),
        ("raise a ValueError there", False),
        ("look at this: it raises ValueError: 3", False),
    ],
)
def test_error_traces_are_recognised(text: str, *, is_trace: bool) -> None:
    assert Features.of(text).has_error_trace is is_trace
