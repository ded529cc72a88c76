"""Nothing that models, files and tools say becomes more than text in the page."""

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ybs.frontends.web import markup

TAGS = {
    *(
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "em",
        "strong",
        "s",
        "code",
        "pre",
        "ul",
        "ol",
        "li",
        "blockquote",
        "hr",
        "br",
    ),
    *(
        "a",
        "div",
        "span",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "button",
        "caption",
        "colgroup",
        "col",
        "mark",
    ),
}
ATTRIBUTES = {"class", "href", "target", "rel", "tabindex", "type", "start", "colspan", "data-copy"}
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "![x](http://evil.example/pixel.png)",
    '[x](https://a.example/"onmouseover="alert(1))',
    '[x](https://a.example "\\" onclick=alert(1)")',
    '<https://a.example/"onclick=alert(1)>',
    '```"><script>alert(1)</script>\n<b>\n```',
    "| a |\n|:-:|\n| <b onclick=alert(1)> |",
    "<a href='javascript:alert(1)'>x</a>",
    "<!-- --><style>*{display:none}</style>",
    "\x1b]8;;javascript:alert(1)\x07x\x1b]8;;\x07",
    "a\u202egpj.exe",
)


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self.bad.append(tag)
        for name, value in attrs:
            if name not in ATTRIBUTES:
                self.bad.append(f"{tag} {name}")
            if name == "href" and not re.match("https?://|mailto:", value or ""):
                self.bad.append(f"href {value}")

    def handle_comment(self, data: str) -> None:
        self.bad.append(f"comment {data}")

    def handle_decl(self, decl: str) -> None:
        self.bad.append(f"declaration {decl}")


def bad_in(html: str) -> list[str]:
    seen = Seen()
    seen.feed(html)
    seen.close()
    return seen.bad


def test_hostile_markdown_is_text():
    for words in HOSTILE:
        html = markup.markdown(words)
        assert bad_in(html) == [], words
        assert "\x1b" not in html
        assert "\u202e" not in html


def test_hostile_output_and_diffs_are_text():
    for words in HOSTILE:
        diff = f"--- a/x\n+++ b/{words}\n@@ -1 +1 @@\n-{words}\n+{words}!\n"
        for html in (
            markup.output(words),
            markup.diff(diff),
            markup.text(words),
            markup.code(words, words),
        ):
            assert bad_in(html) == [], words


@given(st.text(alphabet="<>&\"'`[](){}!|*_#:/\\ \na=javscript", max_size=60))
def test_no_text_makes_a_tag(words: str):
    assert bad_in(markup.markdown(words)) == []
    assert bad_in(markup.diff(words)) == []
    assert bad_in(markup.output(words)) == []


def test_code_is_coloured_by_classes_and_keeps_its_text():
    html = markup.markdown('```python\nx = "<b>"\n```')
    assert 'class="h-' in html
    assert "style=" not in html
    assert "&lt;b&gt;" in html
    for line, language in (
        ("def f(x): return 12  # it's <odd>", "python"),
        ("let s: &'a str = f(`x\\``); /* not\ndone", "rust"),
        ("SELECT 'a', \"b\" FROM t -- why", "sql"),
        ('<p class="a">it\'s</p><!-- x', "x.html"),
        ("no & colours", "unheard-of"),
    ):
        assert unescape(re.sub("<[^>]*>", "", markup.code(line, language))) == line
    assert markup.code("f(1)", "x.py") == '<span class="h-f">f</span>(<span class="h-n">1</span>)'


def test_a_diff_has_both_sides_their_numbers_and_the_words_that_differ():
    html = markup.diff("--- a.py\n+++ a.py\n@@ -4,2 +4,3 @@\n x\n-return 1\n+return 2\n+more\n")
    assert "return <mark>1</mark>" in html
    assert "return <mark>2</mark>" in html
    assert html.count('<td class="no add">6</td>') == 1
    assert markup.counts("--- a\n+++ b\n@@ -1 +1,2 @@\n-x\n+y\n+z") == (2, 1)


@given(
    st.lists(
        st.sampled_from(["a", "\n", "\n\n", "```\n", "- b\n", "    c\n", "|x|\n"]), max_size=20
    )
)
def test_blocks_that_are_whole_end_at_an_empty_line_or_a_fence(pieces: list[str]):
    growing = markup.GrowingMarkup()
    html = "".join(filter(None, map(growing.add, pieces)))
    text = "".join(pieces)
    assert text.endswith(growing.rest)
    whole = text.removesuffix(growing.rest)
    assert whole == "" or whole[-1] == "\n"
    assert len([line for line in whole.splitlines() if line.strip() == "```"]) % 2 == 0
    assert growing.html == html


def test_a_code_block_that_is_being_written_waits_for_its_end():
    growing = markup.GrowingMarkup()
    assert growing.add("words\n\n```\ncode\n\nmo") == "<p>words</p>\n"
    assert growing.add("re\n``") is None
    assert "more" in str(growing.add("`\nrest"))
    assert growing.rest == "rest"


@pytest.mark.integration
def test_what_a_model_writes_to_be_slow_is_drawn_all_the_same():
    growing = markup.GrowingMarkup()
    growing.add("```\n")
    for _ in range(2_000):
        growing.add("a line of code that goes on\n")
    assert growing.rest.count("\n") == 2_001
    old, new = "a " * 200, "a " * 199 + "b "
    lines = "\n".join([*[f"-{old}"] * 2_000, *[f"+{new}"] * 2_000])
    assert markup.diff(f"--- a\n+++ a\n@@ -1,2000 +1,2000 @@\n{lines}").count("<mark>") == 50
    hostile = ("a", "a.", "\n", "a \n", "'\\", "\"'", "/*", "<!--", "--", "# ", '"""', "1.", "`\\")
    for language in ("py", "c"):
        for words in hostile:
            assert markup.code(words * 3_000, language)


@pytest.mark.integration
def test_much_output_keeps_its_beginning_and_its_end():
    html = markup.output("first\n" + "x\n" * markup.MOST_OUTPUT + "last")
    assert "first" in html
    assert "last" in html
    assert "characters left out" in html
    assert markup.output("10 %\r20 %\r30 %") == '<pre class="out" tabindex="0">30 %</pre>'


def test_the_page_keeps_to_its_size():
    """A page of one person is read in one sitting; what it may have in all is said in docs/web.md."""
    static = Path(markup.__file__).parent / "static"
    lines = sum(
        len(each.read_text().splitlines())
        for each in static.iterdir()
        if each.suffix in (".js", ".css")
    )
    assert lines <= 1_200


def test_a_diff_takes_no_line_of_a_file_for_its_own_heads():
    head = "--- q.sql\n+++ q.sql\n@@ -1,3 +1,4 @@\n"
    words = f"{head} select\n--- AND-ONLY-OWN\n+++ /dev/null\n++++ EVIL\n where\ndiff OUTSIDE"
    html = markup.diff(words)
    for each in ("-- AND-ONLY-OWN", "++ /dev/null", "+++ EVIL", "diff OUTSIDE"):
        assert each in re.sub(r"<[^>]*>", "", html)
    assert markup.counts(words) == (2, 1)


def test_rows_behind_the_drawn_ones_are_folded_and_there():
    count = markup.MOST_ROWS + 100
    lines = "".join(f"+x = {number}\n" for number in range(count))
    html = markup.diff(f"--- /dev/null\n+++ a.py\n@@ -0,0 +1,{count} @@\n{lines}")
    assert "<details>" in html
    assert f"+x = {count - 1}" in html
