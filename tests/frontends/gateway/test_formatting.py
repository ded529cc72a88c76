"""Markdown in the dialects of chats, in messages that fit."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_platform import Markup
from ybs.frontends.gateway.channel import Capabilities
from ybs.frontends.gateway.formatting import formatted, literal

ZERO = "\u200b"
DIALECTS = ("plain", "telegram-html", "discord", "whatsapp", "slack", "matrix-html")


def capabilities(dialect: str = "telegram-html", length: int = 4096) -> Capabilities:
    unit = "utf16" if dialect == "telegram-html" else "characters"
    return Capabilities(length=length, unit=unit, dialect=dialect)  # pyright: ignore[reportArgumentType]


def html(markdown: str, length: int = 4096) -> list[str]:
    return [each.text for each in formatted(markdown, capabilities(length=length))]


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


# Telegram


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("a **b** *c* ~~d~~ `e<`", "a <b>b</b> <i>c</i> <s>d</s> <code>e&lt;</code>"),
        ("# Head\n\ntext", "<b>Head</b>\n\ntext"),
        ("**a `b` c**", "<b>a </b><code>b</code><b> c</b>"),
        ('[x](https://a.b/?c=1&d="2")', '<a href="https://a.b/?c=1&amp;d=%222%22">x</a>'),
        ("- a\n- b\n  1. c", "\u2022 a\n\u2022 b\n  1. c"),
        ("> a\n>\n> b", "<blockquote>a\n\nb</blockquote>"),
        ("```py\nx < 1\n```", '<pre><code class="language-py">x &lt; 1</code></pre>'),
        ("    code", "<pre>code</pre>"),
        ("| a | bb |\n|---|---|\n| ccc | d |", "<pre>a    bb\n---  --\nccc  d</pre>"),
        ("<b>no tag</b> &amp;", "&lt;b&gt;no tag&lt;/b&gt; &amp;"),
        ("a\n\n---\n\nb", "a\n\n\u2014\u2014\u2014\n\nb"),
        ("", "(empty)"),
    ],
)
def test_markdown_becomes_the_html_of_telegram(markdown: str, text: str) -> None:
    assert html(markdown) == [text]


def test_dialects_write_the_same_marks_in_their_own_signs() -> None:
    markdown = "**b** *i* [x](https://a.b)\n\n> q\n\n```py\n1\n```"
    texts = {each: formatted(markdown, capabilities(each))[0].text for each in DIALECTS}
    assert texts["plain"] == "b i x (https://a.b)\n\n> q\n\n1"
    assert texts["discord"] == "**b** *i* [x](<https://a.b>)\n\n> q\n\n```py\n1\n```"
    assert texts["whatsapp"] == "*b* _i_ x (https://a.b)\n\n> q\n\n```\n1\n```"
    assert texts["slack"] == "*b* _i_ <https://a.b|x>\n\n> q\n\n```\n1\n```"
    assert texts["matrix-html"].startswith('<b>b</b> <i>i</i> <a href="https://a.b">x</a><br>')


def test_a_literal_text_is_shown_as_it_is() -> None:
    words = "Run `rm *_a_*` [x](y) <b> # 1. & ~~z~~ \\"
    assert formatted(literal(words), capabilities("plain"))[0].text == words


# What pings


@pytest.mark.parametrize(
    "words",
    ["@name", "hey @everyone!", "a.@here", "@**name**", "(@name)", "**x**@name", "\u00e9@name"],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_that_a_model_says_pings_anybody(words: str, dialect: str) -> None:
    for message in formatted(words, capabilities(dialect)):
        for text in (message.text, message.plain):
            assert not re.search(r"(?<![A-Za-z0-9_])@[\w<*]", text)


def test_code_keeps_its_signs_where_the_platform_finds_no_names_in_it() -> None:
    message = formatted("`@property`", capabilities())[0]
    assert message.text == "<code>@property</code>"
    assert message.plain == f"@{ZERO}property", "without markup it would be a name"


def test_addresses_of_mails_stay_whole() -> None:
    assert html("write to ann@example.org") == ["write to ann@example.org"]


@pytest.mark.parametrize(
    "link", ["tg://user?id=1", "TG://user?id=1", "javascript:x", "tg://resolve?domain=x"]
)
def test_links_lead_to_the_web_or_nowhere(link: str) -> None:
    (text,) = html(f"[Ann]({link}) <{link}>")
    assert "<a" not in text
    assert not re.search("tg://", text, re.IGNORECASE)


def test_signs_of_slack_that_call_somebody_are_only_text() -> None:
    text = formatted("<!channel> <@U123>", capabilities("slack"))[0].text
    assert "<" not in text


# Messages that fit


def test_a_code_block_that_is_cut_is_closed_and_opened_again() -> None:
    lines = [f"line {number}" for number in range(60)]
    texts = html("before\n\n```py\n" + "\n".join(lines) + "\n```\n\nafter", length=300)
    opening = '<pre><code class="language-py">'
    inner = [each for each in texts if opening in each]
    assert len(inner) >= 2
    assert all("</code></pre>" in each for each in inner)
    code = "\n".join(re.findall(f"{opening}(.*?)</code></pre>", "\n".join(texts), re.DOTALL))
    assert code.split("\n") == lines


def test_a_code_block_that_fits_is_not_cut() -> None:
    texts = html("word " * 40 + "\n\n```\n" + "x" * 150 + "\n```", length=300)
    assert [("<pre>" in each) for each in texts] == [False, True]


def test_long_text_is_cut_between_paragraphs_lines_or_words() -> None:
    texts = html("\n\n".join(["some words in a paragraph"] * 20), length=200)
    assert all(each.startswith("some") and each.endswith("paragraph") for each in texts)
    words = html(" ".join(["word"] * 200), length=200)
    assert {each for text in words for each in text.split(" ")} == {"word"}


def test_the_length_is_counted_as_telegram_counts_it() -> None:
    texts = html("\U0001f600" * 3000)
    assert len(texts) == 2
    assert all(units(each) <= 4096 for each in texts)


def test_an_address_is_not_cut_before_its_sign() -> None:
    for length in range(200, 230):
        for text in html("x" * 190 + "a@name" * 20, length=length):
            assert not text.startswith("@")


@pytest.mark.integration
def test_a_giant_text_is_sent_without_being_parsed() -> None:
    texts = html("**x** " * 50_000)
    assert sum(map(len, texts)) > 290_000


WORDS = st.text(alphabet="ab @_*`~<>&[]()#|.-!\\\n\t\u00e9\U0001f600\u200d", max_size=30)
BLOCKS = st.one_of(
    WORDS,
    WORDS.map(lambda w: f"```py\n{w}\n```"),
    WORDS.map(lambda w: f"> {w}"),
    WORDS.map(lambda w: f"- {w}\n  1. {w}"),
    WORDS.map(lambda w: f"# **{w}**"),
    WORDS.map(lambda w: f"[{w}](https://a.example/{'x' * 300})"),
    WORDS.map(lambda w: f"| {w} | b |\n|--|--|\n| c | {w} |"),
    st.integers(1, 400).map(lambda n: "long" * n),
)
MARKDOWN = st.lists(BLOCKS, max_size=8).map("\n\n".join)


@pytest.mark.integration
@settings(max_examples=50, deadline=None)
@given(markdown=MARKDOWN, length=st.integers(80, 700))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_message_fits_and_is_valid(markdown: str, length: int, dialect: str) -> None:
    messages = formatted(markdown, capabilities(dialect, length))
    measure = units if dialect == "telegram-html" else len
    for message in messages:
        assert message.plain.strip()
        assert measure(message.text) <= length
        assert measure(message.plain) <= length
        if dialect == "telegram-html":
            assert _squeezed(Markup(message.text).words) == _squeezed(message.plain)


@pytest.mark.integration
@settings(max_examples=50, deadline=None)
@given(markdown=MARKDOWN, length=st.integers(80, 700))
def test_no_text_is_lost_by_cutting(markdown: str, length: int) -> None:
    whole = formatted(markdown, capabilities("plain", 1_000_000))
    parts = formatted(markdown, capabilities("plain", length))
    assert _squeezed("".join(each.plain for each in parts)) == _squeezed(whole[0].plain)


def _squeezed(text: str) -> str:
    return re.sub(rf"[\s{ZERO}]+", "", text)
