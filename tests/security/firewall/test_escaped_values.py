"""Values with a quote, a backslash or another sign in them, written as each format writes it."""

import base64
from random import Random
from urllib.parse import quote

import pytest
from msgspec import Raw, json
from secrets_corpus.drawing import draw

from rows import every_row
from ybs.core.messages import ToolCall
from ybs.security.firewall import structs
from ybs.security.firewall.masking import Firewall

#: The end of a key, and what may stand before its quote: nothing, too little to be a key, and enough.
TAIL = draw("[A-Za-z0-9]{26}", Random(5))
HEADS = ("", "ab", "abcdefg", draw("[A-Za-z0-9]{12}", Random(6)))
QUOTED = {
    "JSON": '{{"api_key": "{}"}}',
    "TOML": 'api_key = "{}"',
    "YAML": "api_key: '{}'",
    "Python": "API_KEY = '{}'",
    "a file of variables": 'API_KEY="{}"',
    "JavaScript": "apiKey: `{}`,",
    "a password": "password: '{}'",
}
ESCAPES = ('\\"', "\\'", "\\\\", "\\/x", "\\u0022", "\\x22", "\\042", "\\u{22}", "\\U00000022", '\\\\\\"', "''", '""')  # fmt: skip
NAMES = ("api_key", "password", "signing_key")


@pytest.mark.integration
@every_row("escape", ESCAPES)
def test_an_escape_in_quotes_does_not_end_a_value(escape: str) -> None:
    for form, frame in QUOTED.items():
        for head in HEADS:
            text = frame.format(f"{head or 'x'}{escape}{TAIL}")
            masked = Firewall().mask(text)
            assert TAIL not in masked, (form, text)
            assert (head or " ") not in masked.partition(frame[:6])[2].partition("[")[2], text


def test_a_value_that_begins_with_an_escape_is_found() -> None:
    for form, frame in QUOTED.items():
        for escape in ('\\"', "\\\\", "\\u0022"):
            assert TAIL not in Firewall().mask(frame.format(escape + TAIL)), form


@pytest.mark.integration
@every_row("name", NAMES)
def test_a_value_in_json_within_json_is_found_with_and_without_escapes(name: str) -> None:
    for head in HEADS:
        for sign in ("", '"', "\\", "/", "<"):
            inner = json.encode({name: (head or "x") + sign + TAIL}).decode()
            if sign == "<":
                inner = inner.replace("<", "\\u003c")
            once = json.encode({"body": inner}).decode()
            assert TAIL not in Firewall().mask(once), once
            assert TAIL not in Firewall().mask(f"got {once[9:-2]} from it"), once


def test_a_value_in_quotes_that_are_escaped_three_times_is_found() -> None:
    text = json.encode(json.encode(json.encode({"api_key": TAIL}).decode()).decode()).decode()
    assert TAIL not in Firewall().mask(text)


def test_signs_that_a_shell_would_read_do_not_end_a_value_without_quotes() -> None:
    for sign in "$!&=:;()":
        assert TAIL not in Firewall().mask(f"API_KEY=ab\\{sign}{TAIL}\n"), sign


def test_a_quote_behind_a_backslash_ends_a_value_that_such_a_quote_began() -> None:
    text = f'{{"cmd": "login --token=\\"{TAIL}\\" --then-9x8c7v6b5n"}}'
    assert Firewall().mask(text) == text.replace(TAIL, "[ybs:secret:assigned-secret#1]")


@pytest.mark.integration
@every_row("name", NAMES)
def test_no_quote_ends_the_value_of_a_member_of_json(name: str) -> None:
    for head in HEADS:
        for sign in ('"', "'", "`", "\\", '\\"'):
            raw = Raw(json.encode({"a": [{name: head + sign + TAIL}]}))
            assert TAIL.encode() not in bytes(Firewall().mask_json(raw)), raw
            call = ToolCall(id="1", name="x", arguments=raw)
            assert TAIL not in repr(structs.masked(Firewall(), call)), raw


def test_a_value_of_a_member_that_the_person_allowed_stays_whatever_is_in_it() -> None:
    firewall = Firewall()
    raw = Raw(json.encode({"api_key": f'ab"{TAIL}'}))
    firewall.mask_json(raw)
    firewall.allow("[ybs:secret:assigned-secret#1]")
    assert firewall.mask_json(raw) is raw


def test_a_value_that_ends_with_the_encoded_text_is_found(firewall: Firewall) -> None:
    said = f"API_KEY={TAIL}"
    forms = (
        base64.b64encode(said.encode()).decode(),
        said.encode().hex(),
        "".join(f"%{code:02x}" for code in said.encode()),
        said.encode("utf-16-le").decode(),
        "x=" + quote(f"API_KEY=ab={TAIL}"),
        f"API_KEY=ab\\u003d{TAIL}",
        f"API_KEY=abq\\x21{TAIL}",
    )
    for form in forms:
        assert firewall.mask(form) != form, form


@every_row(
    "text",
    [
        "password = '\\\\d+\\\\w{2}'",
        '"token": "\\u30c8\\u30fc\\u30af\\u30f3 x"',
        '"password": "\\u30d1\\u30b9\\u30ef\\u30fc\\u30c9\\u3092\\u5165\\u529b"',
        '"api_key": "Cl\\xe9_de_l\\u2019API"',
        'key = "it\\"s"',
        "secret: 'don''t_say_it'",
        'token = "one\\ntwo"',
        'secret = "first_name\\/last_name"',
    ],
)
def test_an_escape_makes_no_secret_of_what_is_none(firewall: Firewall, text: str) -> None:
    assert firewall.find(text) == ()
