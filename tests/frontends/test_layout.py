"""Answers of commands are data; here they become lines."""

import msgspec

from rows import every_row
from ybs.frontends.layout import lines_of
from ybs.session.reply import Column, Menu, MenuItem, Reply, Row, Table

FIGURES = Table(
    (Column("count"), Column("share"), Column("tokens", "in"), Column("words")),
    (Row(("m",)), Row((1, 1.0, 9_200, "mend the lamp")), Row((None, None, 12, "all"))),
)
SHARES = Table(
    (Column(), Column("estimate"), Column("share"), Column("note")),
    (Row(("tools", 1_200, 0.75, "eleven")), Row(("shell", 300, 0.25, ""), level=1)),
)


def test_plain_tables_stand_in_columns_that_all_of_them_share() -> None:
    tables = (Table.of([("/a", "one"), ("/longer", "two")]), Table.of([("!x", "three")]))
    assert lines_of(Reply(tables=tables, notes=("", "end")), 80) == [
        *("  /a       one", "  /longer  two", "", "  !x       three", "", "end"),
    ]


def test_text_stands_above_tables_and_notes_below() -> None:
    reply = Reply(text="head\nmore", tables=(Table.of([("a", "b")]),), notes=("last",))
    assert lines_of(reply, 80) == ["head", "more", "  a  b", "last"]
    assert lines_of(Reply(), 80) == []


def test_words_stand_beside_the_figures_or_above_them() -> None:
    assert lines_of(Reply(tables=(FIGURES,)), 80) == [
        "             in",
        "    m",
        "  1 █████  9.2k  mend the lamp",
        "             12  all",
    ]
    assert lines_of(Reply(tables=(FIGURES,)), 39) == [
        *("         in", "    m", "  1 mend the lamp", "█████  9.2k", "    all", "         12"),
    ]


def test_a_bar_at_the_end_takes_the_rest_and_a_note_goes_where_there_is_no_room() -> None:
    wide, narrow = (lines_of(Reply(tables=(SHARES,)), width) for width in (80, 39))
    assert wide[0].startswith(" tools       ~1,200 ███")
    assert wide[0][40:] == "eleven"
    assert wide[1].startswith("   shell       ~300 ███")
    assert narrow[0] == wide[0][:38].rstrip()
    assert max(map(len, narrow)) <= 38


def test_without_bars_shares_are_in_percent() -> None:
    assert [line.split() for line in lines_of(Reply(tables=(SHARES,)), 80, has_bars=False)] == [
        ["tools", "~1,200", "75%", "eleven"],
        ["shell", "~300", "25%"],
    ]


@every_row(
    ("is_numbered", "lines"),
    [
        (True, ["Which:", "* 1  a    now", "  2  bcd"]),
        (False, ["Which:", "  /x a  a: now", "  /x b  bcd: "]),
    ],
)
def test_a_menu_is_listed(is_numbered: bool, lines: list[str]) -> None:
    items = (
        MenuItem("/x a", "a", "now", is_current=True),
        MenuItem("/x b", "bcd"),
    )
    menu = Menu("Which", items, is_numbered=is_numbered)
    assert lines_of(Reply(menu=menu), 80) == lines


def test_the_same_is_data_for_a_program() -> None:
    line = msgspec.json.encode(SHARES.rows[1])
    assert line == b'{"cells":["shell",300,0.25,""],"level":1}'
