"""Data in a shell command: each value stands there as one word, or the command is refused."""

import posixpath
import re
from collections.abc import Mapping, Sequence
from shlex import quote

from msgspec import Struct

from ybs.core.errors import Refused
from ybs.security.commands.dangers import codes_in
from ybs.security.commands.wrappers import INTERPRETED, SHELLS, Reading, read

#: Means nothing to any shell, wherever it stands.
_PLAIN = re.compile(r"[\w@%+=:,./-]*", re.ASCII)
#: Behind these a plain word would be the name of a variable, or of a person.
_NAMES_FOLLOW = re.compile(r"(?:\$\{?|~)\Z")
#: Expansions that leave the quoting as it is.
_CLOSED = re.compile(r"\$\{\w+\}|\$\([^()'\"`\\#$<]*\)")
#: Behind these a shell reads text by other rules than those of quotes.
_OTHER_RULES = ("`", "$(", "${", "<<", "((", "[[")
#: Programs that read any of their words as a program, or hand them to a shell as one text.
_TAKE_CODE = frozenset(("awk", "gawk", "mawk", "nawk", "sed", "gsed", "ssh", "watch", "parallel"))
#: Programs that run what they are handed on from elsewhere in a command, and those that keep it for later.
_RUN_MORE = frozenset(("eval", "xargs", "source", "."))
_KEEP = frozenset(
    (
        *("declare", "typeset", "local", "readonly", "export", "set", "unset", "read", "mapfile"),
        *("readarray", "getopts", "trap", "alias", "bind", "complete", "compgen", "env"),
    )
)
_STEM = re.compile(r"[A-Za-z]+")
#: Stands for a value that is not plain in what a command means.
_NAME = "YbsValue"
#: Where a shell computes: `a[$(rm x)]` in a number runs a program, quoted or not, and out of a variable too.
_COMPUTES = re.compile(
    r"\(\(|\$\[|\blet\b|\$\{!|\$\{\w+:\s*[^-=?+\s]|\w\[[^\]]*\$|\[\[.*\s-(?:eq|ne|[lg][te]|v|R)\b"
    r"|\bprintf\s+-v|(?:\btest|\[)\s+-[vR]\b",
    re.DOTALL,
)


class Value(Struct, frozen=True):
    """What is to be one word. `missing` stands in its place, within single quotes, where there is none."""

    text: str | None
    missing: str = ""


def filled(parts: Sequence[str | Value]) -> str:
    """Return the command with its values, each as one word for every shell that reads it. Raises Refused."""
    line, values = "", dict[str, str]()
    meant = ""
    for part in parts:
        if isinstance(part, str):
            line, meant = line + part, meant + part
            continue
        word = _word(part, line)
        if part.text and not _PLAIN.fullmatch(part.text):
            name = f"{_NAME}{len(values)}Of"
            values[name], meant = part.text, meant + name
        else:
            meant += word
        line += word
    if values and (_COMPUTES.search(meant) or not _is_as_meant(read(line), read(meant), values)):
        raise Refused(
            "An argument has signs in it that a shell could take for a part of this command, so the command is not run. "
            "Give the argument without them, or put it into plain words of the command."
        )
    return line


def _word(value: Value, before: str) -> str:
    if value.text is None:
        return value.missing if value.missing and quote_at(before) == "'" else ""
    if _NAMES_FOLLOW.search(before):
        raise Refused("An argument stands where a shell reads a name, so the command is not run.")
    if _PLAIN.fullmatch(value.text):
        return value.text
    sign = quote_at(before)
    if sign is None:
        raise Refused(
            "An argument with signs that mean something to a shell stands where it cannot be quoted (behind a "
            "substitution, a comment or a here-document), so the command is not run."
        )
    return f"{sign}{quote(value.text)}{sign}"


def name_in_line(name: str, line: str) -> str:
    """Return a file's name as one word behind the beginning of a `!` line, all of it; "" where a quote is open, or may be, and a shell takes the name otherwise than it stands."""
    word = quote(name)
    return word if word == name or quote_at(line.lstrip().lstrip("!")) == "" else ""


def quote_at(before: str) -> str | None:
    """Return the quote that is open behind a text, or nothing; None where that is not certain."""
    sign, at = "", 0
    while at < len(before):
        each = before[at]
        if sign == "'":
            sign = "" if each == "'" else sign
        elif closed := _CLOSED.match(before, at):
            at = closed.end() - 1
        elif before.startswith(_OTHER_RULES, at) or (not sign and _is_other(before, at)):
            return None
        elif each == "\\":
            at += 1
        elif each in "'\"" and not (sign and each == "'"):
            sign = "" if sign else each
        at += 1
    return sign if at == len(before) else None


def _is_other(before: str, at: int) -> bool:
    """Return whether a comment, or a quote with rules of its own, begins there."""
    is_comment = before[at] == "#" and before[at - 1 : at].strip(" \t\n;|&()") == ""
    return is_comment or before.startswith(("$'", '$"'), at)


def _is_as_meant(real: Reading, meant: Reading, values: Mapping[str, str]) -> bool:
    """Return whether a command reads as the one with plain names for its values, through all shells that it starts."""
    if not (real.is_clear and meant.is_clear) or len(real.runs) != len(meant.runs):
        return False
    for ran, wanted in zip(real.runs, meant.runs, strict=True):
        words = [_with_values(word, values) for word in wanted.words]
        given = [_with_values(word, values) for word in (*wanted.targets, *wanted.sources)]
        if ran.words != words or [*ran.targets, *ran.sources] != given:
            return False
        if _could_run(wanted.words, codes_in(wanted), values):
            return False
    # What stands elsewhere, in a variable or a loop, is handed on to who knows what.
    held = [each for run in meant.runs for each in (*run.words, *run.targets, *run.sources)]
    return all(any(name in each for each in held) for name in values)


def _could_run(words: Sequence[str], codes: Sequence[str], values: Mapping[str, str]) -> bool:
    """Return whether a program could take a value for code: its own words, or what it is handed on."""
    program = posixpath.basename(words[0]) if words else ""
    stem = (_STEM.findall(program) or [""])[0]
    is_shell = program in SHELLS
    reads_code = (is_shell or stem in INTERPRETED) and all(word[:1] == "-" for word in words[1:])
    if program in _RUN_MORE or reads_code or (is_shell and codes):
        return True
    held = words if stem in _TAKE_CODE or program in _KEEP else codes
    return any(name in word for word in held for name in values)


def _with_values(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text
