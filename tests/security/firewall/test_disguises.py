"""Tokens in encodings and disguises, alone and in pairs, are masked; texts that only look like them are left alone."""

import base64
import json
import re
from collections.abc import Callable
from hashlib import sha1, sha256
from random import Random
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from secrets_corpus.drawing import draw
from secrets_corpus.negatives import negatives
from secrets_corpus.shapes import tokens

from rows import every_row
from timing import takes_at_most
from ybs.security.firewall import decode
from ybs.security.firewall.anchors import cores_in
from ybs.security.firewall.decode import LEAST_BASE64, packed
from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.views import TextView
from ybs.security.marks import marked

Disguise = Callable[[str], str]
TOKENS = list(tokens(Random(9)))


def each(form: str) -> Disguise:
    return lambda text: "".join(form.format(ord(letter)) for letter in text)


def of_bytes(form: str, between: str = "") -> Disguise:
    return lambda text: between.join(form.format(code) for code in text.encode())


def within(part: str) -> Disguise:
    return lambda text: text[: len(text) // 2] + part + text[len(text) // 2 :]


def wide(text: str) -> str:
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text)


def packed_once(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def wrapped(text: str) -> str:
    whole = packed_once("user: someone\n" * 4 + text)
    return "\n".join(whole[start : start + 76] for start in range(0, len(whole), 76))


#: What makes another text of each letter.
ENCODED: dict[str, Disguise] = {
    "hex": of_bytes("{:02x}"),
    "capital hex": of_bytes("{:02X}"),
    "hex with spaces": of_bytes("{:02x}", " "),
    "hex with colons": of_bytes("{:02x}", ":"),
    "bytes of C": of_bytes("0x{:02x}", ", "),
    "escapes of bytes": of_bytes(r"\x{:02x}"),
    "short octal escapes": of_bytes(r"\{:o}"),
    "octal escapes": of_bytes(r"\{:03o}"),
    "escapes of JSON": each(r"\u{:04x}"),
    "escapes of JavaScript": each(r"\u{{{:x}}}"),
    "percent signs": of_bytes("%{:02X}"),
    "entities": each("&#{};"),
    "escapes of JavaScript's escape()": each("%u{:04x}"),
    "entities without an end": each("&#{}"),
    "hexadecimal entities": each("&#x{:x};"),
    "base64": packed_once,
    "base64 twice": lambda text: packed_once(packed_once(text)),
}
#: What stands in the token and is not seen.
HIDDEN: dict[str, Disguise] = {
    "zero width between all": "\u200b".join,
    "a zero-width joiner": within("\u200d"),
    "a soft hyphen": within("\u00ad"),
    "a byte order mark": within("\ufeff"),
    "a colour": within("\x1b[01;31m"),
    "a soft hyphen's name": within("&shy;"),
    "a non-joiner's name": within("&zwnj;"),
    "a zero-width space of JSON": within(r"\u200b"),
    "a colour written out": within(r"\x1b[01;31m"),
    "a colour of JSON": within(r"\u001b[31m"),
    "an octal colour": within(r"\033[31m"),
    "a shell's colour": within(r"\e[1m"),
    "full width": wide,
    "one letter in full width": lambda text: text[0] + wide(text[1]) + text[2:],
}
#: What splits the token.
SPLIT: dict[str, Disguise] = {
    "a line end": within("\n"),
    "a line end of Windows": within("\r\n"),
    "a line end and a margin": within("\n    "),
    "a backslash and a line end": within("\\\n"),
    "a quoted-printable line end": within("=\n"),
    "a line end of JSON": within(r"\n"),
    "a line end of Windows in JSON": within(r"\r\n"),
    "a line end of cat -A": within("$\n"),
}
#: How tools show the lines of a file: read_file, search_files, `cat -n`, `grep -n`, `grep -Hn`, those with `-A`, and `diff`.
NUMBERED = ["{}\t{}", "{}:\t{}", "{}-\t{}", "{:6}\t{}", "{}:{}", "src/two.txt:{}:{}"]
NUMBERED += ["{}-{}", "src/two-1.txt-{}-{}", "-{1}", "<{1}", "< {1}"]
ALONE = {
    **ENCODED,
    **HIDDEN,
    **SPLIT,
    "wrapped base64": wrapped,
    "wrapped base64 in JSON": lambda text: json.dumps(wrapped(text)),
    "an underscore's name": lambda text: text.replace("_", "&lowbar;"),
}
PAIRS = [
    *((first, second) for first in ENCODED for second in ENCODED if (first, second) != ("base64 twice",) * 2),
    *((first, second) for first in HIDDEN for second in ENCODED if first != "a colour"),
    *((first, second) for first in SPLIT for second in ENCODED),
    *(("base64", second) for second in SPLIT),
    *(("hex", second) for second in SPLIT if "line" not in second),
]  # fmt: skip


def left(text: str, token: str, *ways: str) -> bool:
    """Return whether a disguised token is left in the text, which says other things too."""
    disguised = token
    for way in ways:
        disguised = ALONE[way](disguised)
    masked = Firewall().mask(text.format(disguised))
    return "[ybs:secret:" not in masked or disguised in masked


@pytest.mark.integration
@pytest.mark.parametrize("way", ALONE)
def test_each_kind_of_token_is_masked_in_each_disguise(way: str) -> None:
    assert [token for _, token in TOKENS if left("see: {} there", token, way)] == []


def as_shown(form: str, text: str) -> str:
    """Return a file's text as a tool shows it: with numbered lines, and with signs for what nobody sees."""
    lines = marked(text.replace("\r\n", "\n"))[0].split("\n")
    return "\n".join(form.format(number, line) for number, line in enumerate(lines, start=8))


@pytest.mark.integration
@pytest.mark.parametrize("form", NUMBERED)
def test_a_disguise_is_found_in_what_a_tool_shows_of_a_file(form: str) -> None:
    found = Firewall().mask
    for _, token in TOKENS[::9]:
        for way in ALONE:
            text = as_shown(form, f"here it is:\n\n{ALONE[way](token)}\n\nthat was it\n")
            assert "[ybs:secret:" in found(text), (way, text)


@pytest.mark.integration
@given(st.sampled_from(TOKENS), st.sampled_from(PAIRS))
def test_a_token_is_masked_in_two_disguises(token: tuple[str, str], pair: tuple[str, str]) -> None:
    assert not left("see: {} there", token[1], *pair)


@pytest.mark.integration
def test_one_token_is_masked_in_every_two_disguises() -> None:
    token = TOKENS[0][1]
    assert [pair for pair in PAIRS if left("see: {} there", token, *pair)] == []


@every_row(
    ("way", "before", "behind"),
    [
        ("zero width between all", "see: ", " there"),
        ("full width", "see: ", " there"),
        ("escapes of bytes", "x = '", "' # y"),
        ("percent signs", "https://h/?a=%20&t=", "&b=2"),
        ("a soft hyphen", f"{'many words before ' * 99}\u00ad and {'more ' * 200}", " there"),
        ("a line end and a margin", "value: ", "\nnext: line"),
    ],
)
def test_the_mask_lands_on_the_token_alone(token: str, way: str, before: str, behind: str) -> None:
    masked = Firewall().mask(before + ALONE[way](token) + behind)
    assert masked == f"{before}[ybs:secret:github-token#1]{behind}"


def test_what_has_no_place_of_its_own_is_masked_with_all_that_is_encoded(token: str) -> None:
    for way in ("hex", "base64", "hex with spaces"):
        text = ALONE[way](f"user: me and {token} too")
        assert Firewall().mask(f"see: {text} there") == "see: [ybs:secret:github-token#1] there"


def test_an_own_secret_is_found_in_disguise() -> None:
    own = "open7sesame" + "4ever"
    for way in ("zero width between all", "full width", "percent signs", "hex"):
        assert own not in Firewall(own=[own]).mask(f"say {ALONE[way](own)} now")
        assert "[ybs:secret:own-secret#1]" in Firewall(own=[own]).mask(f"say {ALONE[way](own)} now")


def test_a_token_that_ends_with_its_line_is_masked_alone(firewall: Firewall, token: str) -> None:
    text = f"FIRST={token}\nSECOND_VALUE=12\n"
    assert firewall.mask(text) == "FIRST=[ybs:secret:github-token#1]\nSECOND_VALUE=12\n"


def plain_texts() -> list[str]:
    """Return texts without a secret that look encoded or disguised."""
    random = Random(5)
    digests = [sha1(random.randbytes(9)).hexdigest() for _ in range(200)]
    return [
        "\n".join(f"{one} refs/heads/{one[:9]}" for one in digests),
        "\n".join(f"    --hash=sha256:{sha256(one.encode()).hexdigest()} \\" for one in digests),
        "\n".join(str(UUID(int=random.getrandbits(128))) for _ in range(200)),
        "\n".join(digests),
        base64.encodebytes(random.randbytes(6_000)).decode(),
        f"data:image/png;base64,{base64.b64encode(random.randbytes(6_000)).decode()}",
        " ".join(f"{code:02x}" for code in random.randbytes(2_000)),
        ", ".join(f"0x{code:02X}" for code in random.randbytes(2_000)),
        "\n".join(f"{place * 16:07o} {random.randbytes(16).hex(' ')}" for place in range(200)),
        "".join(rf"\x{code:02x}" for code in random.randbytes(2_000)),
        "".join(f"function a{n}(e,t){{return e.key||t[{n}]+'%20'+\"\\u00e9\"+'x'}};" for n in range(200)),
        "！".join("世界，你好。ｆｕｌｌ　ｗｉｄｔｈ１２３" for _ in range(100)),
        "می‌خواهم 👨‍👩‍👧 " * 200,
        "\n".join(f"SomeLongName{n}\nAnotherLongName{n}." for n in range(200)),
        "\n".join(f'    "part{n} of a text" +\n    "and another part{n}"' for n in range(200)),
        *(text for _, text in negatives(random)),
    ]  # fmt: skip


@pytest.mark.integration
def test_texts_that_only_look_encoded_are_left_alone_and_take_little_time() -> None:
    for text in plain_texts():
        with takes_at_most(0.2, text[:80]):
            assert Firewall().mask(text) == text, text[:80]


@pytest.mark.integration
@every_row(
    "unit",
    [
        *("%25", "\\x41", "\\\\\\\\x41", "&#65;", "\u200b", "a\u200b", "ａ", "'a' + ", "'a'\n", '""', "a\n", "aB3456789x\n"),
        *("aB3456789x=\n  ", "41", "41 ", "0x41,", "QUJD", "VVVK", "%2525", "&#x26;#38;", "\\u005cu0041", "\x1b[0m", "A1b2C3d4E5\\\n"),
    ],
)  # fmt: skip
def test_x04_a_hostile_disguise_takes_little_time(firewall: Firewall, unit: str) -> None:
    text = unit * (20_000 // len(unit))
    with takes_at_most(1):  # 20 to 60 ms as a rule
        firewall.spans(text.encode())


ODD = st.text("0123456789abcfxX\\u%&#;'\"+. \n\r=AZ_-\u200b\u00ad\uff21\x1b[m\0", max_size=120)


@pytest.mark.integration
@given(ODD, st.sampled_from(TOKENS), st.sampled_from(sorted(ALONE)), ODD)
@example("", TOKENS[0], "hex", "")
def test_no_text_is_too_odd_and_each_place_lies_in_it(
    before: str, token: tuple[str, str], way: str, after: str
) -> None:
    data = f"{before}{ALONE[way](token[1])}{after}".encode()
    for start, end, _ in Firewall().spans(data):
        assert 0 <= start < end <= len(data)


def test_a_view_knows_where_its_parts_are_from() -> None:
    view = TextView("a test")
    for start, end, part, is_same in ((0, 4, b"abcd", True), (4, 10, b"x", False), (10, 12, b"yz", True)):  # fmt: skip
        view.add(start, end, part, is_same=is_same)
    assert (view.data, len(view)) == (b"abcdxyz", 7)
    assert [view.source(*place) for place in ((1, 3), (3, 5), (4, 5), (5, 7), (2, 6))] == [
        (1, 3),
        (3, 10),
        (4, 10),
        (10, 12),
        (2, 11),
    ]
    assert [view.is_changed(*place) for place in ((1, 3), (3, 5), (5, 7))] == [False, True, False]


def test_short_base64_is_not_decoded() -> None:
    text = base64.b64encode(b"twelve letters and more")[: LEAST_BASE64 - 1]
    assert list(packed(text)) == []
    assert list(packed(text + b"aa")) != []


def test_a_line_end_of_a_shell_within_draws_is_one_word(firewall: Firewall) -> None:
    value = draw("glpat-[A-Za-z0-9]{20}", Random(4))
    assert firewall.mask(f"export A={value[:15]}\\\n{value[15:]}\n").startswith("export A=[ybs:")


def test_each_line_of_utf_16_has_its_own_place() -> None:
    data = b"plain\na\0b\0\nc\0d\0"
    assert list(decode.wide(data)) == [(6, 10, b"ab"), (11, 15, b"cd")]


def test_bytes_that_no_text_is_made_of_are_none() -> None:
    assert decode.text_of(bytes(range(128, 192))) == b""
    assert decode.text_of("größer".encode()) == "größer".encode()


@every_row("digits", [32, 40, 56, 64, 96, 128])
def test_the_lines_of_a_list_of_digests_are_not_joined(digits: int) -> None:
    random = Random(digits)
    data = b"\n".join(f"{random.getrandbits(4 * digits):0{digits}x}".encode() for _ in range(20))
    assert [*decode.line_ends(data, cores_in(data))] == []


def test_a_token_in_mathematical_letters_is_masked(firewall: Firewall, token: str) -> None:
    """There are signs for letters and digits in bold, but not for `_`."""
    digits = str.maketrans({str(n): chr(0x1D7CE + n) for n in range(10)})
    capitals = str.maketrans({chr(65 + n): chr(0x1D400 + n) for n in range(26)})
    small = str.maketrans({chr(97 + n): chr(0x1D41A + n) for n in range(26)})
    bold = token.translate(digits | capitals | small)
    assert firewall.mask(f"it is {bold}") == "it is [ybs:secret:github-token#1]"


@every_row("before", ["", "/", "a/", "/ab"])
def test_base64_is_read_behind_what_is_not_part_of_it(token: str, before: str) -> None:
    text = before + packed_once(f"the token is {token}, and no other")
    (found,) = packed(text.encode())
    assert token.encode() in found[2]


@every_row("pack", [lambda text: base64.b64encode(text), lambda text: text.hex().encode()])
@every_row(
    "around", ["Ключ для выкладки, не показывать никому " * 4, "部署用的密钥，不要告诉任何人" * 5]
)
def test_a_token_within_words_of_another_script_is_found_in_base64_and_hex(
    token: str, around: str, pack: Callable[[bytes], bytes]
) -> None:
    packed = pack(f"{around}{token}{around}".encode()).decode()
    assert packed not in Firewall().mask(f"data: {packed}\n")


def test_base64_that_is_long_is_read_behind_what_is_not_part_of_it(token: str) -> None:
    packed = base64.b64encode(f"{'note ' * 1_000}{token}{' note' * 200}".encode()).decode()
    for before in ("", "/", "a/", "abc/"):
        text = f"https://h.example/{before}{packed}"
        assert packed[-9_00:] not in Firewall().mask(text)


def test_decoded_bytes_are_text_where_twelve_in_a_row_can_be_printed() -> None:
    for text in (b"twelve signs", b"~" * 12, b" " * 12):
        assert decode.text_of(b"\xff" + text + b"\xff") == b"\xff" + text + b"\xff"
    for other in (b"eleven sign", b"eleven sign\x7f", b"\x1feleven sign"):
        assert decode.text_of(b"\xff" + other + b"\xff") == b""


def test_what_begins_with_a_hidden_character_is_decoded_though_most_is_not_ascii() -> None:
    text = ("\u200b" + "п" * 20 + "a-word-of-ascii").encode()
    for found in (decode.hexed(text.hex().encode()), packed(base64.b64encode(text))):
        assert [said for *_, said in found] == [text]


@every_row("form", NUMBERED)
@every_row("length", [4, 12, 32])
def test_a_numbered_line_end_is_found_wherever_it_is_in_a_token(
    firewall: Firewall, token: str, form: str, length: int
) -> None:
    lines = (token[:length], token[length:], "")
    shown = "\n".join(form.format(number, line) for number, line in enumerate(lines, 7))
    masked = firewall.mask(shown)
    assert token[4:10] not in masked
    assert token[-6:] not in masked


@pytest.mark.integration
@every_row(
    "before, behind",
    [
        ("@@ -1 +0,0 @@\n-", "\n"),
        ("+one\n-", "\n"),
        ("-", "\n"),
        ("1:login\n2-", "\n"),
        ("--\n9-", "\n10:login"),
        ("a/b-1.txt:1:login\na/b-1.txt-2-", "\n"),
        ("@@@ -1,2 -1,2 +1 @@@\n  top\n--", "\n"),
        ("@@@ -1,2 -1,2 +1 @@@\n++one\n -", "\n"),
        ("@@@@ -1 -1 -1 +1 @@@@\n++ one\n- -", "\n"),
        *((f"one\\{escape}", f"\\{escape}two") for escape in "nrtfbav07"),
        *((signs, f"{signs} two") for signs in ("_", "__", "-")),
    ],
)
def test_a_whole_token_is_found_behind_the_mark_of_its_line(before: str, behind: str) -> None:
    for _, token in TOKENS:
        assert token not in Firewall().mask(f"{before}{token}{behind}")


def test_only_marks_of_lines_are_read_as_such() -> None:
    for text in (
        b"word\n-word",
        b" x\n-u me",
        b" x\n--word",
        b"5-a\n7-b",
        b"1-a\n-\n2-b",
        b"a-1-b\nc-2-d",
    ):
        assert decode.with_other_marks(text) == text


@pytest.mark.integration
@every_row("form", ["{1}", "  {1}", "{}\t{}", "{}:{}", "{}-  {}"])
def test_a_token_is_found_in_lines_of_ten_characters_whatever_it_begins_with(form: str) -> None:
    for _, token in TOKENS:
        if not re.fullmatch(r"[\w-]+", token):
            continue  # signs in it may end a line
        for size in (10, 11, 13):
            lines = [token[place : place + size] for place in range(0, len(token), size)]
            shown = "\n".join(form.format(number, line) for number, line in enumerate(lines, 7))
            assert "[ybs:secret:" in Firewall().mask(shown), shown


def test_two_lines_with_more_than_a_token_in_them_are_left_alone() -> None:
    text = "AKIA" + "5ENLCU\nMRBAJAS3QNxyz\nand more"
    assert Firewall().mask(text) == text


@every_row("mark", ["// ", "; ", "-- ", "# ", " " * 45, "\t\t// "])
def test_a_token_goes_on_in_the_next_line_of_a_comment(token: str, mark: str) -> None:
    masked = Firewall().mask(f"{mark}head\n{mark}{token[:20]}\n{mark}{token[20:]}\n{mark}tail\n")
    assert token[20:] not in masked
    assert "tail" in masked


@pytest.mark.integration
@every_row(
    ("before", "behind"),
    [
        ("The keys are", "Then go on."),
        ("KEYS", "x9"),
        ("Keys2024", "# end"),
        ("Keys-2024_For9Tests:", "Next2Line4Word6"),
    ],
)
def test_a_token_in_two_lines_is_found_whatever_the_lines_around_it_say(before: str, behind: str):
    missed: list[str] = []
    for _, token in TOKENS:
        for half in {10, len(token) - 2} if len(token) < 160 else ():
            text = f"{before}\n{token[:half]}\n{token[half:]}\n{behind}\n"
            masked, whole = Firewall().mask(text), Firewall().find(token)
            # One whose first part is a whole token by itself ends there.
            is_one = any(each.end == half for each in Firewall().find(token[:half]))
            is_within = whole and whole[0].start + 10 <= half and token[half] != ":"
            if is_within and not is_one and token[:half] in masked and token[half:] in masked:
                missed.append(text)
    assert missed == []


@pytest.mark.integration
@every_row(
    "hidden",
    [packed_once, of_bytes("{:02x}"), within("\n"), lambda text: packed_once(packed_once(text))],
)
def test_a_text_full_of_encodings_hides_no_token_in_another_one(hidden: Disguise) -> None:
    random = Random(3)
    words = ["".join(random.choices("abcdefghijkLMNOP0123456789", k=90)) for _ in range(80)]
    around = "\n".join(f"{word}%252541{word}\u200b{word}\n{word}" for word in words)
    token = "ghp_" + "OUYd27XwR5y9USEiUdQA1q5gS5SlGQDlWv1N"
    text = f"{around}\n\nv = {hidden(token)}\n\n{around}"
    assert hidden(token) not in Firewall().mask(text)


def test_a_numbered_line_behind_a_word_in_small_letters_is_text_of_its_own() -> None:
    for end, joined in (("words", 0), ("WORDS", 1)):
        data = f"8\tsome {end}\n9\tABCDEF0123456789".encode()
        assert len([*decode.line_ends(data, cores_in(data))]) == joined


def test_hex_is_read_behind_a_digit_that_is_not_part_of_it(token: str) -> None:
    hexed = token.encode().hex()
    for before in ("", "a"):
        assert hexed[1:-1] not in Firewall().mask(before + hexed)  # one that does not know it yet


def test_two_places_with_escapes_in_them_are_not_read_as_one(firewall: Firewall) -> None:
    word = "A%42C0123456789abcdefXYZ"  # what stands up to 200 bytes before it and 400 behind is read with it
    first = f"{word} ".ljust(4 + 400 - len(" api_key="), ".") + " api_key="
    second = "Xk39dk" + "2Pz8q1Lm7 "
    assert firewall.find(first + " word" * 100 + " " + second.ljust(199, ".") + word) == ()


@every_row(
    "text, said",
    [
        *((text, b"_") for text in (b"%5f", b"%u005f", rb"\x5f", rb"\u005f", rb"\u{5f}", rb"\137")),
        *((text, b"_") for text in (b"&#95;", b"&#x5f;", b"&lowbar;", b"&UnderBar;")),
        *((text, b"") for text in (b"&shy;", b"&#173;", rb"\u200b", rb"\u001b[1m", rb"\033[0;31m")),
        (rb"\/", b"/"),
        (b"&nosuchname;", b"&nosuchname;"),
    ],
)
def test_an_escape_says_what_its_language_means_by_it(text: bytes, said: bytes) -> None:
    word = b"ABCDEF0123456789"
    view, *_ = decode.views(word + text + word, [])
    assert view.data.startswith(word + said + word)


def test_only_real_line_ends_are_ends_of_texts() -> None:
    for end, places in ((b"\n", [12]), (rb"\n", [])):
        data = b"aB3456789xyz" + end + b"aB3456789xyz"
        assert [*decode.goes_on_at(data, cores_in(data))] == places


def test_a_token_goes_on_behind_a_line_end_that_is_written_out(token: str) -> None:
    for length in (6, 20, 33):
        text = json.dumps({"log": f"see {token[:length]}\n{token[length:]}\nmore"})
        masked = Firewall().mask(text)
        assert masked == '{"log": "see [ybs:secret:github-token#1]\\nmore"}', masked


#: How tools show the two lines of a token: {0} and {1} between others.
TWO_LINES = [
    "x\n{}\n{}\ny\n",
    "1\tx\n2\t{}\n3\t{}\n4\ty",
    "f.txt:2:{}\nf.txt:3:{}\n",
    "2:{}\n3-{}\n",
    "@@ -1,4 +0,0 @@\n-x\n-{}\n-{}\n-y\n",
    "@@@ -1,3 -1,3 +1 @@@\n  x\n--{}\n--{}\n",
    "@@ -0,0 +1,4 @@\n+x\n+{}\n+{}\n+y\n",
    "@@ -1,4 +1,4 @@\n x\n {}\n {}\n-y\n+z\n",
    "     2\t{}\n     3\t{}\n",
    "> {}\n> {}\n",
    "# {}\n# {}\n",
]


@pytest.mark.integration
@pytest.mark.parametrize("alone", ["2:{}\n", "x {} y", "-{}\n", "password={}\n"])
def test_what_one_text_taught_leaves_no_part_of_a_token_in_another(alone: str) -> None:
    for kind, token in TOKENS[::20]:
        parts = token[: len(token) // 2], token[len(token) // 2 :]
        shown = [form.format(*parts) for form in TWO_LINES]
        held = [text for text in shown if not left_of(parts, Firewall().mask(text))]
        for first in shown:
            for part in parts:
                firewall = Firewall()
                firewall.mask(first)
                firewall.mask(alone.format(part))
                assert not [text for text in held if left_of(parts, firewall.mask(text))], kind


def left_of(parts: tuple[str, ...], text: str) -> list[str]:
    return [part for part in parts if part in text]


@every_row("form", TWO_LINES)
def test_each_line_of_a_token_that_was_seen_in_any_form_is_masked_alone(
    firewall: Firewall, token: str, form: str
) -> None:
    firewall.mask(form.format(token[:20], token[20:]))
    for part in (token[:20], token[20:]):
        assert firewall.mask(f"say {part} now") == "say [ybs:secret:github-token#1] now"


def test_what_is_known_to_be_a_secret_cuts_no_token_in_two(token: str) -> None:
    firewall = Firewall(others=[token[:20]])
    assert firewall.mask(f"x\n{token[:20]}\n{token[20:]}\ny") == "x\n[ybs:secret:github-token#1]\ny"
