"""One word of a sentence may be told wrong, in what goes and in what stays; a word of code never."""

from rows import every_row
from ybs.tools.editing.matcher import EditMatch, find
from ybs.tools.editing.one_word import word_at

ABOVE, BELOW = "first_call(1)\n", "last_call(2)\n"


def edited(text: str, old: str, new: str) -> str:
    """Return the text after the edit, or why there is none."""
    found = find(text, old, new)
    if not isinstance(found, EditMatch):
        return found.reason
    (place,) = found.places
    return text[: place.start] + place.new + text[place.stop :]


@every_row(
    ("line", "right", "wrong"),
    [
        ("x = 1  # add the prices of all items", "prices", "costs"),
        ("x = 1;  // we do not know (or care)", "care", "mind"),
        ("#include <a.h>  /* the generated header file */", "generated", "usual"),
        ('// Do not free "input" as others own it', "others", "other"),
        ("-- every row of the table", "every", "each"),
        ("print('hello to all of them')", "hello", "goodbye"),
        ('say("no files were found:")', "found", "seen"),
        ('say(f"no files in {place} were found")', "files", "file"),
        ("throw Error('The `GET` method cannot have a body');", "method", "verb"),
        ("throw Error(`the name must be a string, got ${name}`);", "string", "word"),
        ("If you need more of them, run it again with a number.", "number", "count"),
        ("- See [the guide](https://example.org/a#b) for more of this.", "more", "other"),
        (" * Added static methods and removed others", "static", "static_"[:-1] + "s"),
        ("1. Find out whether it works for large files", "large", "big"),
        ("> Powerful and friendly request library", "friendly", "kind"),
        ('"""Return the sum of all prices."""', "prices", "costs"),
    ],
)
def test_a_word_of_a_sentence_is_overlooked(line: str, right: str, wrong: str):
    whole = f"# Some words of comment\n// Some words of comment\n-- Some words of it\n{ABOVE}{line}\n{BELOW}"
    old = f"{ABOVE}{line.replace(right, wrong)}\n{BELOW}"
    assert edited(whole, old, old.replace("2", "3")) == whole.replace("(2)", "(3)")
    assert edited(whole, old, ABOVE + BELOW) == whole.replace(f"{line}\n", "")


@every_row(
    ("line", "right", "wrong"),
    [
        ("return a if b is not None else c", "None", "True"),
        ("for x in items if y and z", "items", "things"),
        ("names['the price of it']", "price", "price_"),
        ('sql = "SELECT name FROM orders of the day"', "orders", "users"),
        ('say(f"the files in {place} were found")', "place", "folder"),
        ("say(`cmd one two three`)", "one", "on"),
        ("run `the command of it` now", "run", "runs"),
        ("key = 'two words'", "words", "names"),
        ("x = a.the_value of it", "the_value", "the_values"),
        ("value := compute(the thing)", "compute", "computes"),
        ("if the.user == other of them", "other", "others"),
        ("set the value of it = 5;", "value", "name"),
        ("the value of this -> that", "value", "name"),
        ("# +build linux and darwin of the", "linux", "windows"),
        ("call(1) # note", "note", "hint"),
        ("only three words", "three", "four"),
    ],
)
def test_a_word_of_code_is_not_overlooked(line: str, right: str, wrong: str):
    text = f"{ABOVE}{line}\n{BELOW}"
    old = text.replace(right, wrong)
    assert edited(text, old, old.replace("2", "3")) == "absent"


COMMENTS = "# Some words of comment\n// Some words of comment\n"


@every_row(
    ("above", "line", "below"),
    [
        (COMMENTS, "x = 1;  // they ask (large or not) for it\n", ""),
        (COMMENTS, "x = 1 # take large files\n", ""),
        (COMMENTS, "/* take large files too */\n", ""),
        (COMMENTS, "x = 1;  /* take files that are large*/\n", ""),
        ("", "every row of the table is large\n", ""),
        ("", "large of them\n", ""),
        (COMMENTS, "say(f'files of {one} and large size there')\n", ""),
        ("", "(every large row of the table is here)\n", ""),
        ("", "Run `x()` and see which of them are large, then call `y()` again\n", ""),
        ("", "# take large files too\n", ""),
        ("", "large files of the user `y()`\n", ""),
        ("", "`y()` keeps what the user calls large\n", ""),
        ('def f():\n    """One.\n\n', "    Takes large files too\n", '    """\n'),
        ('"""One.\n\nIt\'s # not all "here" // so\n', "Takes large files too\n", '"""\n'),
        ('/* it\'s "one" # thing\n * // all of it\n', " * Takes large files\n", " */\n"),
    ],
)
def test_a_word_is_one_of_a_sentence_by_what_stands_around_it(above: str, line: str, below: str):
    text = f"{above}{line}{ABOVE}{BELOW}{below}"
    old = text.replace("large", "big")
    assert edited(text, old, old.replace("(2)", "(3)")) == text.replace("(2)", "(3)")


@every_row(
    ("above", "line"),
    [
        (COMMENTS, "x = 1 # large files\n"),
        (COMMENTS, "x = 1# take large files too\n"),
        (COMMENTS, "x = '# take large files too\n"),
        (COMMENTS, "'x = # take large files too\n"),
        (COMMENTS, "# +take large files too\n"),
        (COMMENTS, "# @take large files too\n"),
        (COMMENTS, "call(); /* take it */ large files too\n"),
        (COMMENTS, "say(f'files of {large size} there')\n"),
        (COMMENTS, "say('files `of large size` there')\n"),
        ("", "x = 1 # take large files too\n"),
        ("", "`x()` large files `y()` of these parts\n"),
        ("", "a_b large of\n"),
        ("", "large of `y()` it\n"),
        ("", '"""A b c.""" if large else x\n'),
        ("", '"""large files."""\n'),
        ("/*\n * one\n", "   do files */ large(of the rest)\n"),
        ("/*\n * one\n */\n", "take large files too\n"),
        ('def f():\n    """One."""\n', "    take large files too\n"),
        ('"""One\'s own /* thing."""\n', "take large files too\n"),
        ('x = "/* not a comment"\n', "take large files too\n"),
        ('x = 1 // it\'s """ not a text\n', "take large files too\n"),
    ],
)
def test_a_word_is_one_of_code_by_what_stands_around_it(above: str, line: str):
    text = f"{above}{line}{ABOVE}{BELOW}"
    old = text.replace("large", "big")
    assert edited(text, old, old.replace("(2)", "(3)")) == "absent"


@every_row(
    ("text", "old", "reason"),
    [
        ("# the sum of it\n", "# the total of it\n", "absent"),  # too short to be sure
        ("# the sum of it\nx = 1\n", "# the total of it\nx = 1\n", "absent"),
        ("# add the sum of it up\nx = 1\n", "# add the total of it up\nx = 1\n", "absent"),
        (
            "# add the prices of all the items in there\ny\n# add the costs of all the items in there\n",
            "# add the weights of all the items in there\n",
            "ambiguous",
        ),
        (
            "# add the prices of all the items in there\nx = 1\nz = 2\n\n# add the costs of all the items in there\nx = 1\nz = 3\n",
            "# add the weights of all the items in there\nx = 1\nz = 2\n",
            "ambiguous",
        ),
        (  # half of the words of another place are the same
            "# add the prices of it\nx_name = 1\nz_name = 2\n\n# add the y1 y2 y3\nx_name = 1\nz_name = 2\n",
            "# add the costs of it\nx_name = 1\nz_name = 2\n",
            "ambiguous",
        ),
        (
            "# add the prices of all of the items\n" * 300,
            "# add the costs of all of the items\n",
            "absent",
        ),
        (
            "# Some words\n# add the prices of all\n",
            "# add the prices of alls\n# add more\n",
            "absent",
        ),
    ],
)
def test_a_place_in_doubt_is_refused(text: str, old: str, reason: str):
    assert edited(text, old, "x = 2\n") == reason


def test_one_line_is_enough_that_has_two_dozen_letters_beside_the_word():
    told = "# add the total of all the items in {}\n"
    for rest, is_enough in (("ab", False), ("abc", True)):
        text = told.replace("total", "sum").format(rest)
        assert edited(text, told.format(rest), "x = 2\n") == ("x = 2\n" if is_enough else "absent")


def test_a_short_block_has_to_say_enough():
    text = "# Some words\n# add the prices of all the items in there\nx = 1\n"
    line, told = (
        "# add the prices of all the items in there\n",
        "# add the costs of all the items in there\n",
    )
    assert edited(text, told, "# Add.\n") == text.replace(line, "# Add.\n")
    assert edited(text, f"{told}x = 1\n", "y = 1\n") == text.replace(f"{line}x = 1\n", "y = 1\n")
    other = "\n# add the prices of something else\nx = 1\n}\n"
    assert edited(text + other, f"{told}x = 1\n", "y = 1\n") == (text + other).replace(
        f"{line}x = 1\n", "y = 1\n"
    )


def test_lines_that_share_little_cast_no_doubt():
    near = "# add the prices of it\nx_name = 1\nz_name = 2\n"
    far = "\n# add y0 y1 y2 y3\nx_name = 1\nz_name = 2\n"
    assert edited(near + far, near.replace("prices", "costs"), "x\n") == f"x\n{far}"
    text = "a {\n  run_every(one)\n}\n# add the prices of all\nblock {\n}\nother {\n  run(two)\n}\n"
    old = "# add the costs of all\nblock {\n}\n"
    assert edited(text, f"  run_every(one)\n}}\n{old}", "x\n").count("x\n") == 1
    assert edited(text, "}\n" + old, "}\nx\n") != "ambiguous"


def test_the_models_word_does_not_get_into_the_file():
    text = "# Some words of it\nx = 1  # add the prices up\ny = 1\nz_name = 2\n"
    old = "x = 1  # add the costs up\ny = 1\nz_name = 2\n"
    assert edited(text, old, old.replace("x = 1", "x = 2")) == "absent"
    assert edited(text, old, old.replace("y = 1", "y = 2")) == text.replace("y = 1", "y = 2")


@every_row("inside", ['"""', "'''"])
def test_words_of_a_long_string_are_overlooked_but_not_those_behind_it(inside: str):
    text = f"{inside}Say it.\n\nReturns the sum that was found\n{inside}; of = one_call(a)\nmore_calls(b)\n"
    assert edited(
        text, text.replace("sum", "total"), text.replace("(b)", "(c)").replace("sum", "total")
    ) == text.replace("(b)", "(c)")
    assert edited(text, text.replace("of =", "off ="), "x") == "absent"


def test_lines_that_begin_alike_do_not_hide_the_one_that_is_meant():
    line = "# add the prices of all the items that are in there\n"
    text = line + "".join(f"# add the prices {number}\n" for number in range(300))
    assert edited(text, line.replace("items", "things"), "x = 2\n") == text.replace(line, "x = 2\n")


def test_a_place_that_differs_in_three_lines_casts_no_doubt():
    block = "# add the {} of all\none = a + {}\ntwo = b + {}\nthird_call(3)\nfourth_call(4)\nlast_call(5)\n"
    text = block.format("prices", 1, 2) + "\n" + block.format("taxes", 7, 8)
    told = block.format("costs", 1, 2)
    assert edited(text, told, "x = 2\n") == "x = 2\n\n" + block.format("taxes", 7, 8)


@every_row(
    "line, is_word",
    [
        ("the <care> of it", True),
        ("<care>", True),
        ("(<care>)", True),
        ("the (<care>) of", True),
        ("the (of <care>) x", True),
        ("the (<care>, it) x", True),
        ("do not <care>.", True),
        ("do not <care>: it", True),
        ("'the <care>.'", True),
        ("the (<care>). It", True),
        ("the (<care>): it", True),
        ("(the <care>.) It", True),
        ("the <care>...", True),
        ("the (<care>)_ x", False),
        ("the (<care>).x", False),
        ("call(<care>) x", False),
        ("the (<care> x", True),
        ("the <care>) x", False),
        ("the <care>.x", False),
        ("the <care>:x", False),
        ("the $<care> x", False),
        ("the <care>2 x", False),
        ("a=<care> x", False),
        ("x/<care> x", False),
        ("x[<care>] x", False),
    ],
)
def test_a_word_stands_between_spaces_or_in_brackets_of_a_sentence(line: str, is_word: bool):
    start, stop = line.index("<"), line.index(">") - 1
    text = line.replace("<", "").replace(">", "")
    assert word_at(text, start, stop) == ((start, stop) if is_word else None)


def test_a_part_of_a_word_means_the_whole_word_and_one_of_two_words_none():
    assert word_at("do take care", 4, 6) == (3, 7)
    assert word_at("do take care", 3, 3) == (3, 7)
    assert word_at("do take care", 5, 9) is None
    assert word_at("it is well-known to all", 6, 10) == (6, 16)
