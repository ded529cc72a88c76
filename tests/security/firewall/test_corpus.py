"""X01 to X04: what is found, what is not, and in which frames and encodings."""

import base64
import re
from pathlib import Path
from random import Random
from urllib.parse import quote

import pytest
import secrets_corpus
from hypothesis import given, settings
from hypothesis import strategies as st
from secrets_corpus.drawing import draw
from secrets_corpus.gitleaks import Reader, Unreadable
from secrets_corpus.negatives import negatives
from secrets_corpus.shapes import FRAMES, SHAPES, private_key, tokens

from rows import every_row
from timing import takes_at_most
from ybs.config.schema import FirewallSettings as Settings
from ybs.core.messages import Text
from ybs.security.firewall import engine
from ybs.security.firewall.engine import RuleEngine, merged
from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.rules import ASSIGNED, KINDS, RULES, SecretRule
from ybs.security.firewall.structs import has_rest_of_key
from ybs.security.firewall.toolbox import StreamMask

#: A password; in parts, so that no scanner finds it here.
PW = "Tr0ub4" + "dor-x"


@pytest.mark.integration
def test_x01_tokens_of_fifty_kinds_are_found_in_every_frame(firewall: Firewall) -> None:
    assert len({kind for kind, _ in SHAPES}) >= 50
    missed = []
    for kind, token in tokens(Random(1)):
        for frame in FRAMES[:: 3 if len(token) % 2 else 2]:
            text = frame.format(token)
            found = firewall.find(text)
            if [one.kind for one in found] != [kind] or text[
                found[0].start : found[0].end
            ] not in token:
                missed.append((kind, text))
    assert missed == []


@pytest.mark.integration
def test_x01_a_token_that_is_all_of_a_text_is_found(firewall: Firewall) -> None:
    wrong = [
        kind
        for kind, token in tokens(Random(1))
        if "://" not in token
        and [(one.kind, one.start) for one in firewall.find(token)] != [(kind, 0)]
    ]
    assert wrong == []


@every_row(
    "text",
    [
        "auth: password={}",
        "token = password={}",
        "credentials: db_password={}",
        "secret: password: {}",
        'curl --auth=password="{}"',
        "token=none&credentials=password={}&x=1",
        "api_key=token=password={}",
    ],
)
def test_a_name_hides_no_secret_that_another_name_is_given_behind_it(
    firewall: Firewall, text: str
) -> None:
    assert PW not in firewall.mask(text.format(PW))


@pytest.mark.integration
def test_no_scanner_finds_a_secret_in_these_tests(firewall: Firewall) -> None:
    here = Path(__file__).parent
    corpus = Path(secrets_corpus.__file__ or "").parent
    texts = [file.read_text("utf-8") for folder in (here, corpus) for file in folder.glob("*.py")]
    assert [text[one.start : one.end] for text in texts for one in firewall.find(text)] == []


@pytest.mark.integration
def test_x01_hard_negatives_are_left_alone(firewall: Firewall) -> None:
    texts = list(negatives(Random(2)))
    assert len(texts) >= 150
    assert [text for _, text in texts if firewall.find(text)] == []


def test_there_are_rules_for_more_than_fifty_kinds_and_each_anchor_is_lower_case() -> None:
    assert len(KINDS) > 50
    assert all(anchor == anchor.lower() for rule in RULES for anchor in rule.anchors)


@every_row(
    ("text", "kind"),
    [
        (f"https://bob:{PW}@db.internal/x", "url-password"),
        ("Authorization: Basic " + base64.b64encode(f"bob:{PW}".encode()).decode(), "basic-auth"),
        ("Authorization: Bearer " + draw("[A-Za-z0-9]{30}", Random(1)), "bearer-token"),
        (f"curl -u bob:{PW} https://x", "curl-login"),
        (f"curl --user 'bob:{PW}' https://x", "curl-login"),
        ("machine x login bob pass" + f"word {PW}", "netrc-password"),
        (f'db_password = "{PW}"', "assigned-secret"),
        ("GMAIL_APP_PASSWORD=" + draw("[a-z]{16}", Random(2)), "assigned-secret"),
        ("DB_PASSWORD=" + draw("[A-Za-z]{24}", Random(1)), "assigned-secret"),
        ('"passphrase": "' + draw("[A-Za-z]{14}", Random(1)) + '"', "assigned-secret"),
        ("API_KEY=" + draw("[a-z0-9]{32}", Random(1)), "assigned-secret"),
        ("client_secret: " + draw("[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}", Random(1)), "assigned-secret"),
        ("signing_key = '" + draw("[A-Za-z0-9]{40}", Random(1)) + "'", "assigned-secret"),
        ("token: " + "123456789012345678", "assigned-secret"),
        ("api_key = " + draw("[a-z][A-Z]{2}[a-z][A-Z][a-z][A-Z]{2}", Random(5)) * 3, "assigned-secret"),
        ("//npm.acme.example/:_authToken=" + draw("[a-f0-9]{32}", Random(1)), "assigned-secret"),
        ('npmAuthToken: "' + draw("[A-Za-z0-9]{24}", Random(1)) + '"', "assigned-secret"),
        ("key_secret: " + draw("[a-z0-9]{14}", Random(1)), "assigned-secret"),
        ("auth token: " + draw("[a-f0-9]{32}", Random(1)), "assigned-secret"),
        ("secretKeys = " + draw("[a-z0-9]{14}", Random(1)), "assigned-secret"),
        (f"DB_PASS={PW}", "assigned-secret"),
        (f'"smtp_pwd": "{PW}"', "assigned-secret"),
        ("APP_KEY=base64:" + draw("[A-Za-z0-9+]{43}=", Random(1)), "assigned-secret"),
        (f"- name: DB_PASSWORD\n  value: {PW}\n", "assigned-secret"),
        (f'{{\n  "name": "DB_PASSWORD",\n  "value": "{PW}"\n}}', "assigned-secret"),
        ("https://" + draw("[a-f0-9]{32}", Random(1)) + "@git.example/x.git", "url-token"),
        ("AccountKey=" + draw("[A-Za-z0-9]{86}==", Random(1)), "azure-storage-key"),
        ("PuTTY-User-Key-File-3: x\nPrivate-Lines: 2\n" + draw("[A-Za-z0-9]{64}\n[A-Za-z0-9]{40}\n", Random(1)), "private-key"),
    ],
)  # fmt: skip
def test_what_is_said_to_be_a_secret_is_found(firewall: Firewall, text: str, kind: str) -> None:
    assert [one.kind for one in firewall.find(text)] == [kind]


@every_row(
    "text",
    [
        "curl -u ':' https://x",
        "AKIA" + "ABBAABABBBAABABA",
        "Authorization: Bearer thisisnotatokenbutwords",
        "curl -u your-name:your-pass1 https://x",
        f" -u bob:{PW} without the program",
        f"curl was spoken of long {'before ' * 100} -u bob:{PW} stands",
        "Authorization: Basic !!!!aaaaaaaa",
        "Authorization: Basic YWJjZA=====",
        "Authorization: Basic abcdefghi",
        "api_key = 2024-01-02T10:00",
        "token = abcabcabcabcabcabcabcabcabcabc1",
        "secret = aaaa1111aaaa1111",
        "api_key = " + "nameWithoutAnyDigitsInItAtAll",
        "token = " + "token2token3x",
        "key = " + draw("[a-z0-9]{12}", Random(1)),
        "keys_total = " + draw("[a-z0-9]{40}", Random(1)),
        "authority = " + draw("[a-z0-9]{40}", Random(1)),
        "secret_key_id = " + draw("[a-z0-9]{40}", Random(1)),
        "token_auth_url = " + draw("[a-z0-9]{40}", Random(1)),
        "render_pass = 'opaque2d'",
        "OLD_PWD=/home/bob2",
        "- name: DB_PASSWORD\n  valueFrom: " + draw("[a-z0-9]{40}", Random(1)),
        "https://some.person-name@git.example/x.git",
        "key: " + draw("[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}", Random(1)),
        "password = 'only letters'",
        "DB_PASSWORD=" + "correcthorsebattery",
        "password: PasswordEncoderOfTheProject",
        "password_field: " + draw("[a-z]{16}", Random(2)),
        "token = " + draw("[a-z0-9]{32}", Random(1)) + "(x)",
        "-----BEGIN RSA " + "PRIVATE KEY-----\nshort\n-----END RSA " + "PRIVATE KEY-----",
        "SK" + "0" * 32,
    ],
)
def test_what_only_looks_like_one_is_left_alone(firewall: Firewall, text: str) -> None:
    assert firewall.find(text) == ()


#: Behind what says little a value has to look drawn; each stands for a kind of file.
TIES = (
    "vercel deploy --prod --token {}", "sentry-cli --auth-token {} releases new", "aws configure set aws_secret_access_key {}",
    "ENV NPM_AUTH_TOKEN {}", "set -x API_TOKEN {}", 'setx API_TOKEN "{}"', "npm config set //r/:_authToken {}", '#define API_KEY "{}"',
    '<add key="ApiSecret" value="{}" />', "<key>API_SECRET_KEY</key>\n\t<string>{}</string>", '"<key>API_KEY</key>\\n<string>{}</string>"',
    '<meta-data android:name="com.example.API_KEY"\n    android:value="{}"/>', '"ParameterKey": "DbPassword", "ParameterValue": "{}"',
    '<meta name="api-token" content="{}">', "AZURE_DEVOPS_EXT_PAT={}", "'Authorization': '{}'",
    "ALTER ROLE shop WITH LOGIN PASSWORD '{}';", "CREATE USER 'shop'@'%' IDENTIFIED BY '{}';", "requirepass {}", "storePassword '{}'",
    'variable "db_password" {{\n  type    = string\n  default = "{}"\n}}', "password: |\n    {}\n", "tokens:\n  - {}\n", '"tokens": ["{}"]',
    'variable "db_password" {{\n     2\t  type    = string\n     3\t  default = "{}"', "password: |\n     2\t    {}", "password: &pw {}", "token: !!str {}", 'api_key: &str = "{}"', 'ds.setPassword("{}");', "process.env.JWT_SECRET ?? '{}'",
    "The admin password is {}.", "**Password:** {}", "config/master.key {}",
)  # fmt: skip


@every_row("text", TIES)
def test_a_value_that_looks_drawn_is_found_however_it_is_tied_to_a_name(
    firewall: Firewall, text: str
) -> None:
    value = draw("[A-Za-z][0-9][A-Za-z]{5}[0-9][A-Za-z]{6}[0-9][A-Za-z0-9]{9}", Random(1))
    assert firewall.mask(text.format(value)) == text.format("[ybs:secret:assigned-secret#1]")


@every_row(
    "text",
    [
        *(tie.format("NotDrawnButNamedByWords") for tie in TIES),
        *(tie.format("xmlSecGnuTLSX509CertGetKey") for tie in TIES[3:7]),
        *(tie.format("PKCS12_SAFEBAG_create0_p8inf") for tie in TIES[3:7]),
        *(tie.format("short-1a2b") for tie in TIES[3:7]),
        "gpg: using RSA key " + draw("[0-9A-F]{40}", Random(1)),
        "an auth " + draw("[a-f0-9]{32}", Random(1)),
        "#define EVP_PKEY_ECDH_KDF_X9_62 EVP_PKEY_ECDH_KDF_X9_63",
        "typedef struct pkcs8_priv_key_info_st PKCS8_PRIV_KEY_INFO;",
        "Add a token\n" + draw("[a-f0-9]{40}", Random(1)),
        "re_pattern = " + draw("[a-z0-9]{40}", Random(1)),
        "key: 'f=>{var t=a[0];return B(C[1])||D{2}|E(3)}'",
        '"key": "Use A-Z, a-z, 0-9 and one of !@# (8 to 64), but no < or > {at all}"',
        "`.cargo/credentials.toml`, `.m2/settings.xml`",
    ],
)
def test_a_name_or_a_sentence_is_left_alone_behind_what_says_little(
    firewall: Firewall, text: str
) -> None:
    assert firewall.find(text) == ()


def test_a_value_in_quotes_may_have_all_signs(firewall: Firewall) -> None:
    signs = draw("[A-Z][a-z][0-9][{}()<>!@#$,;: |~^`?*.=+-]{3}", Random(4))
    value = "".join(
        draw(r"[A-Z][a-z][0-9][{(<@ $,;:|~?*=+-][a-z][)>}#!]", Random(seed)) for seed in range(10)
    )
    text = f"define( 'AUTH_KEY',         '{value}' );"
    assert firewall.mask(text) == "define( 'AUTH_KEY',         '[ybs:secret:assigned-secret#1]' );"
    spoken = firewall.mask(f"ENV AUTH_KEY '{value}'")
    assert spoken == "ENV AUTH_KEY '[ybs:secret:assigned-secret#1]'"
    assert firewall.find(f"key = '{signs}'") == ()


def test_an_address_with_several_parts_is_searched_in_each(firewall: Firewall) -> None:
    value = draw("[A-Za-z0-9]{40}", Random(1))
    text = f"https://h/?auth=plain-words-of-the-person-here&token={value}"
    assert firewall.find(text)[0].end == len(text)


def test_private_keys_are_found_whole_and_cut_off(firewall: Firewall) -> None:
    whole = private_key(Random(1))
    cut = whole[:500]
    for text in (whole, f"x {whole} y", cut, whole.replace("\n", "\\n"), f"{whole}\n{whole}"):
        masked = firewall.mask(text)
        assert whole[100:160] not in masked
        assert "private-key#" in masked


def framed(words: str, body: str, dashes: str = "-----") -> str:
    """Write a key in a frame: with four dashes they stand apart."""
    gap = " " if len(dashes) == 4 else ""
    begin, end = (f"{dashes}{gap}{word} {words}{gap}{dashes}" for word in ("BEGIN", "END"))
    return f"{begin}\n{body}\n{end}"


BASE64 = "\n".join(draw("[A-Za-z0-9+/]{64}", Random(n)) for n in range(6))
HEX = "\n".join(draw("[0-9a-f]{32}", Random(n)) for n in range(16))


@every_row(
    "text",
    [
        framed("OpenVPN Static " + "key V1", HEX),
        framed("OpenVPN tls-crypt-v2 client " + "key", BASE64),
        framed("SSH2 ENCRYPTED PRIVATE " + "KEY", f'Comment: "mine"\n{BASE64}', "----"),
        framed("PGP PRIVATE " + "KEY BLOCK", f"\n{BASE64}\n=abcd"),
        framed("Something New", BASE64),
        framed("encrypted private " + "key", BASE64),
    ],
)
def test_a_key_in_any_frame_is_masked_whole(text: str) -> None:
    lines = text.splitlines()
    assert Firewall().mask(f"a\n{text}\nb") == "a\n[ybs:secret:private-key#1]\nb"
    for frame in ("  {}", "> {}", "  12\t{}", "etc/x.conf:12:{}"):
        shown = Firewall().mask("\n".join(frame.format(line) for line in lines))
        assert not any(line in shown for line in lines[2:-1]), frame
    for part in (lines[:-1], lines[3:]):
        shown = Firewall().mask("\n".join(part))
        assert not any(line in shown for line in lines[3:-2])
    stream = StreamMask(Firewall())
    shown = "".join(stream.feed(f"{line}\n") for line in ("a", *lines, "b")) + stream.close()
    assert shown == "a\n[ybs:secret:private-key#1]\nb\n"
    learned = Firewall()
    learned.learn_keys(text)
    assert lines[-3] not in learned.mask(f"of its middle: {lines[-3]} and on")


@every_row(
    "words",
    [
        *("CERTIFICATE", "TRUSTED CERTIFICATE", "NEW CERTIFICATE REQUEST", "X509 CRL"),
        *("PGP MESSAGE", "PGP SIGNED MESSAGE", "PGP SIGNATURE", "SSH SIGNATURE", "PKCS7", "CMS"),
        *("RSA PUBLIC KEY", "PGP PUBLIC KEY BLOCK", "DH PARAMETERS", "AGE ENCRYPTED FILE"),
    ],
)
def test_what_is_framed_and_public_stays(words: str) -> None:
    text = framed(words, BASE64)
    assert Firewall().mask(text) == text
    assert Firewall().mask(BASE64 + text[-40:]) == BASE64 + text[-40:]
    assert not has_rest_of_key(Text(text=text))


def test_words_in_a_frame_stay() -> None:
    body = "\n".join(f"12:00:0{n} step {n} of the build is done" for n in range(9))
    for dashes in ("----", "-----"):
        text = framed("LOG", body, dashes)
        assert Firewall().mask(text) == text
        assert Firewall().mask(text[30:]) == text[30:]
    assert Firewall().mask("--- a/x\n+++ b/x\n" + "-" * 80) == "--- a/x\n+++ b/x\n" + "-" * 80


def test_the_secret_members_of_an_xml_key_are_masked() -> None:
    members = {"Modulus": 344, "Exponent": 4, "P": 172, "Q": 172, "D": 344}
    drawn = {name: draw(f"[A-Za-z0-9+/]{{{size}}}", Random(size)) for name, size in members.items()}

    def key(*names: str) -> str:
        inner = "".join(f"<{name}>{drawn[name]}</{name}>" for name in names)
        return f"<RSAKeyValue>{inner}</RSAKeyValue>"

    masked = Firewall().mask(f"<a>{key(*members)}</a>")
    assert masked == "<a><RSAKeyValue>[ybs:secret:private-key#1]</RSAKeyValue></a>"
    assert Firewall().mask(key("Modulus", "Exponent")) == key("Modulus", "Exponent")
    cut = key(*members)[:-40]
    assert drawn["P"] not in Firewall().mask(cut)


def test_a_private_key_in_a_form_is_masked(firewall: Firewall) -> None:
    from urllib.parse import quote_plus, urlencode

    whole = private_key(Random(1))
    form = urlencode({"name": "prod", "pem": whole})
    masked = firewall.mask(f"POST /import\n\n{form}\n")
    assert "private-key#" in masked
    assert not any(quote_plus(line) in masked for line in whole.splitlines()[1:-1])


def test_the_end_of_a_private_key_is_masked_where_its_beginning_is_missing(
    firewall: Firewall,
) -> None:
    lines = private_key(Random(1)).splitlines()
    frames = ["{}", "  {}", "+{}", "> {}", "  12\t{}", "# {}", '"{}",']
    for frame in frames:
        text = "\n".join(frame.format(line) for line in lines[5:])
        assert firewall.mask(f"first words\n{text}").count("\n") <= 1, frame
        assert not any(line in firewall.mask(text) for line in lines[5:-1]), frame
    half = "\n".join([lines[5][30:], *lines[6:]])
    assert firewall.mask(half).startswith("[ybs:secret:private-key#")
    alone = f"it ends with {lines[-1]}\nand a line\n{lines[-1]}"
    assert firewall.mask(alone) == alone


@pytest.mark.integration
def test_an_end_of_something_else_does_not_end_the_search_for_those_of_keys() -> None:
    quoted = "\n".join(f"> {line}" for line in private_key(Random(3)).splitlines())
    begin = "-----BEGIN " + "RSA PRIVATE KEY-----\n"
    text = f"{begin}no key\n-----END CERTIFICATE-----\n{'words of it ' * 3_000}\n{quoted}\n"
    assert Firewall().mask(text).endswith("of it \n> [ybs:secret:private-key#1]\n")


@pytest.mark.integration
def test_many_keys_without_an_end_are_searched_for_it_once() -> None:
    text = ("-----BEGIN RSA " + "PRIVATE KEY-----\n") * 3000
    with takes_at_most(1):
        assert Firewall().find(text) == ()


@pytest.mark.integration
@every_row("unit", ["eyJ", "sk-", "://", "password=", "bearer ", "a", "QUJD", "%25", "key"])
def test_x04_a_hostile_text_takes_little_time(firewall: Firewall, unit: str) -> None:
    text = unit * (20_000 // len(unit))
    with takes_at_most(0.5):  # 10 to 20 ms as a rule
        firewall.find(text)


def test_x03_encoded_secrets_are_found(firewall: Firewall, token: str) -> None:
    packed = base64.b64encode(f"user: me\nvalue: {token}\n".encode()).decode()
    forms = [
        "%67" + token[1:],
        "see https://h/p?x=%67" + token[1:] + "&y=2 there",
        quote("{" + token + "}"),
        "\\u0067" + token[1:],
        packed,
        packed.rstrip("="),
        f"/path/{packed}",
        base64.b64encode(f"echo {token} {token}".encode("utf-16-le")).decode(),
        token.encode("utf-16-le").decode("latin-1"),
        f"a\nb {token}".encode("utf-16").decode("utf-16-le").encode("utf-16-le").decode("latin-1"),
    ]
    for text in forms:
        assert firewall.mask(text) != text, text
    assert [one.kind for one in firewall.find(forms[1])] == ["github-token"]


def test_base64_that_is_no_text_is_left_alone(firewall: Firewall) -> None:
    for text in (Random(1).randbytes(90), bytes(90), b"\xc3(" * 40, b"\0\0\0a" * 30):
        assert firewall.find(base64.b64encode(text).decode()) == ()
    assert firewall.find("A" * 41) == ()


def test_sensitivity_decides_which_rules_hold() -> None:
    token = draw("glpat-[A-Za-z0-9]{20}", Random(1))
    said = f'password = "{PW}"'
    plain = 'password = "correcthorsebattery"'
    found = {
        level: [
            bool(Firewall(Settings(sensitivity=level)).find(text)) for text in (token, said, plain)
        ]
        for level in ("low", "normal", "high")
    }
    assert found == {
        "low": [True, False, False],
        "normal": [True, True, False],
        "high": [True, True, True],
    }


ASSIGNS = re.compile(ASSIGNED.pattern)
PIECES = [
    "_",
    "-x",
    ".",
    ".a",
    "A" * 30,
    "value",
    "str",
    " ",
    "\t",
    "\n",
    "\\",
    "\\\\",
    '"',
    "'",
    "`",
    "]",
    ")",
]
SIGNS = ["=", "==", "=>", ":", "::", "?=", ".=", ":=", ">", ",", "||", "value=", "value ="]


@settings(deadline=None)
@given(
    st.sampled_from(["token", "PASSWORD", "api-key", "pwd"]),
    st.lists(st.sampled_from(PIECES), max_size=7),
    st.sampled_from(SIGNS),
    st.lists(st.sampled_from([*PIECES, *SIGNS]), max_size=2),
)
def test_the_quick_look_at_a_name_lets_all_pass_that_the_pattern_takes(
    name: str, rest: list[str], sign: str, behind: list[str]
) -> None:
    text = "".join((name, *rest, sign, *behind, PW)).encode()
    match = ASSIGNS.match(text)
    # Behind no sign a value counts only with a digit in it.
    if match and (match[2] is None or re.search(rb"\d", match[3])):
        assert engine._may_be_given(text, 0, [])  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    "text", ["pass the tests", 'bypass"\n"sandbox": "on"', "keys of it are a: b"]
)
def test_a_word_that_is_given_no_value_needs_no_pattern(text: str) -> None:
    made = RuleEngine()
    assert made.spans(text.encode()) == []
    assert made._patterns == {}  # pyright: ignore[reportPrivateUsage]
    assert made.spans(f"{text} password={PW}".encode())


def test_a_rule_of_ones_own_can_be_matched_alone() -> None:
    rule = SecretRule("mine", (b"mine-",), rb"mine-\d{4}", everywhere=True)
    assert RuleEngine(rules=[rule]).spans(b"a MINE-1 mine-1234") == [(9, 18, "mine")]


@pytest.mark.integration
def test_a_token_is_found_behind_an_escape_or_a_line_end_at_the_very_beginning() -> None:
    for kind, token in tokens(Random(1)):
        if "://" not in token:
            for escape in (r"\n", r"\t", r"\r"):
                assert [one.kind for one in Firewall().find(escape + token)] == [kind], token
    key = draw("AKIA[A-Z2-7]{16}", Random(1))
    assert Firewall().find(f"{key[0]}\n{key[1:]}") != ()


def test_only_tokens_are_looked_for_where_words_and_values_may_not_belong_together(
    token: str,
) -> None:
    data = f'password = "{PW}" and {token}'.encode()
    start, place = data.index(PW.encode()), data.index(token.encode())
    said, alone = (start, start + len(PW), ASSIGNED.kind), (place, len(data), "github-token")
    assert RuleEngine().spans(data) == [said, alone]
    assert RuleEngine().spans(data, only_tokens=True) == [alone]


def test_secrets_side_by_side_stay_two_and_those_that_overlap_become_one() -> None:
    assert merged([(3, 5, "b"), (0, 3, "a")]) == [(0, 3, "a"), (3, 5, "b")]
    assert merged([(0, 4, "a"), (3, 5, "b"), (3, 9, "c")]) == [(0, 9, "a")]
    assert merged([(0, 4, ASSIGNED.kind), (2, 4, "b")]) == [(0, 4, "b")]


def test_the_reader_of_vectors_draws_and_joins_texts() -> None:
    source = 'tps := []string{"a" + `b`, fmt.Sprintf("x%s", secrets.NewSecret(utils.Hex("4")))}\ntps = append(tps, "c")\n'
    assert [len(text) for text in Reader(source, [], Random(1)).list_of("tps")] == [2, 5, 1]
    assert list(Reader("tps := unknown()", [], Random(1)).list_of("tps")) == []
    with pytest.raises(Unreadable):
        Reader("", [], Random(1)).variable("nowhere")
