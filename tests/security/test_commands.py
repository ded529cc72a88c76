"""Reading shell commands: a flat line is recognised, and all else is scanned for words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rows import every_row
from ybs.security.commands.command import parse, scan
from ybs.security.commands.wrappers import read


def programs(text: str) -> list[str]:
    return [run.words[0] for run in read(text).runs if run.words]


@every_row(
    ("text", "words"),
    [
        ("ls -l 'a b' \"c d\" e\\ f", ["ls", "-l", "a b", "c d", "e f"]),
        ("\\rm", ["rm"]),
        ('"r"m x', ["rm", "x"]),
        ("r''m", ["rm"]),
        ("echo a#b", ["echo", "a#b"]),
        ("echo ';' \"&&\" '|'", ["echo", ";", "&&", "|"]),
        ("awk '{print $1}' x", ["awk", "{print $1}", "x"]),
        ("ls  *.py HEAD@{1}", ["ls", "*.py", "HEAD@{1}"]),
        ("[ -f x ]", ["[", "-f", "x", "]"]),
    ],
)
def test_s04_one_plain_command_is_simple_and_its_quotes_are_gone(text: str, words: list[str]):
    script = parse(text)
    assert [command.words for command in script.commands] == [words]
    assert script.is_simple
    assert script.is_clear


@every_row("text", ["ls; rm x", "ls\nrm x", "ls | rm x", "ls && rm x", "ls || rm x", "ls;rm x;"])
def test_s05_s06_every_command_of_a_flat_line_is_found(text: str):
    script = parse(text)
    assert ["rm", "x"] in [command.words for command in script.commands]
    assert script.is_clear
    assert not script.is_simple


@every_row(
    "text",
    [
        *("ls & rm x", "ls |& rm x", "(ls; rm x)", "{ ls; rm x; }", "if ls; then rm x; fi"),
        *("! ls; rm x", "$(rm x)", "`rm x`", 'echo "$(rm x)"', 'echo "`rm x`"', "cat <(rm x)"),
        *("ls > >(rm x)", "echo ${x:-$(rm x)}", "echo $((a[$(rm x)]))", "X=$(rm x)"),
        *("cat <<E\n$(rm x)\nE", "f() { rm x; }", "case x in a) rm x;; esac", "{rm,x}"),
        *("for i in 1; do rm x; done", "sh <<E\nrm x\nE", "echo `echo \\`rm x\\``", "r\\\nm x"),
        *("ls # \\\nrm x", "ls &>/dev/null rm x", "ls >| rm x", "ls <<< rm x", "ls <> rm x"),
        *("echo $(case x in x) rm x;; esac)", 'echo "${x-\'}"; rm x; echo "\'}"', "r$@m x"),
        *('echo "`echo \\"\'\\"; rm x; echo \\"\'\\"`"', "cat <<E\n\tE\n'\nE\nrm x #'"),
        *("cat <<'E'\nx\\\nE\nrm x", "echo a\r#'\nrm x #'", "echo 'open; rm x", "r${y}m x"),
        *(
            "${y:-rm} x",
            "x=`rm x`",
            "ls &\nrm x",
            "echo a\x0b#'\nrm x #'",
            "ls #\\\nrm x",
            "r``m x",
        ),
    ],
)
def test_s05_s06_what_is_not_flat_is_read_by_the_grammar_or_its_words_are_found(text: str):
    reading = read(text)
    assert not reading.script.is_simple
    assert not reading.script.is_clear
    if reading.is_clear:
        found = [word for run in reading.runs for word in (*run.words, *run.targets)]
        assert {"rm", "x"} <= set(found)
    else:
        assert reading.doubts
        assert {"rm", "x"} <= set(reading.scanned)


@every_row(
    "text",
    [
        *("$X y", "${X} y", '"$X" y', "/bin/r? x", "s[u]do", "$'\\x72m' x", "ls > $X"),
        *("ls > a*", "if", "echo 'open", 'echo "open', "ls >", "ls > ; x", "cat <<< x"),
        *("env $X", 'sh -c "$X"', "sh -c 'ls & $x'", "xargs /bin/r?"),
    ],
)
def test_what_cannot_be_read_for_certain_says_so(text: str):
    assert not read(text).is_clear


@every_row("text", ["a > b", "a < b", "ls 2>&1", "ls $HOME", "A=1 ls", "ls;", 'ls "$x"', "a >> b"])
def test_redirections_variables_and_assignments_are_clear_but_not_simple(text: str):
    script = parse(text)
    assert script.is_clear
    assert not script.is_simple
    assert script.has_variables == ("$" in text)


def test_the_targets_of_output_are_kept_and_numbers_are_not_words():
    script = parse("a 1 2> err >out 2>&1 >> 'all' < in")
    assert script.commands[0].words == ["a", "1"]
    assert script.commands[0].targets == ["err", "out", "all"]
    assert [run.targets for run in read("> /dev/sda").runs] == [["/dev/sda"]]


@every_row(
    ("text", "expected"),
    [("a | sh", True), ("a |\n sh", True), ("a || sh", False), ("a | b; sh", False)],
)
def test_a_command_knows_that_it_is_piped_into(text: str, *, expected: bool):
    assert parse(text).commands[-1].is_piped_into is expected


def test_a_clear_text_needs_no_scan():
    assert read("ls; pwd").scanned == []


def test_an_empty_line_holds_nothing():
    assert parse("").commands == []
    assert parse(" \n ").commands == []
    assert not parse("").is_simple
    assert scan("") == []


@every_row(
    "text",
    [
        *("env rm x", "env -i A=1 rm x", "env -u A rm x", "command rm x", "nohup rm x"),
        *("nice -n 5 rm x", "nice -5 rm x", "time -p rm x", "timeout -k 3 10 rm x"),
        *("timeout --signal KILL 5 rm x", "timeout inf rm x", "sh -c 'rm x'", "bash -lc 'rm x'"),
        *("sh -c \"sh -c 'rm x'\"", "eval rm x", "eval 'rm x'", "echo x | xargs rm", "A=1 rm x"),
        *("xargs -n 1 -I{} rm x", "find . -exec rm x \\;", "find . -execdir rm x +", "fd -x rm x"),
        *("sudo -u root rm x", "exec -a y rm x", "/bin/rm x", "/usr/bin/env /bin/rm x"),
        *("stdbuf -oL rm x", "busybox rm x", "setsid nohup rm x", "env -S 'rm x'"),
        *("trap 'rm x' EXIT", "trap -- 'rm x' EXIT", "watch -n 1 rm x", "chroot /mnt rm x"),
        *("su -c 'rm x'", "su root -c 'rm x'", "nice -- rm x", "env --unset A rm x", "ssh h rm x"),
        *("flock lock -c 'rm x'", "FOO=1 env BAR=2 rm x", "sh -c -- 'rm x'", "sh -c -e 'rm x'"),
        *(
            "env '-Srm x'",
            "env -Srm x",
            "env --split-string='rm x'",
            "alias y='rm x'",
            "alias y=rm",
        ),
    ],
)
def test_s04_wrappers_are_looked_through(text: str):
    assert "rm" in programs(text)
    assert read(text).is_clear


@every_row(
    "text",
    [
        *("grep rm x", "echo rm", "time grep sudo x", "xargs grep rm", "sh script -c"),
        *(
            "find . -name rm",
            "find . -exec",
            "command -v sudo",
            "command -V rm",
            "env -",
            "xargs -0",
        ),
    ],
)
def test_arguments_are_no_programs(text: str):
    assert not {"rm", "sudo"} & set(programs(text))
    assert read(text).is_clear


@pytest.mark.integration
@every_row(
    "text",
    [
        *(
            "env " * 50 + "rm x",
            "true;" * 6_000 + "rm x",
            "eval " * 14 + "rm",
            "a" * 100_001 + " rm",
        ),
        *("find " + "-exec find " * 60 + "rm", "xargs " + "-ab " * 1_500 + "rm"),
    ],
)
def test_s07_what_is_too_much_is_not_clear_and_hides_nothing(text: str):
    assert not read(text).is_clear
    assert "rm" in read(text).scanned


@given(st.text(alphabet="ab $`'\"\\(){}<>|&;#\n=!@E-", max_size=40))
def test_no_text_breaks_the_reader(text: str):
    reading = read(text)
    assert all(isinstance(word, str) for run in reading.runs for word in run.words)
