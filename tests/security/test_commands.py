"""Reading shell commands: the words of every command in a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ybs.security.commands import parse
from ybs.security.wrappers import read


def argvs(text: str) -> list[list[str]]:
    return [command.argv for command in parse(text).commands if command.argv]


def programs(text: str) -> list[str]:
    return [run.words[0] for run in read(text).runs if run.words]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ls -l 'a b' \"c d\" e\\ f", ["ls", "-l", "a b", "c d", "e f"]),
        ("\\rm", ["rm"]),
        ('"r"m x', ["rm", "x"]),
        ("r''m", ["rm"]),
        ("r\\\nm x", ["rm", "x"]),
        ("ls # rm x", ["ls"]),
        ("echo a#b", ["echo", "a#b"]),
        ("ls\n", ["ls"]),
        ("echo ';' \"&&\" '|'", ["echo", ";", "&&", "|"]),
        ('echo "a\\"b\\n"', ["echo", 'a"b\\n']),
        ("grep a$ b", ["grep", "a$", "b"]),
        ("ls  *.py", ["ls", "*.py"]),
    ],
)
def test_s04_one_plain_command_is_simple_and_its_quotes_are_gone(text: str, words: list[str]):
    script = parse(text)
    assert [command.words for command in script.commands] == [words]
    assert script.is_simple
    assert script.is_clear


@pytest.mark.parametrize(
    "text",
    [
        *(
            "ls; rm x",
            "ls\nrm x",
            "ls & rm x",
            "ls | rm x",
            "ls |& rm x",
            "ls && rm x",
            "ls || rm x",
        ),
        *("(ls; rm x)", "{ ls; rm x; }", "if ls; then rm x; fi", "! ls; rm x"),
        *("$(rm x)", "`rm x`", 'echo "$(rm x)"', 'echo "`rm x`"', "cat <(rm x)", "ls > >(rm x)"),
        *("echo ${x:-$(rm x)}", "echo $((a[$(rm x)]))", "X=$(rm x)", "cat <<E\n$(rm x)\nE"),
        *("f() { rm x; }", "case x in a) rm x;; esac", "for i in 1; do rm x; done", "FOO=1 rm x"),
        *("sh <<E\nrm x\nE", "cat <<'E' | bash\nrm x\nE", "echo `echo \\`rm x\\``"),
    ],
)
def test_s05_s06_every_command_in_a_line_is_found_and_the_line_is_not_simple(text: str):
    script = parse(text)
    assert ["rm", "x"] in argvs(text)
    assert not script.is_simple


def test_s07_no_number_of_commands_hides_the_last():
    assert argvs("true && " * 60 + "rm x")[-1] == ["rm", "x"]


@pytest.mark.parametrize(
    "text",
    [
        *("$X y", "${X} y", "{rm,-rf,/}", "$(echo rm) x", "`echo rm` x", "${v@P}", "${!v}"),
        *("echo 'open", 'echo "open', "echo $(open", "echo `open", "echo ${open", "cat <<E\nopen"),
        *("cat <<E", "$'\\x72m' x", "cat <<E\ntext\nE", "echo " + "$(" * 40 + ")" * 40),
        *("echo " + "${a:-" * 40 + "}" * 40, "echo \"$'x'\" 'open"),
    ],
)
def test_what_cannot_be_read_for_certain_says_so(text: str):
    assert not parse(text).is_clear


@pytest.mark.parametrize(
    "text",
    [
        "cat a > b",
        "cat < b",
        "ls 2>&1",
        "ls $HOME",
        "A=1 ls",
        "ls &",
        "ls;",
        "ls ${x}",
        "cat <<< x",
        "ls >| x",
    ],
)
def test_redirections_variables_and_assignments_are_not_simple(text: str):
    assert not parse(text).is_simple


def test_quotes_within_a_substitution_do_not_end_it():
    assert argvs("echo $(printf ')' \\) \")\" '\"'; rm x) y")[:2] == [
        ["printf", ")", ")", ")", '"'],
        ["rm", "x"],
    ]


def test_the_targets_of_output_are_kept_and_numbers_are_not_words():
    script = parse("a 1 2> err >out >&2 &>all < in")
    assert script.commands[0].words == ["a", "1"]
    assert script.commands[0].targets == ["err", "out", "all"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a | sh", True), ("a |\n sh", True), ("a | (sh)", True), ("a || sh", False)],
)
def test_a_command_knows_that_it_is_piped_into(text: str, *, expected: bool):
    assert parse(text).commands[-1].is_piped_into is expected


def test_the_text_of_a_here_document_is_no_command_unless_a_shell_reads_it():
    assert argvs("cat <<-'E' > f\n\tsudo x\n\tE\nls") == [["cat"], ["ls"]]
    assert argvs("cat <<E\n\\$(rm x)\nE") == [["cat"]]


def test_an_empty_line_holds_nothing():
    assert parse("").commands == []
    assert parse(" \n # remark").commands == []
    assert parse("> out").commands[0].targets == ["out"]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "env rm x",
            "env -i A=1 rm x",
            "env -u A rm x",
            "command rm x",
            "nohup rm x",
            "nice -n 5 rm x",
        ),
        *("nice -5 rm x", "time -p rm x", "timeout -k 3 10 rm x", "timeout --signal KILL 5 rm x"),
        *("sh -c 'rm x'", "bash -lc 'rm x'", "sh -c \"sh -c 'rm x'\"", "eval rm x", "eval 'rm x'"),
        *(
            "echo x | xargs rm",
            "xargs -n 1 -I{} rm x",
            "find . -exec rm x \\;",
            "find . -execdir rm x +",
        ),
        *("sudo -u root rm x", "exec rm x", "/bin/rm x", "/usr/bin/env /bin/rm x", "fd -x rm x"),
        *(
            "stdbuf -oL rm x",
            "busybox rm x",
            "setsid nohup rm x",
            "env -S 'rm x'",
            "trap 'rm x' EXIT",
        ),
        *(
            "watch -n 1 rm x",
            "chroot /mnt rm x",
            "su -c 'rm x'",
            "nice -- rm x",
            "env --unset A rm x",
        ),
        *("flock lock -c 'rm x'", "FOO=1 env BAR=2 rm x"),
    ],
)
def test_s04_wrappers_are_looked_through(text: str):
    assert "rm" in programs(text)


@pytest.mark.parametrize("text", ["env $X", 'sh -c "$X"', "xargs -n1 `cat x`"])
def test_a_wrapped_program_that_is_computed_is_not_clear(text: str):
    assert not read(text).is_clear


@pytest.mark.parametrize(
    "text", ["grep rm x", "echo rm", "time grep sudo x", "xargs grep rm", "sh script -c"]
)
def test_arguments_are_no_programs(text: str):
    assert not {"rm", "sudo"} & set(programs(text))


def test_wrappers_without_end_are_not_followed_for_ever():
    assert not read("env " * 50 + "rm x").is_clear
    assert not read("find " + "-exec find " * 60).is_clear
    assert not read("eval " * 14 + "x").is_clear


def test_a_bare_redirection_is_a_run_without_words():
    assert [run.targets for run in read("> /dev/sda").runs] == [["/dev/sda"]]


@given(st.text(alphabet="ab $`'\"\\(){}<>|&;#\n=!@E-", max_size=40))
def test_no_text_breaks_the_reader(text: str):
    reading = read(text)
    assert all(isinstance(word, str) for run in reading.runs for word in run.words)
