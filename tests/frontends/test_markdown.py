"""A command's reply as Markdown: what editors draw holds all of it, and nothing in it breaks out."""

from ybs.frontends.markdown import fenced, markdown_of
from ybs.session.reply import Column, Menu, MenuItem, Reply, Row, Table


def test_a_fence_is_longer_than_those_in_the_text():
    assert fenced("a\n```\nb", "diff") == "````diff\na\n```\nb\n````"
    assert fenced("line\n") == "```\nline\n```"


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
