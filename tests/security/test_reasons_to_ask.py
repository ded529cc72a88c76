"""What is asked about although nothing is destroyed."""

from rows import every_row
from ybs.security.commands.wrappers import read
from ybs.security.policy.command_case import reasons_to_ask


def reasons(text: str) -> tuple[str, ...]:
    return reasons_to_ask(text, read(text))


@every_row(
    ("text", "words"),
    [
        ("echo $((a[x]))", "not understood: '$((a[x]))' may run what a variable holds"),
        ("echo x > ~/.bashrc", "writes to '~/.bashrc', outside the project"),
        ("echo x > /etc/x", "writes to '/etc/x', outside the project"),
        ("echo x > a/../../x", "writes to 'a/../../x', outside the project"),
        ("echo x > sub/.env", "writes to 'sub/.env', which is hidden"),
        ("echo x > a/.envrc", "writes to 'a/.envrc', which other programs read by themselves"),
        ("cd a && b > c", "writes to 'c', in a folder that is only known when it runs"),
        ("a | tee -a ../x", "writes to '../x', outside the project"),
        ("PATH=. a", "sets PATH, which says how other programs run"),
        ("export LD_PRELOAD+=x", "sets LD_PRELOAD, which says how other programs run"),
        ("env GIT_PAGER=x git log", "sets GIT_PAGER, which says how other programs run"),
        ("eval x", "eval runs text or a file as commands of this shell"),
        ("alias a=b", "alias changes what other commands mean"),
        ("printf -v 'a[$(b)]' c", "printf runs the substitution within a subscript"),
        ("python3 <<E\nx\nE", "python3 runs the text of a here-document"),
        ("rg --pre x y", "rg --pre runs what it is given"),
        ("cat < /dev/tcp/h/1", "opens a network connection by way of /dev/tcp or /dev/udp"),
        ("ls \u202e", "holds the invisible character U+202E"),
        ("ls a\uff1bb", "'；' holds U+FF1B, which looks like another character"),
        ("ls\u00a0x", "'\\xa0' holds U+00A0, which looks like another character"),
    ],
)
def test_s09_s10_u04_a_concern_says_what_and_why(text: str, words: str):
    assert words in reasons(text)


@every_row(
    "text",
    [
        *(
            "ls > x",
            "ls 2>/dev/null",
            "ls > /tmp/x",
            "A=1 make",
            "export A=1",
            "alias",
            "a | tee x",
        ),
        *(
            "printf '%s[]' x",
            "test -f x",
            "cat <<E\nx\nE",
            "rg x",
            "ls grün",
            "ls Ελλάδα",
            "git log",
        ),
        *("echo '½'", "ls 日本", "cd x && ls", "unset a[1]", "cd x && ls 2>/dev/null", "> x"),
    ],
)
def test_ordinary_commands_are_of_no_concern(text: str):
    assert reasons(text) == ()
