"""Placeholders: stable, final, and never in the way of a text without secrets."""

import base64
import re
from base64 import b64encode
from random import Random
from typing import Any
from urllib.parse import quote as quoted

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from secrets_corpus.drawing import draw
from secrets_corpus.shapes import FRAMES, private_key, tokens

from rows import every_row
from ybs.config.schema import FirewallSettings as Settings
from ybs.core.errors import ConfigError
from ybs.security.firewall import toolbox as stream_module
from ybs.security.firewall.allowed import AllowList
from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.rules import KINDS, RULES, guessed_kinds
from ybs.security.firewall.toolbox import StreamMask, is_open
from ybs.security.firewall.vault import Vault, is_placeholder, own_secrets

MOST_HELD = 6_000


@every_row(
    "value, is_secret",
    [
        ("/uQ7dE2fGh9JkLm3NpR5" + "sTuV8wXyZ1cB4K6tAbCd", True),  # base64
        ("/i5DH96PaqXHYonlD4Z/fu2GGZcKtADoAAaiM8A0h", True),
        ("~/Zq7Rs9Tu2" + "Vw4Lm", True),
        ("Pq7<Rs9>Tu2&" + "Vw4Xy6", True),
        ("$Kp7Rs9Tu2" + "Vw4Xy6", True),
        ("[Qz7Rs9]Tu2!" + "kLm", True),
        ("{{aB3}}dE5f" + "G7hJ9k", True),
        ("a...b7Rs9" + "Tu2Vw4X", True),
        ("/home/me/key.pem", False),
        ("~/keys/id_ed25519", False),
        ("/run/user/1000/keyring-1a2b3c4d/ssh", False),
        ("${SOME_KEY_2}", False),
        ("$SOME_KEY_2", False),
        ("$(pass show key1)", False),
        ("{{ secrets.K1 }}", False),
        ("<your 32-char key>", False),
        ("changeme123", False),
    ],
)
def test_a_value_is_no_secret_where_it_is_a_path_or_stands_for_one(value: str, is_secret: bool):
    assert own_secrets({"THE_TOKEN": value}) == ([value] if is_secret else [])


@every_row(
    "text",
    [
        "tg" + "p_v1_aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYzAbaB3dE5f4",
        "sy" + "t_YWRh_kLmNoPqRsTuVwXyZaBcD_1x2Y3z",
        "ma" + "t_kLmNoPqRsTuVwXyZaBcDkLmNoPqRsT_1x2Y3z",
        "EA" + "AGm0PX4ZCpsBA" + "Kz9Xw3Vb7Nm2Qr5Tt8" * 9,
        "Private-" + "Lines: 1\nAAAAIGh1bmRyZWRzb2ZzZWNyZXRieXRlc2FyZWhlcmVvaG5v\nPrivate-MAC: 7f",
        "7\tPrivate-"
        + "Lines: 1\n8\tAAAAIGh1bmRyZWRzb2ZzZWNyZXRieXRlc2FyZWhlcmVvaG5v\n9\tPrivate-MAC: 7f",
        '{"kty":"OKP","x":"11qYAYKx","d":"nWGxne_9WmC6hEr0kuwsxERJ' + 'xWl7MmkZcDusAxyuf2A"}',
    ],
)
def test_keys_of_platforms_and_in_other_forms_are_masked(text: str):
    assert "[ybs:secret:" in Firewall().mask(f"before {text} behind")


#: A password; in parts, so that no scanner finds it here.
PW = "Tr0ub4" + "dorx"
TOKENS = [token for _, token in tokens(Random(9))]
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
PLANTED = st.lists(st.tuples(WORDS, st.sampled_from(TOKENS), st.sampled_from(FRAMES)), min_size=1, max_size=4)  # fmt: skip


def planted(parts: list[tuple[str, str, str]]) -> str:
    return "\n".join(f"{words} {frame.format(token)} " for words, token, frame in parts)


@pytest.mark.integration
@given(PLANTED)
def test_masking_twice_changes_nothing_more(parts: list[tuple[str, str, str]]) -> None:
    firewall = Firewall()
    masked = firewall.mask(planted(parts))
    assert firewall.mask(masked) == masked
    assert Firewall().mask(masked) == masked


@pytest.mark.integration
@given(st.text("abc dÄ€\U0001f600\n=:'\"%{}[]#-+/\\\0", max_size=200))
def test_a_text_without_secrets_stays_as_it_is(text: str) -> None:
    assert Firewall().mask(text) is text


@pytest.mark.integration
@given(PLANTED, st.lists(st.integers(1, 60), min_size=1, max_size=20))
def test_x02_no_planted_secret_is_left_however_the_text_is_cut(
    parts: list[tuple[str, str, str]], sizes: list[int]
) -> None:
    text = planted(parts)
    stream = StreamMask(Firewall(), "a test")
    shown, place = "", 0
    for number in range(10_000):
        size = sizes[number % len(sizes)]
        shown += stream.feed(text[place : place + size])
        place += size
        if place >= len(text):
            break
    shown += stream.close()
    assert not any(token in shown for _, token, _ in parts)
    assert shown.count("[ybs:secret:") >= 1


def test_x02_a_token_on_two_lines_is_masked_with_the_line_end(
    firewall: Firewall, token: str
) -> None:
    text = f"see {token[:20]}\n{token[20:]} there"
    assert firewall.mask(text) == "see [ybs:secret:github-token#1] there"


def test_no_beginning_of_a_word_is_let_go_before_its_end_is_judged() -> None:
    own, token = (
        "Tq9xLm4" + "Vb2RkWe" + "7Hs!Zk8Nc" + "3Wd6Yf",
        "ghp" + "_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5",
    )
    coloured = f"\x1b[01;31m\x1b[K{token[:20]}\x1b[m\x1b[K{token[20:]}"
    for secret, shown in ((own, own), (token, coloured)):
        stream = StreamMask(Firewall(own=[own]))
        live = stream.feed(f"login with {shown}\n") + stream.feed("more\n") + stream.close()
        assert secret[:8] not in live
        assert "[ybs:secret:" in live
        assert live.endswith("\nmore\n")


@pytest.mark.parametrize(
    "sign",
    [
        "\r",
        "\b",
        "\x01",
        "\v",
        "\f",
        "\x85",
        "\x7f",
        "\x1bM",
        "\x1b]0;t\a",
        "\u2028",
        "\ufff9",
        "<U+001B>(B",
        "<U+001B>]0;t<U+0007>",
    ],
)
def test_a_token_with_a_sign_in_it_that_tools_leave_out_is_masked(
    firewall: Firewall, token: str, sign: str
) -> None:
    text = f"see {token[:12]}{sign}{token[12:]} there\n"
    masked = "see [ybs:secret:github-token#1] there\n"
    assert firewall.mask(text) == masked
    stream = StreamMask(firewall)
    assert stream.feed(text) + stream.close() == masked


def test_a_stream_lets_progress_go_at_once(firewall: Firewall) -> None:
    stream = StreamMask(firewall)
    assert [stream.feed(each) for each in ("..", "%", ".\r", "wai", "ting")] == [
        "..",
        "%",
        ".\r",
        "",
        "",
    ]
    assert stream.close() == "waiting"


def test_a_stream_holds_a_key_back_until_it_ends(firewall: Firewall, key: str) -> None:
    stream = StreamMask(firewall)
    shown = "".join(
        stream.feed(piece) for piece in (f"before\n{key}\nafter\n".splitlines(keepends=True))
    )
    assert shown + stream.close() == "before\n[ybs:secret:private-key#1]\nafter\n"


def test_a_stream_masks_a_value_by_the_name_that_went_on_before(firewall: Firewall) -> None:
    stream = StreamMask(firewall)
    assert stream.feed("db_password = ") == "db_password = "
    assert stream.feed(f'"{PW}"\n') == '"[ybs:secret:assigned-secret#1]"\n'
    assert stream.feed("x oo open") + stream.close() == "x oo open"


def test_a_stream_holds_back_own_secrets_with_spaces_in_them() -> None:
    stream = StreamMask(Firewall(own=["open sesame now"]))
    shown = [
        stream.feed(piece)
        for piece in ("I say so open ", "open sesame ", "now or open sesame never ")
    ]
    assert (
        "".join(shown) + stream.close()
        == "I say so open [ybs:secret:own-secret#1] or open sesame never "
    )


def test_a_stream_holds_back_every_beginning_of_an_own_secret_with_spaces() -> None:
    stream = StreamMask(Firewall(own=["aab bcc dd"]))
    shown = stream.feed("see aaab ") + stream.feed("bcc dd now") + stream.close()
    assert shown == "see a[ybs:secret:own-secret#1] now"


@pytest.mark.parametrize(
    "before", [MOST_HELD - 4_090, MOST_HELD - 1_110, MOST_HELD, MOST_HELD + 2_980, 0]
)
def test_a_stream_lets_a_very_long_word_go_but_no_secret_in_it(
    before: int, firewall: Firewall, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "MOST_HELD", MOST_HELD)
    stream = StreamMask(firewall)
    word = "." * before + token + "." * (MOST_HELD + 50)
    shown = "".join(stream.feed(word[at : at + 3_000]) for at in range(0, len(word), 3_000))
    assert shown
    assert (shown + stream.close()) == word.replace(token, "[ybs:secret:github-token#1]")


@pytest.mark.integration
def test_a_secret_longer_than_is_held_is_masked_in_parts(
    firewall: Firewall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "MOST_HELD", MOST_HELD)
    stream = StreamMask(firewall)
    text = base64.b64encode((f"password = '{PW}' " * 400).encode()).decode()
    shown = stream.feed(text) + stream.feed(text) + stream.close()
    assert text[:1000] not in shown


def test_the_same_secret_has_the_same_placeholder_and_others_have_others(
    firewall: Firewall, token: str
) -> None:
    other = draw("ghp_[A-Za-z0-9]{36}", Random(4))
    text = f"{token} {other} {token}"
    assert (
        firewall.mask(text)
        == "[ybs:secret:github-token#1] [ybs:secret:github-token#2] [ybs:secret:github-token#1]"
    )
    assert firewall.mask(token) == "[ybs:secret:github-token#1]"
    assert [row.count for row in firewall.report.rows] == [3, 1]


def test_a_value_once_known_is_masked_without_its_name(firewall: Firewall) -> None:
    long = PW + "88xyzA12"
    assert firewall.mask(f"pwd: {long} and {long}").count("assigned-secret#1") == 2
    assert PW not in firewall.mask(f"later: {long}")


def test_places_are_counted_in_characters(firewall: Firewall, token: str) -> None:
    text = f"Ä€\U0001f600 {token} ü {token}"
    assert [text[one.start : one.end] for one in firewall.find(text)] == [token, token]
    assert firewall.find("\udcff " + token)[0].start == 2


def test_a_place_ends_with_a_whole_character(firewall: Firewall) -> None:
    password = PW
    for text, found in {
        "x://u:" + password + "ä@h": password + "ä",
        "x://u:ä" + password + "@h": "ä" + password,
        "curl -u b:" + password + "ä x": "b:" + password + "ä",
    }.items():
        assert [text[one.start : one.end] for one in firewall.find(text)] == [found]
    for long in ("x://u:" + "ä" * 150 + "@h", "curl -u b:" + "ä" * 99 + " x"):
        assert firewall.mask(long) == long
    own = Firewall(own=["pässwörtli"])
    assert own.mask("das pässwörtli!") == "das [ybs:secret:own-secret#1]!"
    half = Firewall()
    half.vault._own = {"å pässwõ".encode()[1:-1]: None}
    assert half.mask("das å pässwõrtli!") == "das [ybs:secret:own-secret#1]rtli!"


def test_a_placeholder_hides_nothing_but_its_own_words(
    firewall: Firewall, token: str, key: str
) -> None:
    for kind in KINDS:
        assert firewall.find(f"[ybs:secret:{kind}#1]") == (), kind
    own = "[ybs:secret:password#1]"
    assert firewall.mask(
        "see [ybs:secret:github-token#3] and [ybs:secret:assigned-secret#12345]"
    ).endswith("#12345]")
    assert token not in firewall.mask(f"[ybs:secret:{token}#1]")
    assert "sesame" not in Firewall(own=["sesame-[ybs:"]).mask("sesame-[ybs:secret:jwt#1]")
    assert token not in firewall.mask(f"{own} {token} {own}")
    assert key[90:150] not in firewall.mask(key.replace(key[300:310], "[ybs:secret:jwt#1]"))


def test_texts_in_json_are_masked_after_decoding(firewall: Firewall, token: str) -> None:
    escaped = "\\u0067" + token[1:]
    raw = Raw(f'{{"a": ["{escaped}", 1, null], "{token}": true, "b": "plain"}}'.encode())
    masked = bytes(firewall.mask_json(raw))
    assert (
        masked
        == b'{"a":["[ybs:secret:github-token#1]",1,null],"[ybs:secret:github-token#1]":true,"b":"plain"}'
    )
    # Only who decodes it sees that this is one word.
    apart = Raw(b'{"api_key": "%b\\/%b"}' % (token[4:6].encode(), token[6:].encode()))
    assert token[6:].encode() not in bytes(firewall.mask_json(apart))
    plain = Raw(b'{ "a" : 1.0 }')
    assert firewall.mask_json(plain) is plain


def test_a_member_is_judged_with_its_name(firewall: Firewall) -> None:
    raw = Raw(
        b'{"password": "%b", "name": "%b", "token": "words only", "secret": "'
        % (PW.encode(), PW[::-1].encode())
        + b""
        + b"x" * 500
        + b'"}'
    )
    masked = bytes(firewall.mask_json(raw))
    assert PW.encode() not in masked
    assert PW[::-1].encode() in masked
    token = draw("ghp_[A-Za-z0-9]{36}", Random(2))
    assert firewall.mask_data({token: "plain"}) == {"[ybs:secret:github-token#1]": "plain"}
    data: dict[str, Any] = {"api_key": draw("[a-z0-9]{30}", Random(2)) + '"x'}
    assert firewall.mask_data(data) != data


@every_row("value", [7, 1.5, True, None, ["one", "two"], {"size": 3}])
def test_a_member_that_is_not_a_text_keeps_its_value(firewall: Firewall, value: object) -> None:
    assert firewall.mask_data({"api_key": value, "password": value}) == {
        "api_key": value,
        "password": value,
    }


def test_a_long_number_that_its_name_says_to_be_a_secret_is_masked(firewall: Firewall) -> None:
    masked = firewall.mask_data({"password": int("9134705826" * 3), "size": 913470582691})
    assert masked == {"password": "[ybs:secret:assigned-secret#1]", "size": 913470582691}


def test_what_is_no_json_is_masked_as_text(firewall: Firewall, token: str) -> None:
    assert token.encode() not in bytes(firewall.mask_json(Raw(b'{"a": ' + token.encode())))
    broken = Raw(b"{nothing")
    assert firewall.mask_json(broken) is broken


def test_own_secrets_come_from_variables_named_like_secrets() -> None:
    environ = {
        "DB_PASSWORD": PW,
        "GH_TOKEN": " spaced-token-" + "value1 ",
        "DATABASE_URL": "postgres://u:" + f"p%40{PW}@h/d",
        "OTHER_URL": "postgres://u:password@h/d",
        "SHORT_URL": "postgres://u:" + "Xk39dk2P" + "@h/d",
        "SSH_AUTH_SOCK": "/tmp/agent.123456",
        "SIGNING_KEY": "/home/me/key.pem",
        "API_KEY": "short",
        "PASSWORD": "changeme",
        "PWD": "/home/me/c++ work",
        "MAIL_URL": "smtp://me@h.example:" + f"q@{PW}@h/",
        "KEYBOARD": "abcdefgh-layout",
        "EDITOR": "some-long-editor",
    }
    values = own_secrets(environ, keys=["ybs-own-key-1", " tiny "])
    assert values == [
        "ybs-own-key-1",
        PW,
        "spaced-token-value1",
        f"p%40{PW}",
        f"p@{PW}",
        "Xk39dk2P",  # as short as one may be
        f"q@{PW}",
    ]


@every_row("before", ["", "x", "xy", "xyz"])
def test_own_secrets_are_found_in_every_form(before: str) -> None:
    firewall = Firewall(own=['s€cret "quoted" / value'])
    secret = 's€cret "quoted" / value'
    packed = base64.b64encode(f"{before}{secret} and more".encode()).decode()
    for text in (
        secret,
        "a=s%E2%82%ACcret%20%22quoted%22%20%2F%20value",
        packed,
        '{"a": "s€cret \\"quoted\\" / value"}',
    ):
        assert firewall.mask(text) != text
    # Of base64 every character that belongs to the secret alone.
    first, last = -(-len(before) * 8 // 6), (len(before) + len(secret.encode())) * 8 // 6
    known = {form for form, _ in firewall.vault.known()}
    assert packed[first:last].encode() in known


def test_an_own_secret_of_several_lines_is_masked_line_by_line() -> None:
    lines = [
        "alpha9Xq2" + "Lm7ZpQw3",
        "beta4Rt8W" + "v1KdNs6Yh",
        "QwERtyUiOp" + "AsDFghJkLZxcVBnmQaWs",
    ]
    frame = ["-----BEGIN DATA-----", "login: service1", "password: Zx9kQ2" + "mLp7wVt4", "tiny1"]
    own = "\n".join([*frame[:3], "", f'"{lines[0]}",', *lines[1:], frame[3]])
    firewall = Firewall(own=[own])
    for text in (
        "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(own.splitlines())),
        "\n".join(f"{number}:{line}" for number, line in enumerate(own.splitlines())),
        own.replace("\n", "\n    "),
        msgspec.json.encode({"note": own}).decode(),
    ):
        masked = firewall.mask(text)
        assert [one for one in (*lines, frame[2][10:]) if one in masked] == []
    harmless = "\n".join((*frame[:2], "password: ", frame[3]))
    assert firewall.mask(harmless) == harmless


def test_what_is_allowed_is_left_alone(token: str) -> None:
    from hashlib import sha256

    digest = sha256(token.encode()).hexdigest()
    assert Firewall(Settings(allow=(digest,))).mask(token) == token
    assert Firewall(Settings(allow=("gh[a-z]_.*",))).mask(token) == token
    assert Firewall(Settings(allow=("glpat.*", "0" * 64))).mask(token) != token
    firewall = Firewall()
    firewall.allow(firewall.mask(token))
    firewall.allow("[ybs:secret:jwt#77]")
    assert firewall.mask(token) == token


def test_an_expression_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="firewall"):
        AllowList(("(",))
    assert not AllowList().holds("x")


def test_a_hash_on_the_list_stands_for_the_value_behind_it_and_not_for_itself(token: str) -> None:
    from hashlib import sha256

    digest = sha256(token.encode()).hexdigest()
    allowed = AllowList((digest.upper(),))
    assert allowed.holds(token)
    assert not allowed.holds(digest)
    assert not allowed.holds(digest.upper())


def test_the_report_names_kind_and_place_and_never_the_value(
    firewall: Firewall, token: str
) -> None:
    assert firewall.report.rows == []
    firewall.mask(token, "your message")
    firewall.mask(f"{token} {token}")
    placeholder = "[ybs:secret:github-token#1]"
    assert [(row.placeholder, row.place, row.count) for row in firewall.report.rows] == [
        (placeholder, "your message", 1),
        (placeholder, "", 2),
    ]
    assert token not in repr(firewall.report.rows)
    firewall.report.begin()
    assert firewall.report.latest == []
    firewall.mask(f"{token} {token}", "your message")
    assert [row.count for row in firewall.report.latest] == [2]
    assert [row.count for row in firewall.report.rows] == [3, 2]


def test_a_secret_that_becomes_known_later_is_masked_from_then_on() -> None:
    firewall = Firewall()
    late = "open" + "-ses"  # as short as one may be
    assert firewall.mask(f"say {late}") == f"say {late}"
    firewall.vault.keep([late, "shorter"])
    firewall.vault.keep([late])
    assert firewall.vault.learned == 1
    assert firewall.mask(f"say {late}") == "say [ybs:secret:own-secret#1]"
    assert firewall.mask("shorter") == "shorter"
    assert not firewall.are_clean([late])


def test_a_vault_knows_its_own_placeholders_only() -> None:
    vault = Vault()
    placeholder = vault.placeholder("jwt", "value-of-it")
    assert vault.value(placeholder) == "value-of-it"
    assert vault.value("[ybs:secret:jwt#2]") is None
    assert is_placeholder("[ybs:secret:jwt#2]")
    assert not is_placeholder("[ybs:secret:nonsense#2]")
    assert not is_placeholder("jwt")
    vault.placeholder("jwt", "short")
    assert [value for value, _ in vault.known()] == [b"value-of-it"]


@pytest.mark.integration
def test_private_keys_of_all_sorts_are_one_kind(firewall: Firewall) -> None:
    for kind in ("RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "):
        assert [one.kind for one in firewall.find(private_key(Random(1), kind))] == ["private-key"]


def test_a_value_known_by_its_member_alone_is_masked_with_every_other_in_it(
    firewall: Firewall,
) -> None:
    one, two = "Tr0ub4" + "dor8x", "c0rrect" + "h0rse"
    value = f"{one} and passwd={two} or {one}"
    masked = firewall.mask_data({"db_password": value, "note": "plain"})
    assert one not in masked["db_password"]
    assert two not in masked["db_password"]
    assert masked["note"] == "plain"
    assert [row.placeholder for row in firewall.report.rows] == [
        "[ybs:secret:assigned-secret#1]",
        "[ybs:secret:assigned-secret#2]",
    ]
    assert firewall.mask_data({"db_password": one}) == {
        "db_password": "[ybs:secret:assigned-secret#2]"
    }


@pytest.mark.parametrize("cuts", [(20,), (13, 27), (13, 26, 39), (10, 20, 30)])
def test_x02_a_token_that_came_in_lines_with_pauses_is_masked_whole(
    firewall: Firewall, token: str, cuts: tuple[int, ...]
) -> None:
    live = StreamMask(firewall)
    parts = [token[start:end] for start, end in zip((0, *cuts), (*cuts, None), strict=True)]
    lines = ["at 1\n", f"key: {parts[0]}\n", *(f"{each}\n" for each in parts[1:])]
    assert is_open(lines[1])
    shown = "".join(map(live.feed, lines))
    assert not any(each in shown for each in parts if len(each) > 3)
    shown += live.feed("done\n") + live.close()
    assert shown.startswith("at 1\nkey: [ybs:secret:github-token#1]")
    assert shown.endswith("\ndone\n")
    assert not any(each in shown for each in parts if len(each) > 3)
    result = firewall.mask(f"{token[:20]}\n{token[20:]}\n")
    assert token[:20] not in result
    assert token[20:] not in result


@pytest.mark.integration
def test_each_line_of_a_private_key_is_masked_once_its_file_is_known(key: str) -> None:
    firewall, body = Firewall(), key.splitlines()[1:-1]
    quoted = "\n".join(f'    "{line}\\n"' for line in key.splitlines())
    for text in (key, quoted, f"{key}\n{key[:40]}", key.rpartition("-----END")[0]):
        firewall = Firewall()
        firewall.learn_keys(f"some words\n{text}\nother words, {'a1' * 15}\n")
        assert [one for one in body if one in firewall.mask("\n".join(sorted(body)))] == []
        assert firewall.mask(f"other words, {'a1' * 15}") == f"other words, {'a1' * 15}"
    learned = firewall.vault.learned
    firewall.learn_keys(key)
    assert firewall.vault.learned == learned
    firewall.learn_keys("-----BEGIN " + "PRIVATE KEY-----\n...\n")
    assert firewall.vault.learned == learned


@every_row("own", ["Kq9xZ7" + "LpWt3m", "Wm2(xZ7)L" + "pWt3[mB5]vR8", "Gt5äxZ7" + "LpWt3mB5üvR8"])
def test_an_own_secret_is_found_in_disguise_whatever_it_is_made_of(own: str) -> None:
    middle = ord(own[4])
    for text in (
        f"{own[:4]}\\u{middle:04x}{own[5:]}",
        f"{own[:4]}%{middle:02x}{own[5:]}",
        f"{own[:4]}\u200b{own[4:]}",
        f"{own[:4]}\x1b[31m{own[4:]}\x1b[0m",
        "".join(
            one if one.isalnum() else f"&#{ord(one)};" for one in own[:4] + "_" + own[4:]
        ).replace("&#95;", "&#8203;"),
    ):
        assert "own-secret#1" in Firewall(own=[own]).mask(f"it is {text} ok"), text


def test_an_own_secret_is_found_in_json_within_json() -> None:
    own = text = "Hd4'xZ7LpWt3" + 'mB5"vR8nT2\\c6yH4'
    for _ in range(3):
        text = msgspec.json.encode({"line": text}).decode()
        assert "own-secret#1" in Firewall(own=[own]).mask(text), text


@every_row("size", [16, 20, 33])
def test_each_line_of_a_private_key_in_narrow_lines_is_masked_once_its_file_is_known(
    key: str, size: int
) -> None:
    begin, *body, end = key.splitlines()
    whole = "".join(body)
    lines = [whole[place : place + size] for place in range(0, len(whole) - size, size)]
    text = "\n".join(("src/components/button/index", begin, *lines, end, "src/components/form"))
    firewall = Firewall()
    firewall.learn_keys(text)
    masked = firewall.mask("\n".join(f"{n}\t{line}" for n, line in enumerate(reversed(lines))))
    assert [line for line in lines if line in masked] == []
    assert "src/components/button/index" in firewall.mask("src/components/button/index")


@pytest.mark.integration
def test_a_part_of_a_private_key_in_base64_is_masked_once_its_file_is_known(key: str) -> None:
    packed = base64.encodebytes(f"{key}\n".encode()).decode()
    firewall = Firewall()
    firewall.learn_keys(f"the key:\n{packed}\n")
    lines = packed.splitlines()[3:12]
    masked = firewall.mask("\n".join(f"{n}\t{line}" for n, line in enumerate(lines, 4)))
    assert [line for line in lines if line in masked] == []


def test_a_private_key_that_is_cut_off_is_masked_with_what_stands_between_its_lines(key: str):
    lines = key.splitlines()[:-1]
    said = "2026-11-29 10:00:01 INFO worker 3: job done (12 ms)"
    text = "\n".join(("start", *lines[:4], said, *lines[4:], "bye, and thanks"))
    masked = Firewall().mask(text)
    assert [line for line in lines if line in masked] == []
    assert masked.startswith("start\n[")
    assert masked.endswith("bye, and thanks")
    certificate = "-----BEGIN " + "CERTIFICATE-----\n"
    body = "\n".join(lines[5:])
    assert Firewall().mask(f"{lines[0]}\n{lines[1]}\n{certificate}{body}").endswith(body)


@every_row(
    "name, is_secret",
    [
        *(
            (name, True)
            for name in ("DB_PW", "SSHPASS", "BW_SESSION", "PRIVKEY", "WALLET_MNEMONIC")
        ),
        *((name, True) for name in ("SECRET_KEY_BASE", "DB_CONNECTION_STRING", "AWS_CREDS")),
        *((name, True) for name in ("SUPABASE_SERVICE_ROLE", "MY_SUPABASE_SERVICE_ROLE_2")),
        *((n, True) for n in ("GITHUB_TOKEN_WORK", "STRIPE_SECRET_KEY_TEST", "API_KEY_PERSONAL")),
        *(
            (n, False)
            for n in ("TOKEN_FILE", "SECRET_STORE", "AWS_ACCESS_KEY_ID", "TOKENIZER_KIND")
        ),
        *((name, False) for name in ("DESKTOP_SESSION", "IAM_SERVICE_ROLE", "BYPASS", "SPW")),
    ],
)
def test_variables_are_secret_by_their_names(name: str, is_secret: bool) -> None:
    value = "k7Qz" + "m2Xv9Lp4Rt8"
    assert own_secrets({name: value}) == ([value] if is_secret else [])


@every_row(
    "text",
    [
        "postgres://bob:{}@/db?host=/cloudsql/x",
        r'{{"url": "postgres:\/\/bob:{}@db.example\/x"}}',
        r'{{"url": "postgres:\/\/bob:{}@\/db?host=\/cloudsql\/x"}}',
        "smtp://shop@example.com:{}@smtp.example.com",
        "f'postgres://bob:{}@{{host}}/x'",
        'url = "mongodb://bob:{}@" + host',
        "bob:x@ mysql://bob:{}@(db:3306)/x",
        "postgres://${{DB_USER}}:{}@db/x",
        "postgres://bob:" + "P@{}@db.example/x",
        "postgres://admin:{}@:5432/db",
        "redis://:{}@*:6379/0",
        "https://deploy:{}@über.example/repo.git",
        "ftp://u:{}@日本.example/",
        f"https://{'a1' * 51}:{{}}@gate.example/",
    ],
)
def test_a_password_in_an_address_is_masked_however_the_address_is_written(text: str) -> None:
    assert PW + "9xQ" not in Firewall().mask(text.format(PW + "9xQ"))


def test_an_own_secret_is_found_as_a_page_and_php_write_it() -> None:
    import html

    own = "k9@Lm/4w+" + "Zt!7q#Rb&x"
    for text in (html.escape(own), own.replace("/", r"\/")):
        assert Firewall(own=[own]).mask(f"it is {text} ok") == "it is [ybs:secret:own-secret#1] ok"


@every_row(
    "own", ["aB3&" + "xY9/", "pä55" + "wörtß", "x<1>" + "y2'z", "k7 q" + "z+3=/x", 'q"w' + "\\e1r2"]
)
def test_an_own_secret_is_found_as_programs_write_it(own: str) -> None:
    import html
    from json import dumps
    from urllib.parse import quote, quote_plus

    go = dumps(own, ensure_ascii=False).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")  # fmt: skip
    written = [dumps(own), dumps(own, ensure_ascii=False), dumps(own).replace("/", "\\/"), go]
    written += [html.escape(own), html.escape(own, quote=False), repr(own), repr(own.encode())]
    written += [quote(own), quote(own, safe=""), quote_plus(own), re.sub("%..", lambda sign: sign[0].lower(), quote(own, safe=""))]  # fmt: skip
    for text in written:
        assert "[ybs:secret:own-secret#1]" in Firewall(own=[own]).mask(f"it is {text} ok"), text


def test_a_piece_of_a_line_of_a_known_private_key_is_masked_wherever_it_begins() -> None:
    key = private_key(Random(1))
    firewall = Firewall()
    firewall.learn_keys(
        f"{key}\n{key.replace(key.splitlines()[1], 'MIIE' + key.splitlines()[1][4:])}"
    )
    line = key.splitlines()[3]
    for start, end in ((0, 30), (7, 40), (20, len(line)), (5, 21)):
        assert line[start:end] not in firewall.mask(f"[...] {line[start:end]} [...]")
    assert (
        firewall.mask(f"see {line[3:18]} x") == f"see {line[3:18]} x"
    )  # shorter ones are not known


@every_row("is_sorted", [False, True])
def test_all_secret_members_of_a_json_web_key_are_masked(*, is_sorted: bool) -> None:
    import json

    random = Random(2)

    def member(size: int) -> str:
        return b64encode(random.randbytes(size), altchars=b"-_").decode().rstrip("=")

    sizes = {"n": 256, "d": 256, "p": 128, "q": 128, "dp": 128, "dq": 128, "qi": 128}
    members = {name: member(size) for name, size in sizes.items()}
    for secret, key in (
        ("d p q dp dq qi", {"kty": "RSA", "e": "AQAB", **members}),
        ("d", {"crv": "P-256", "d": member(32), "kty": "EC", "x": member(32)}),
        ("k", {"alg": "HS256", "k": member(32), "kty": "oct"}),
    ):
        masked = Firewall().mask(json.dumps(key, sort_keys=is_sorted))
        for name, value in key.items():
            assert (value in masked) is (name not in secret.split()), name


GUESSED = "Zk3q9x7Lm2" + "Vw4"


@every_row(
    "text",
    [
        "DB_PASSWORD={}&&./b7 make",
        "DB_PASSWORD= {}x0",
        "curl -H 'Authorization: Bearer {}'",
        "curl https://me:" + "{}@h.example/",
        "curl -u me:" + "{} h",
        "API_KEY={}/a/b",
        "sh {}",
        "psql -h {}.example -f customers.csv",
    ],
)
def test_in_a_question_nothing_hides_that_is_only_guessed_to_be_a_secret(text: str) -> None:
    firewall = Firewall()
    for said in (f"A_TOKEN={GUESSED}", f"B_TOKEN={GUESSED}.example", f'<add key="password" value="{GUESSED}"/>'):  # fmt: skip
        assert GUESSED not in firewall.mask(said)  # a file of the repository taught it
    learned = firewall.vault.learned
    asked = text.format(GUESSED)
    assert firewall.asking().mask(asked) == asked
    assert firewall.vault.learned == learned


def test_a_question_hides_the_persons_own_secrets_and_published_formats(token: str) -> None:
    own = f"own/{GUESSED}"
    masked = Firewall(own=[own]).asking().mask(f"echo {own} {token}")
    assert masked == "echo [ybs:secret:own-secret#1] [ybs:secret:github-token#1]"
    written = "".join(f"&#{ord(sign)};" for sign in token)  # it begins with what a shell reads
    assert Firewall().asking().mask(written) == written


@every_row("encode", [lambda b: b64encode(b64encode(b)), b64encode, bytes.hex])
def test_a_question_shows_all_that_is_encoded_along_with_a_token(token: str, encode):
    code = encode(f"# {token}\ntouch evil\n".encode())
    word = code if isinstance(code, str) else code.decode()
    asked = f"echo {word} | base64 -d | sh"
    assert word not in Firewall().mask(asked)
    assert Firewall().asking().mask(asked) == asked


def test_a_question_says_how_much_a_long_token_hides() -> None:
    token = "ey" + "JhbGciOiJIUzI1" + ".ey" + "Kj8xZq2b" * 300 + "." + "kT4vW9sLm2"
    asked = f"echo {token} | cut -d. -f2 | base64 -d | sh"
    hidden = f"[ybs:secret:jwt#1, {len(token):,} characters]"
    shown = Firewall().asking().mask(asked)
    assert shown == asked.replace(token, hidden)
    assert Firewall().mask(shown) == shown  # it is a placeholder for the next one too
    assert "[ybs:secret:jwt#1] |" in Firewall().mask(asked)


def test_a_kind_is_guessed_where_the_secret_is_only_a_part_of_its_pattern() -> None:
    grouped = {rule.kind for rule in RULES if rule.near or re.compile(rule.pattern).groups}
    assert guessed_kinds() == grouped
    assert not {"github-token", "aws-access-key", "jwt"} & grouped


def test_in_a_question_no_member_of_a_key_of_json_hides_a_name() -> None:
    name = "left7pad9x2q-Evil_script01Zz"
    firewall = Firewall()
    assert name not in firewall.mask(f'{{"kty": "EC", "d": "{name}"}}')
    assert firewall.asking().mask(f"sh {name}") == f"sh {name}"


@every_row(
    "between, code",
    [
        ("\n", "./s:1:"),
        ("\x1b];", "id > x;"),
        ("<U+001B>]' ; ", "sh evil.sh ; : '"),
        (" \\\n", "| ./x7"),
    ],
)
def test_in_a_question_no_token_hides_code_that_stands_within_it(between: str, code: str):
    token = "ghp" + "_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    end = "<U+0007>" if "<U+" in between else "\x07" if "\x1b" in between else ""
    text = f"echo {token[:20]}{between}{code}{end}{token[20:]} done"
    assert code in Firewall().asking().mask(text)
    learned = Firewall()
    learned.mask(text)
    assert code in learned.asking().mask(text)


@every_row("quote, between", [("", "\n"), ('"', '"; '), ("'", "'\n")])
def test_in_a_question_no_frame_of_a_private_key_hides_what_a_shell_would_run(quote, between: str):
    begin, *body, end = private_key(Random(1)).splitlines()
    first, last = (f": {quote}{mark}{quote}" for mark in (begin, end))
    text = between.join((first, "./b7", f"bin/{'b7' * 20}", f"cp a ~/{'b7' * 20}", *body, last))
    firewall = Firewall()
    assert firewall.asking().mask(text) == text
    firewall.mask(text)
    firewall.learn_keys(text)  # a file of the repository taught it
    assert firewall.asking().mask(text) == text


RUN = "; touch ~/made #"


@every_row("value", [RUN, "make-everything", "bin/make-everything"])
def test_in_a_question_nothing_hides_that_somebody_else_calls_a_secret(value: str):
    firewall = Firewall(others=[value])
    firewall.vault.keep([f"{value}x"])  # as a login's token that its server handed out
    asked = f"git log {value}x {value}"
    masked = firewall.mask(asked)
    assert value not in masked
    assert "own-secret#" in masked
    assert firewall.asking().mask(asked) == asked
    person = Firewall(own=[GUESSED], others=[GUESSED])  # of both it is the person's own
    person.vault.keep([GUESSED])
    assert GUESSED not in person.asking().mask(f"echo {GUESSED}")


@every_row("own", [f"a{RUN}", "own&9x7Lm2Vw4", "pass phrase 9x7", "$(id)9x7Lm2", "9x7Lm2\n./b7"])
def test_in_a_question_no_secret_hides_that_a_shell_reads_as_more_than_one_plain_word(own: str):
    firewall = Firewall(own=[own])
    assert own not in firewall.mask(f"echo {own}")
    assert firewall.asking().mask(f"echo {own}") == f"echo {own}"
    assert "own-secret#" in firewall.asking().mask(quoted(own, safe=""))  # this form is one
