"""From a model's indentation to the file's: the rule that fits every line, or none where two would."""

from rows import every_row
from ybs.tools.editing.adapting import indentation_of, laid_out

SAME = "as it is"


@every_row(
    "old, new, missing, laid",
    [
        # Nothing is missing, or nothing that is indentation.
        ("a = 1", "a = 2\nb = 3", "", SAME),
        ("a = 1", "a = 2\nb = 3", "x ", SAME),
        ("\na = 1", "a = 2\nb = 3", "    ", SAME),
        ("a = 1", "\n\n", "    ", SAME),
        ("a = 1", "a = 2", "    ", SAME),
        # One old line: the others of the new text may lack as much, or nothing.
        ("a = 1", "a = 2\nb = 3", "    ", None),
        ("a = 1", "a = 2\n    b = 3", "    ", SAME),
        ("a = 1", "a = 2\n    b = 3\nc = 4", "    ", None),
        ("a = 1", "if a:\n    b = 3", "    ", "if a:\n        b = 3"),
        ("a = 1", "if a:\n    b = 3\n\n    c = 4", "    ", "if a:\n        b = 3\n\n        c = 4"),
        ("a = 1", "if a:\n        b = 3", "    ", SAME),
        ("a = 1", "if a:\n\tb = 3", "    ", None),
        ("  a = 1", "  a = 2\n  b = 3", "  ", "  a = 2\n    b = 3"),
        ("  a = 1", "  a = 2\n    b = 3", "  ", None),
        ("  a = 1", "  a = 2\n  \tb = 3", "  ", None),
        ("  a = 1", "a = 2\n  b = 3", "  ", None),
        ("  a = 1", "  a = 2\nb = 3", "  ", None),
        ("a = 1", "\na = 2", "    ", None),
        # Several old lines tell that only the first one lacks something.
        ("a:\n        b", "a:\n        c", "    ", SAME),
        ("a:\n        b", "b\n        c", "    ", None),
        ("a:\n        b", "a:\nc\n         d", "    ", None),
        ("a:\n        b", "a:\n    x\nc\n         d", "    ", None),
        ("a:\n        b", "a:\nc\n    d", "    ", SAME),
        ("a:\n        b", "a:\nc", "    ", SAME),
        ("a:\n        b\nend", "a:\nc\n         d", "    ", SAME),
        ("  a:\n        b", "  a:\n  c\n       d", "  ", None),
        ("  a:\n        b", "  a:\n  c\n    d", "  ", SAME),
    ],
)
def test_new_lines_are_laid_out_where_it_is_certain_what_they_lack(
    old: str, new: str, missing: str, laid: str | None
):
    assert laid_out(new, old, missing) == (new if laid == SAME else laid)


Answers = dict[str, str | None]


@every_row(
    "model, file, others, answers",
    [
        (["a", "  b"], ["a", "  b"], ["c"], {"": "", "   ": "   "}),
        # More or less in front of every line.
        (
            ["a", "  b"],
            ["    a", "      b"],
            ["    c"],
            {"": "    ", " ": "     ", "    ": " " * 8},
        ),
        (["    a", "      b"], ["a", "  b"], ["    c"], {"    ": "", "     ": " "}),
        (["    a"], ["  a"], [" c"], None),
        # Another width of each step, which two depths tell.
        (["a", "  b"], ["a", "    b"], ["c"], {"    ": " " * 8, " ": "  "}),
        (["a", "    b"], ["a", "  b"], ["c"], {" " * 8: "    ", " ": None}),
        (["  a"], ["    a"], ["  c"], {"  ": "    ", "": "  "}),
        # Tabs for spaces and the other way round.
        (["a", "    b"], ["a", "\tb"], ["c"], {" " * 8: "\t\t", " " * 6: "\t  "}),
        (["a", " " * 8 + "b"], ["a", "\tb"], ["c"], {" " * 16: "\t\t", "    ": "    "}),
        (["a", "   b"], ["a", "\tb"], ["c"], {" " * 6: "\t\t"}),
        (["a", "  b"], ["a", "\tb"], ["    c"], {"    ": "\t\t"}),
        (["a", "\tb"], ["a", "    b"], ["\t\tc"], {"\t\t": " " * 8}),
        (["a", "\tb"], ["a", "  b"], ["\t\tc"], {"\t\t": "    "}),
        (["    a", "        b"], ["a", "\tb"], ["    c"], {"    ": "", "  ": None}),
        (["    a"], ["\ta"], ["    c:", "      d"], {"      ": "\t\t"}),  # its own step is two
        (["    a"], ["\ta"], ["    c:", "     d"], {"        ": "\t\t"}),
        # Only the first line lacks something.
        (["a", "    b"], ["  a", "    b"], ["c"], {"    ": "    "}),
        (["a", "    b"], ["  a", "    b"], ["b"], None),
        # No rule.
        (["a", "  b", "c"], ["a", "   b", " c"], ["c"], None),
    ],
)
def test_one_rule_fits_every_line_of_a_block_or_none_is_used(
    model: list[str], file: list[str], others: list[str], answers: Answers | None
):
    rule = indentation_of(model, file, others)
    if answers is None or rule is None:
        assert (rule, answers) == (None, None)
        return
    assert {indent: rule.of(indent) for indent in answers} == answers
    assert rule.is_changed == (model != file)
