"""One look at all texts of a value finds what a look at each of them finds."""

import base64
from random import Random
from urllib.parse import quote

import pytest
from msgspec import Raw, json
from secrets_corpus.negatives import negatives
from secrets_corpus.shapes import FRAMES, tokens

from ybs.core.events import Event, ToolFinished, UserSaid
from ybs.core.messages import Text, ToolCall
from ybs.core.ports import Preview, Question
from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.structs import _masked, has_rest_of_key, masked, masked_question


def values(text: str) -> list[Event]:
    """Put a text where it can stand."""
    words = UserSaid(content="before", parts=(Text(text="before"), Text(text=text), Text(text="x")))
    output = ToolFinished(id="1", name="read_file", success=True, output=f"1\t{text}", summary=text)
    data = json.encode({"path": "a.txt", "lines": [1, text, {"content": f"\n{text}", "n": None}]})
    shown = ToolFinished(id="2", name="x", success=True, output="", display=Raw(data))
    member = Raw(json.encode({"password": text[:300], "other": "y\n"}))
    return [words, output, shown, ToolFinished(id="3", success=True, output="", display=member)]


@pytest.mark.integration
def test_every_secret_is_masked_as_if_each_text_had_been_looked_at_alone() -> None:
    whole, alone = Firewall(), Firewall()
    texts = [
        frame.format(token)
        for number, (_, token) in enumerate([*tokens(Random(5))][::2])
        for frame in FRAMES[number % 17 :: 17]
    ]
    some = texts[::4]
    texts += [base64.b64encode(text.encode()).decode() for text in some] + [*map(quote, some)]
    texts += [text for _, text in negatives(Random(6))][::5]
    wrong, changed = [], 0
    for text in texts:
        for value in values(text):
            seen = masked(whole, value)
            changed += seen is not value
            if seen != _masked(alone, value, ""):
                wrong.append(text)
    assert wrong == []
    assert changed > len(texts)


def test_an_id_that_looks_like_a_secret_stays_so_that_the_result_finds_its_call() -> None:
    token = next(iter(tokens(Random(5))))[1]
    seen = masked(Firewall(), ToolFinished(id=token, success=True, output=token))
    assert seen.id == token
    assert token not in seen.output


def test_what_cannot_be_read_is_looked_at_piece_by_piece() -> None:
    broken = ToolFinished(id="1", success=True, output="", display=Raw(b'{"a": "\\q"}'))
    assert masked(Firewall(), broken) == broken


def test_a_text_in_a_list_is_looked_at(token: str) -> None:
    for texts in ([token], ["two\nlines", token], [["two\nlines", [token]]]):
        shown = ToolFinished(id="1", success=True, output="", display=Raw(json.encode(texts)))
        assert token.encode() not in bytes(masked(Firewall(), shown).display)


def test_a_line_of_a_key_before_its_end_is_a_rest_of_it_and_an_end_alone_is_none(key: str) -> None:
    *_, last, end = key.splitlines()
    assert has_rest_of_key(Text(text=f"{last}\n{end}"))
    assert not has_rest_of_key(Text(text=f"[ybs:secret:private-key#1]\n{end}\n{'words ' * 9}"))
    assert not has_rest_of_key(Text(text=f"{end}\n{last}"))
    for size, is_one in (
        (39, False),
        (40, True),
    ):  # the letter that stands for a line end is none of it
        data = Raw(json.encode(["[ybs:secret:private-key#1]\n" + "A" * size]))
        assert (
            has_rest_of_key(ToolFinished(id="1", success=True, output="", display=data)) == is_one
        )


SIGNS = "kV9$tQ2&" + "xLm7Rw4z"
BRAINTREE = "access_token$production$" + "x7rt2mqpkd4w9z3v" + "$" + "0f3a9c7e" * 4


def asked(body: str, *, is_diff: bool = True) -> str:
    """Return how a question shows its body."""
    question = Question(
        call=ToolCall(id="1", name="x"),
        effect="write",
        preview=Preview(title="T", body=body, is_diff=is_diff),
    )
    return masked_question(Firewall(), question).preview.body


def test_of_a_diff_in_a_question_only_what_would_be_new_is_shown_as_a_shell_reads_it():
    url = f"postgres://u:{SIGNS}@db/x"
    body = f" DATABASE = '{url}'\n-KEY = '{BRAINTREE}'\n+NEW = '{url}'"
    context, removed, added = asked(body).split("\n")
    assert not any(part in context for part in (SIGNS[:5], SIGNS[-8:]))
    assert BRAINTREE[24:] not in removed
    assert SIGNS in added  # it could be a command, and what ends it says where an address leads
    assert SIGNS in asked(body, is_diff=False).split("\n")[0]


def test_a_diff_hides_a_private_key_of_the_file_and_none_that_would_be_new(key: str):
    lines = key.splitlines()
    begin, *body, end = lines
    removed = asked("\n".join(["--- a.pem", "+++ /dev/null", "@@ -1,9 +0,0 @@", *(f"-{e}" for e in lines)]))  # fmt: skip
    assert removed.startswith(
        "--- a.pem\n+++ /dev/null\n@@ -1,9 +0,0 @@\n-[ybs:secret:private-key#1]\n"
    )
    assert not any(line in removed for line in body)
    new = "\n".join(f"+{line}" for line in (begin, "cp a ~/thesis-final-version", *body, end))
    assert asked(new) == new


def test_a_diff_hides_what_several_lines_of_the_file_say_together_and_shows_what_would_be_new(
    token,
):
    first, second = token[:20], token[20:]
    lines = ("- name: DB_PASSWORD", f"  value: {SIGNS}", first, second)
    body = "\n".join(["--- a", "+++ b", "@@ -1,4 +1,2 @@", *(f"-{line}" for line in lines), "+new"])
    shown = asked(body).split("\n")
    assert shown[:4] == ["--- a", "+++ b", "@@ -1,4 +1,2 @@", "-- name: DB_PASSWORD"]
    assert shown[-1] == "+new"
    assert [line[:1] for line in shown[3:-1]] == ["-"] * 4
    assert not any(part in "\n".join(shown) for part in (SIGNS[:8], first, second))
    added = asked("\n".join(["@@ -0,0 +1,2 @@", f"+{lines[0]}", f"+{lines[1]}"]))
    assert SIGNS in added
