"""Reading shell syntax with the grammar: what it finds, and what it must doubt."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rows import every_row
from security.corpus.bypasses import BYPASSES
from security.corpus.cases import all_cases
from ybs.security.commands import command as commands
from ybs.security.commands import syntax
from ybs.security.commands.syntax import SyntaxReader, decoded
from ybs.security.commands.wrappers import read

CORPUS = [command for _, _, command in [*all_cases(), *BYPASSES]]


def words_of(text: str) -> list[list[str]]:
    return [command.words for command in syntax.parse(text).commands]


@pytest.mark.integration
def test_on_flat_lines_both_readings_agree():
    flat = [text for text in CORPUS if len(text) < 1_000 and commands.parse(text).is_clear]
    assert len(flat) > 300
    for text in flat:
        if syntax.parse(text).is_clear:
            assert syntax.parse(text).commands == commands.parse(text).commands, text


@example("{}")
@example("\\\\''\\-")
@given(st.text(alphabet="ab '\"\\-*é{}", max_size=30))
def test_one_command_that_is_read_once_has_the_same_words_for_the_grammar(text: str):
    flat, whole = commands.parse(text), syntax.parse(text)
    if flat.is_simple and not whole.doubts:
        assert whole.commands == flat.commands


@every_row(
    ("text", "words"),
    [
        ("r\\m x", [["rm", "x"]]),
        ('"a\\"b" "c\\d"', [['a"b', "c\\d"]]),
        ("a 'b'\"c\"d", [["a", "bcd"]]),
        ("$'\\x72\\155\\u0020\\q'", [["rm q"]]),
        ("a $ b", [["a", "$", "b"]]),
        ("x=1 y=2", [[]]),
        ("a && b && c || d", [["a"], ["b"], ["c"], ["d"]]),
        ("export A=1 B", [["export", "A=1", "B"]]),
        ("unset A", [["unset", "A"]]),
        ("[ -f x -a ! -d y ]", [["[", "-f", "x", "-a", "!", "-d", "y", "]"]]),
        ("a > b c d", [["a", "c", "d"]]),
        ("a | # x\nb", [["a"], ["b"]]),
        ("é x", [["é", "x"]]),
        ("(a) > b", [["a"]]),
        ("time (sudo id)", [["time"], ["sudo", "id"]]),
        ("(", []),
    ],
)
def test_words_stand_for_what_the_shell_makes_of_them(text: str, words: list[list[str]]):
    assert words_of(text) == words


@every_row(
    ("text", "words", "targets", "given"),
    [
        ("cat <<E > f\nx\nE", ["cat"], ["f"], "\nx\n"),
        ("cat <<'E' -n\nx\nE", ["cat", "-n"], [], "\nx\n"),
        ("cat <<-E\nx\nE", ["cat"], [], "\nx\n"),
        ("cat <<< x", ["cat"], [], "\nx"),
        ("a >b 2>&1 >&- <c", ["a"], ["b"], ""),
        ("> f a", ["a"], ["f"], ""),
        ("> f", [], ["f"], ""),
        ("(a; b) > f", ["b"], ["f"], ""),
        ("{ (a) } > f", ["a"], ["f"], ""),
        ("$(< f)", ["$(< f)"], [], ""),
    ],
)
def test_files_and_here_documents_belong_to_their_command(text, words, targets, given):
    command = next(each for each in syntax.parse(text).commands if each.words == words)
    assert (command.targets, command.given) == (targets, given)


def test_the_text_of_a_here_document_goes_down_the_pipe():
    first, second, third = syntax.parse("cat <<E | tee x | sh\nls\nE").commands
    assert [each.given for each in (first, second, third)] == ["\nls\n"] * 3
    assert (second.is_piped_into, third.is_piped_into) == (True, True)
    first, second = syntax.parse("cat <<E && sh\nls\nE").commands
    assert (second.given, second.is_piped_into) == ("", False)


@every_row(
    "text",
    [
        # The grammar reads these differently from a shell, or two shells do.
        *("cat <<E\n\tE\n'\nE\nsudo id #'", "r\\\nm x", 'echo "${x-\'}"; sudo id; echo "\'}"'),
        *("! >&2  # \nsudo id", "cat 2>&1 $\nsudo id", "! x=\\\n sudo id", "E\n\\\nsudo id"),
        *("< x a=1ls # \nsudo id", "a \r#'\nsudo id", "[[ a && sudo ]]", "((sudo))"),
        *("a &> b c", "a |& b", "a <<< b", "a=(b c)", "a[x]=1", "select x in y; do z; done"),
        *("function f { a; }", "f() { a; }", "case x in y) a;& z) b;; esac", "$'a'", '$"a"'),
        *("echo ${x@P}", "echo ${!x}", "echo ${a[b]}", "echo $((a[1]))", "cat <(a)", "a > >(b)"),
        *("echo `a \\`b\\``", "echo 'a", "a )", "if a", "[ -v x ]", "a > $x", "a > b*", "$x"),
        *("a(b)", "a <<E\nx", "{a,b}", "a <> b", "for ((;;)); do a; done", "\x0ba", "let x=1 (b)"),
        *("(" * 60 + "a" + ")" * 60, "[ " + "( " * 60 + "a" + " )" * 60 + " ]", "a" * 30_001),
        *("echo " + '"$(echo ' * 50 + "a" + ')"' * 50, "a;" * 2_001 + "b", "``a", "a ((b))"),
        *("0<do>&2env sudo id", "a >&b", "\\ f", "((x=1)) > f", "a '$(' ((b"),
        *("echo a\n\\sudo id", "a b {  c\n\\sudo id"),
    ],
)
def test_what_is_not_certain_is_doubted(text: str):
    script = syntax.parse(text)
    assert script.doubts
    assert not script.is_clear


@every_row(
    "text",
    [
        *("a & b", "(a; b) 2>&1", "{ a; }", "! a", "if a; then b; elif c; then d; else e; fi"),
        *("for x in a b; do c; done", "while a; do b; done", "case x in a|b) c;; *) d;; esac"),
        *("echo $(a) `b` $x ${x} ${#x} ${x:-y} ${x%.py} $((1+2))", "a # b", "a \\\n  b", "a\n\nb"),
        *("cat <<E\n$x\nE", "python3 - <<'E'\na\nE", "x=$(a)", "a\n# b\nc", "echo {1..3} {a,b}"),
        *("[ $x -eq 1 ]", "[ -f x ] && a", "echo 'a\nb'", 'echo "a\nb"', "a &&\nb", "a |\n  b"),
        *(
            "for x in a; do echo {}; done",
            "cat <<-E\n\tx\n\tE",
            "echo a $ b",
            "test $a == b",
            "[ ( a ) ]\n" * 60,
        ),
        *("echo ‘x’", "a 2>&1 | b", "sleep 1 &\nwait", "echo $(( 3 * x ))", ""),
    ],
)
def test_ordinary_syntax_is_clear(text: str):
    assert syntax.parse(text).doubts == {}


@every_row(
    ("text", "reason"),
    [
        ("\\ f", "a part of it is not understood"),
        ("cat <<E\n)$(sudo id)\nE", "a part of it is not understood"),
        ("(ls \x07)", "it holds a control character"),
        ("a\n\\\n> f", "the end of a command is not certain"),
        ("true\n" * 99 + "{ " * 60 + "a" + "; }" * 60, "it is nested too deeply"),
        ("echo $((" + "(" * 60 + "1" + ")" * 60 + "))", "it is nested too deeply"),
    ],
)
def test_the_person_is_told_why_a_text_is_doubted(text: str, reason: str):
    assert list(syntax.parse(text).doubts) == [reason]


@every_row("place", ["statement", "part"])
def test_what_a_later_grammar_adds_is_doubted(place: str):
    node: Any = SimpleNamespace(type="spawn", start_byte=0, end_byte=1, children=[])
    reader, command = SyntaxReader("a"), commands.Command([], [])
    if place == "statement":
        reader.statement(node)
    else:
        reader.odd_part(node, command)
    assert reader.script.doubts


def test_what_no_token_covers_is_doubted():
    # The grammar drops a dash before a here-document; had it dropped a word, the text would not be clear.
    assert syntax.parse("a - <<'E'\nx\nE").is_clear
    assert not syntax.parse("a\x0cb").is_clear


def test_parts_with_something_between_them_are_doubted():
    parts = [SimpleNamespace(type="word", start_byte=n, end_byte=n + 1) for n in (0, 2)]
    node: Any = SimpleNamespace(type="concatenation", start_byte=0, end_byte=3, children=parts)
    reader = SyntaxReader("a b")
    assert reader.word(node) == "ab"
    assert list(reader.script.doubts) == ["the end of a word is not certain"]


def test_a_code_beyond_unicode_is_no_error():
    assert decoded("\\UFFFFFFFF") == "\U0010ffff"


@given(st.text(alphabet="ab $`'\"\\(){}<>|&;#\n=!@E-[]é\r", max_size=40))
def test_no_text_breaks_the_grammars_reader(text: str):
    script = syntax.parse(text)
    assert script.is_clear == (not script.doubts)


def test_two_readings_that_disagree_are_both_judged(monkeypatch: pytest.MonkeyPatch):
    other = commands.parse("rm y")
    monkeypatch.setattr(syntax, "parse", lambda text, is_flat: other)
    reading = read("ls; pwd")
    assert [run.words for run in reading.runs] == [["ls"], ["pwd"], ["rm", "y"]]
    assert list(reading.doubts) == ["two ways to read it disagree"]
