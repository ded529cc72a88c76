"""A session's name, made of its first exchange."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.transcripts.title import LONGEST, title_of


@every_row(
    "words, answer, title",
    [
        ("Fix the login of the shop", "Sure!", "Fix the login of the shop"),
        ("please fix the login form. It is broken.", "", "Fix the login form"),
        ("Hi! Can you please add a test for coupons?", "", "Add a test for coupons?"),
        ("Hello there, could you help me to write a parser", "", "Write a parser"),
        ("hey\n\nI'd like you to rename the module, please", "", "Rename the module"),
        ("ok so now: sort the imports thanks", "", "Sort the imports"),
        ("src/app.py does not start, why?", "", "src/app.py does not start, why?"),
        ("what is in v1.2.3 of config.json?", "", "What is in v1.2.3 of config.json?"),
        ("the thing\twith   spaces \x1b[31mred\x1b[0m", "", "The thing with spaces red"),
        ("Helloworld prints nothing here", "", "Helloworld prints nothing here"),
        ("сделай, пожалуйста, тесты", "", "Сделай, пожалуйста, тесты"),
        ("请修复登录表单的错误。谢谢", "", "请修复登录表单的错误"),
        ("sort the imports", "I sorted them.", "Sort the imports"),
        (
            "The cart is wrong for two coupons. Find out why and fix it.",
            "",
            "Find out why and fix it",
        ),
        (
            "I was looking at src/a.py yesterday, can you rename parse() to read()?",
            "",
            "Rename parse() to read()?",
        ),
        ("In a.py there is a loop over all rows; please make it lazy.", "", "Make it lazy"),
        (
            "We have users who pay late. The mails go out twice. Why is that so?",
            "",
            "Why is that so?",
        ),
        ("Look at src/a.py first.\nThen we talk: add a test for it", "", "Add a test for it"),
        ("Fix the login. Can you also add a test for it?", "", "Fix the login"),
        ("the build is red", "I see.", "The build is red"),
        ("fix it", "I mended the parser. It works.", "Fix it: I mended the parser"),
        ("refactoring", "Which part do you mean?", "Refactoring: Which part do you mean?"),
        ("请修复登录表单的错误", "好的", "请修复登录表单的错误"),
        ("修复登录表单错误", "好的", "修复登录表单错误"),
        ("为什么", "因为缓存过期了", "为什么: 因为缓存过期了"),
        ("... and now fix the login. It is broken.", "", "... and now fix the login"),
        ("! fix the login of the shop", "Sure!", "! fix the login of the shop"),
        ("why?", "Sure, the **cache** is `stale`.", "Why: the cache is stale"),
        ("hi", "Hello! How can I help you today?", "How can I help you today?"),
        ("hi", "## Plan\n\n1. first", "Plan"),
        ("hi", "", ""),
        ("", "", ""),
        ("?!", "...", ""),
        ("go on", "", "Go on"),
    ],
)
def test_a_title_says_what_it_is_about(words: str, answer: str, title: str):
    assert title_of(words, answer) == title


def test_no_way_to_be_polite_is_part_of_the_title():
    greetings = [
        f"{hi}{to}"
        for hi in ("Hi", "hello", "hey", "Good morning", "good evening")
        for to in ("", " there", " again", " ybs")
    ]
    asked = [
        f"{may} you{how}"
        for may in ("Can", "could", "would", "will")
        for how in ("", " please", " kindly", " help me", " help me to")
    ]
    wished = [
        f"{want} you to"
        for want in ("I want", "I need", "I would like", "I'd like", "I\u2019d like")
    ]
    others = "sure,sure thing,of course,certainly,great,okay,ok,thanks,thank you,please,kindly,now,so,well,also"
    more = ["can I ask you to", "could I ask you to", "may I ask you to", "help me", "help me to"]
    for polite in (*greetings, *asked, *wished, *others.split(","), *more):
        for words in (
            f"{polite} sort the imports",
            f"{polite.upper()}, sort the imports, please",
            f"{polite}: sort the imports THANKS",
            f"{polite} - sort the imports thank you",
        ):
            assert title_of(words, "") == "Sort the imports", words


def test_a_long_title_ends_at_a_word():
    words = "Rewrite the whole of the authentication middleware so that it keeps tokens"
    assert title_of(words, "") == "Rewrite the whole of the authentication middleware so that…"
    words = "Rewrite all of the authentication middleware so that it keeps tokens"
    assert title_of(words, "") == "Rewrite all of the authentication middleware so that it…"
    # But not where that would leave half of it out.
    assert title_of("X" * 30 + " " + "y" * 100, "") == "X" * 30 + " " + "y" * 28 + "…"
    assert title_of("X" * 31 + " " + "y" * 100, "") == "X" * 31 + "…"
    assert title_of("X" * 100, "y") == "X" * 59 + "…"
    assert title_of("Go on " + "x" * 54, "y") == "Go on " + "x" * 54


@pytest.mark.integration
@given(st.text(), st.text())
def test_a_title_is_one_short_line_of_anything(words: str, answer: str):
    title = title_of(words, answer)
    assert len(title) <= LONGEST
    assert len(title.splitlines()) <= 1
    assert title == title.strip()


def test_a_prompt_of_a_megabyte_is_no_work():
    assert len(title_of("please " * 200_000, "please " * 200_000)) < 20
    assert title_of("A" * 1_000_000, "").startswith("AAA")
