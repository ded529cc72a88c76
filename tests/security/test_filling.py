"""Data in shell commands: one word, for every shell that reads it, or nothing is run."""

import subprocess
from pathlib import Path

import pytest

from ybs.commands.filling import Value, filled
from ybs.core.errors import Refused

PLAIN = ("a.py", "src/x-1.py", "42", "a@b:c=d%e,f")
#: Each would create `pwned`, or be more than one word, if a shell read it.
HOSTILE = (
    "a b",
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "x\ntouch pwned\n",
    "; touch pwned #",
    "a && touch pwned",
    "it's",
    "\\",
    "$HOME",
    "*",
    "<(touch pwned)",
    "}; touch pwned; {",
    ")); touch pwned; ((",
    "EOF\ntouch pwned",
    "!touch pwned",
    "a[$(touch pwned)]",
)
#: Where a value can stand, and stays the last word.
SAFE = (
    ("printf '<%s>' ", ""),
    ("printf '<%s>' \"", '"'),
    ("printf '<%s>' '", "'"),
    ("printf '<%s>' \"$HOME/x\" ", ""),
    ("printf '<%s>' $(date +%F) ", ""),
    ("true; printf '<%s>' ", " | cat"),
    ("echo x | while read -r l; do printf '<%s>' ", "; done"),
    ("[ -n \"$HOME\" ] && export X=1 && printf '<%s>' ", ""),
    ("if true; then printf '<%s>' ", "; fi"),
)
#: Where it cannot be quoted, or something else than this shell reads it.
UNSAFE = (
    ("sh -c 'echo ", "'"),
    ('sh -c "echo ', '"'),
    ("bash -c \"echo '", "'\""),
    ("eval echo ", ""),
    ('eval "echo ', '"'),
    ("xargs -I% sh -c 'echo ", "' < /dev/null"),
    ("cat <<EOF\n", "\nEOF"),
    ("echo `echo ", "`"),
    ("echo $(echo ", ")"),
    ('echo "$(echo ', ')"'),
    ("echo ${x:-", "}"),
    ("echo \\", ""),
    ("true # ", "\ntrue"),
    ("echo $'", "'"),
    ("echo $((1 + ", "))"),
    ("[[ ", " -eq 1 ]]"),
    ("python3 -c 'print(\"", "\")'"),
    ("awk 'BEGIN { print \"", "\" }'"),
    ("sed '", "'"),
    ("echo $", ""),
    ("echo ~", ""),
    *(
        ("let x=", ""),
        ("declare -i x=", ""),
        ("printf -v ", " x"),
        ("test -v ", ""),
        ("[ -v ", " ]"),
    ),
    *(("unset ", ""), ("read ", " <<< x"), ('trap "echo ', '" EXIT'), ('alias q="', '"')),
    *(("x=", "; echo $((x))"), ("x=", "; a=(1); echo ${a[$x]}"), ("x=", "; y=abc; echo ${y:$x}")),
    *(("for f in ", '; do bash -c "echo $f"; done'), ("A=", '; sh -c "echo $A"')),
    *(("echo ", " | xargs -I% sh -c 'echo %'"), ("echo echo ", " | sh"), ("echo ", " | python3")),
    *(("declare ", ""), ("export ", ""), ("PS4=", "; set -x; true"), ("A=", '; eval echo "$A"')),
    *(("BASH_ENV=", " bash -c true"), ("env A=", " sh -c 'eval echo $A'"), ("A=", '; read "$A"')),
    *(("x=", "; [[ $x -eq 1 ]]"), ("x=", "; echo ${!x}"), ("x=", "; (( x > 1 ))")),
)


def ran(command: str, folder: Path) -> str:
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False, timeout=9)  # fmt: skip
    return done.stdout


@pytest.mark.integration
@pytest.mark.parametrize(("before", "after"), SAFE)
def test_a_value_is_one_word(before: str, after: str, tmp_path: Path) -> None:
    for value in (*PLAIN, *HOSTILE):
        try:
            line = filled((before, Value(value), after))
        except Refused:
            assert value in HOSTILE
            continue
        assert ran(line, tmp_path).endswith(f"<{value}>")
    assert not list(tmp_path.iterdir())


def test_most_hostile_values_are_put_in_where_they_can_be_quoted() -> None:
    for before, after in SAFE[:4]:
        for value in HOSTILE:
            assert filled((before, Value(value), after))


@pytest.mark.integration
@pytest.mark.parametrize(("before", "after"), UNSAFE)
def test_where_a_value_would_be_read_as_code_it_is_refused(before: str, after: str, tmp_path: Path) -> None:  # fmt: skip
    for value in HOSTILE:
        try:
            line = filled((before, Value(value), after))
        except Refused:
            continue
        ran(line, tmp_path)  # a word that no shell takes apart
        assert value in ("\\", "it's", "$HOME", "*"), line
    assert not list(tmp_path.iterdir())


def test_two_values_keep_their_places() -> None:
    line = filled(("cp ", Value("a b"), " ", Value("c d"), " ", Value("e")))
    assert line == "cp 'a b' 'c d' e"


def test_a_value_that_is_missing_is_nothing_but_within_single_quotes() -> None:
    missing = Value(None, missing="$1")
    assert filled(("ls ", missing)) == "ls "
    assert filled(('ls "', missing, '"')) == 'ls ""'
    assert filled(("awk '{print ", missing, "}'")) == "awk '{print $1}'"
    assert filled(("cat <<E\n'", missing)) == "cat <<E\n'"
