"""Lines that stand for left-out code are found, lines that only look like them are not."""

from rows import every_row
from ybs.tools.editing.placeholders import placeholder_in


@every_row(
    "line",
    [
        "# ... rest of the code ...",
        "    // ... existing code ...",
        "/* rest of file unchanged */",
        "<!-- rest of the document -->",
        "// unchanged",
        "# remaining methods as before",
        "-- ... other columns unchanged ...",
        "// (rest of the function remains the same)",
        "// rest of implementation...",
        "...",
        "\u2026",
        "[... existing code ...]",
        "{/* ... existing code ... */}",
        "# same as before",
        "// keep the existing imports",
    ],
)
def test_a_placeholder_is_found(line: str):
    new = f"first = 1\n{line}\nlast = 2\n"
    assert placeholder_in(new, old="first = 0\n", text="first = 0\nlast = 2\n") == line.strip()
    if line != "...":
        assert placeholder_in(new, old=new, text=new) == ""


@every_row(
    "text",
    [
        "def f(self) -> int:\n    ...\n",
        'def f(self):\n    """Say."""\n    ...\n',
        "call(...args)\nconst a = [\n  ...rest,\n  ...other\n];\n",
        "The rest of the code is described below.\n",
        "# the rest of the list is sorted by name, so stop here\n",
        "// other threads may still be running\n",
        "# keep the socket open\n",
        ">>> for x in y:\n...     print(x)\n...\n",
        "x = tuple[int, ...]\n",
        "# existing users keep their password\n",
        "  // unchanged files are skipped\n",
        "# Loading...\n",
    ],
)
def test_ordinary_text_is_no_placeholder(text: str):
    assert placeholder_in(text, old="", text="") == ""


def test_a_line_that_the_file_holds_is_its_own():
    assert placeholder_in("# unchanged\n", old="x\n", text="x\n# unchanged\n") == ""


def test_dots_are_code_in_a_doctest_only():
    assert placeholder_in(">>> call(1,\n...\n... 2)\n", old="", text="") == ""
    assert placeholder_in("first >>>\n...\n", old="", text="") == "..."


def test_a_long_line_stands_for_nothing():
    for size in (200, 201):
        line = "# ... existing code ...".ljust(size)
        assert bool(placeholder_in(line, old="", text="")) == (size == 200)
