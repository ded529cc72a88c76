"""Which files a request is about."""

from rows import every_row
from ybs.small_models.read_ahead import files_about, lines_of, paths_of, pattern_of

LISTED = ["docs/ports.md", "src/server.py", "src/user_form.py", "notes.txt"]


@every_row(
    "terms, found, files",
    [
        # A word that fewer files have says more; one in a path says more than one in a line.
        (["port"], {"src/server.py": ["port = 1"]}, ["docs/ports.md"]),
        (["port", "timeout"], {"src/server.py": ["port, timeout"]}, ["src/server.py"]),
        (["form"], {}, ["src/user_form.py"]),
        (["user_form"], {}, ["src/user_form.py"]),
        (
            ["milk"],
            {"notes.txt": ["Milk"], "src/server.py": ["milk"]},
            ["notes.txt", "src/server.py"],
        ),
        # Within a word it says nothing.
        (["ort"], {"src/server.py": ["port = 1"]}, []),
        (["milk"], {}, []),
        ([], {"notes.txt": ["milk"]}, []),
        (["a(b"], {"notes.txt": ["call a(b)"]}, ["notes.txt"]),
    ],
)
def test_the_files_that_go_best_with_the_words(terms, found, files):
    assert files_about(terms, LISTED, found) == files


def test_what_tools_print_is_read():
    assert paths_of("a.txt\nb/c.py\n[2 of 9 files shown; narrow the pattern]") == [
        "a.txt",
        "b/c.py",
    ]
    assert paths_of("No files match.\nFolders: a/ b/") == []
    printed = "a.txt\n 3:\tmilk: 2\n 12:\tx\nb c.py\n1:\tmilk\n[3 of 9 matches in 4 files shown; narrow it]"
    assert lines_of(printed) == {"a.txt": ["milk: 2", "x"], "b c.py": ["milk"]}
    assert lines_of("No matches.") == {}
    assert pattern_of(["a.b", "c"]) == r"\b(?:a\.b|c)"
    assert pattern_of(["@Test", "c"]) == r"\b(?:c)|@Test"
    assert paths_of("[slug].tsx\nNo way.md") == ["[slug].tsx", "No way.md"]
    assert lines_of("1:\tstray\n[slug].tsx\n1:\tmilk") == {"[slug].tsx": ["milk"]}
