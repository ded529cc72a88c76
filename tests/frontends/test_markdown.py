"""A command's reply as Markdown: what editors draw holds all of it, and nothing in it breaks out."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ybs.frontends.markdown import escaped, fenced, markdown_of, spanned
from ybs.session.reply import Column, Menu, MenuItem, Reply, Row, Table


def test_a_fence_is_longer_than_those_in_the_text():
    assert fenced("a\n```\nb", "diff") == "````diff\na\n```\nb\n````"
    assert fenced("line\n") == "```\nline\n```"


def test_the_signs_of_a_line_of_code_are_not_in_it():
    assert spanned("ls") == "`ls`"
    assert spanned("`ls` ``") == "``` `ls` `` ```"


def test_figures_stand_in_columns_and_cells_do_not_end_them():
    columns = (
        Column("text", "name"),
        Column("tokens", "tokens"),
        Column("usd", "cost"),
        Column("share"),
    )
    rows = (
        Row(("All",)),
        Row(("a|b\nc", 12_300, 0.5, 0.25)),
        Row(("part", None, None, None), level=1),
    )
    assert markdown_of(Reply(tables=(Table(columns, rows),))).split("\n") == [
        "| name | tokens | cost |  |",
        "| --- | --: | --: | --: |",
        "| **All** |  |  |  |",
        "| a\\|b c | 12k | $0.50 | 25% |",
        "| \u2003part |  |  |  |",
    ]


#: What hides something where it is drawn, and what such things are made of.
PIECES = st.sampled_from(
    [*"ab1 \\`*_[]<>&|$~:#+-=.)(!'\"/", "<!-- ", "-->", "](", "&amp;", "~~~", "```", "[a]: /u", "    ", "\n"]
)  # fmt: skip


def drawn(markdown: str) -> list[str]:
    """Return what a person sees of it, line by line."""
    seen: list[str] = []
    parser = HTMLParser()
    parser.handle_data = seen.append
    parser.feed(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown))
    return [" ".join(line.split()) for line in "".join(seen).split("\n") if line.strip()]


@pytest.mark.integration
@given(st.lists(PIECES, max_size=14).map("".join))
def test_no_word_of_a_reply_is_hidden_where_it_is_drawn(text: str):
    lines = [" ".join(line.split()) for line in text.split("\n") if line.strip()]
    if all(not line.startswith("    ") for line in text.split("\n")):
        assert drawn(markdown_of(Reply(text=text))) == lines
    one = " ".join(text.split())
    assert drawn(escaped(one)) == ([one] if one else [])
    menu = Menu("Menu", (MenuItem(one or "/x", one, one),))
    assert drawn(markdown_of(Reply(menu=menu)))[1:] == [
        " ".join(f"{one or '/x'} {one}{f': {one}' if one else ''}".split())
    ]
    table = Table((Column("text"), Column("text")), (Row((one, "x")),))
    assert one in " ".join(drawn(markdown_of(Reply(tables=(table,)))))


def test_text_menu_diff_and_notes_follow_each_other():
    items = (
        MenuItem("/mode ask", "ask", "asks", is_current=True),
        MenuItem("/mode auto", "auto"),
    )
    menu = Menu("Modes", items)
    reply = Reply(text="one\ntwo", menu=menu, diff="--- a", notes=("", "Choose one."))
    assert markdown_of(reply) == (
        "one  \ntwo\n\nModes:\n\n- **`/mode ask`** ask: asks\n- `/mode auto` auto\n\n"
        "```diff\n--- a\n```\n\n\nChoose one."
    )
    assert markdown_of(Reply()) == ""
