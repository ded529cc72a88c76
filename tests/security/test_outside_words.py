"""The words that a star of `safety.outside_sandbox` stands for: each counts for itself, whatever stands before it."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from shlex import join

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ybs.security.commands.wrappers import read
from ybs.security.policy.rules import ACTIONS, OPTIONS, VERBS, options_of, outside_rules

#: What of git takes a value: a text, or the name of a new branch.
TAKING = {"-m", "--message", "-b", "-c"}
_BEGINNINGS = [f"{program} {verb}" for program in ("git", "gh", "glab") for verb in sorted(VERBS[program])]  # fmt: skip


def _options(beginning: str) -> set[str]:
    return options_of(read(beginning).parts[0])


def _is_known(word: str, beginning: str) -> bool:
    known = _options(beginning)
    is_joined = re.fullmatch("-[A-Za-z]+", word) and {f"-{each}" for each in word[1:]} <= known
    return word in known or bool(is_joined)


_KNOWN = sorted({word for beginning in OPTIONS for word in _options(beginning)})
_DASHED = st.sampled_from(_KNOWN) | st.from_regex(r"-[!-~]{0,9}", fullmatch=True)
_JOINED = st.builds(str.__add__, st.sampled_from(_KNOWN), st.from_regex(r"=?[!-~]{1,6}", fullmatch=True))  # fmt: skip
_WORDS = st.lists(_DASHED | _JOINED | st.text("ab./: -", max_size=6), max_size=6)
_RULES = st.sampled_from(["git *", "gh *", "glab *", "git tag -u *", "gh pr * -R me/x"])


@given(
    pattern=_RULES,
    beginning=st.sampled_from(_BEGINNINGS),
    action=st.sampled_from(sorted(ACTIONS)),
    words=_WORDS,
)
def test_no_word_that_begins_with_a_dash_is_covered_unless_it_is_named_or_in_the_table(
    pattern: str, beginning: str, action: str, words: list[str]
) -> None:
    (rule,) = outside_rules([pattern])
    parts = read(join([*beginning.split(), action, *words])).parts
    if len(parts) != 1 or not rule.lets_out(parts[0]):
        return
    left = [word for word in words if word[:1] == "-" and not _is_known(word, beginning)]
    assert sorted(left) == sorted(set(left) & set(pattern.split()))


@given(beginning=st.sampled_from(_BEGINNINGS), before=_WORDS, word=_JOINED)
def test_no_joined_option_is_covered_whatever_stands_before_it_but_letters_of_the_table(
    beginning: str, before: list[str], word: str
) -> None:
    rules = outside_rules(["git *", "gh *", "glab *"])
    for part in read(join([*beginning.split(), "list", *before, word])).parts:
        is_known = _is_known(word, beginning)
        assert is_known or not any(rule.lets_out(part) for rule in rules)


def _said_by_git() -> Iterator[tuple[str, str, str]]:
    for beginning in OPTIONS:
        program, verb = beginning.split()
        if program == "git" and (git := shutil.which("git")):
            done = subprocess.run([git, verb, "-h"], check=False, capture_output=True, text=True)
            yield from ((verb, option, done.stdout) for option in _options(beginning))


@pytest.mark.integration
def test_git_says_of_no_option_of_the_table_that_it_takes_a_value() -> None:
    for verb, option, said in _said_by_git():
        for line in said.splitlines():
            head = re.match(r"\s+((?:-\S+, )?-\S*)( <| \()?", line)
            if head and option in head[1].split(", "):
                assert bool(head[2]) is (option in TAKING), (verb, line)


def test_the_table_names_each_option_as_one_word_of_a_verb() -> None:
    for beginning in OPTIONS:
        program, verb = beginning.split()
        assert verb in VERBS[program]
        for option in _options(beginning):
            assert re.fullmatch(r"--|-[A-Za-z]|-\d+|--[a-z]+(?:-[a-z]+)*", option), option
