"""X01: values that do not stand beside the name that says that they are secret, but in its statement, element or block."""

from random import Random

import pytest
from secrets_corpus.drawing import draw

from rows import every_row
from timing import takes_at_most
from ybs.security.firewall.engine import RuleEngine
from ybs.security.firewall.masking import Firewall

#: A value with three groups of digits, one with the signs that base64 has, and one of hex.
VALUES = [
    draw("[A-Za-z][0-9][A-Za-z]{5}[0-9][A-Za-z]{6}[0-9][A-Za-z0-9]{9}", Random(1)),
    draw("[A-Z][a-z][0-9][/+][A-Z][0-9][a-z]{3}[0-9][A-Za-z0-9]{20}", Random(2)) + "==",
    draw("[a-f][0-9]{2}[a-f][0-9][a-f]{2}[0-9][a-f0-9]{24}", Random(3)),
]
#: A password of twelve signs.
SHORT = draw("[a-z][A-Z][0-9][a-z][A-Z][0-9][a-z][A-Z][0-9][a-z][A-Z][a-z]", Random(4))
#: Each stands for a kind of file.
REGIONS = (
    'const char ssid[] = "home"; const char password[] = "{}";',
    'static const char api_token[33] PROGMEM = "{}";',
    'api_key: str | None = "{}"',
    'db_password: SecretStr = SecretStr("{}")',
    'api_key: str = Field(default="{}", min_length=1)',
    'API_TOKEN: Final[str] = "{}"',
    'api_token: Mapping[str, str] = "{}"',
    "const apiKey: string | undefined = '{}';",
    'string ApiKey {{ get; set; }} = "{}";',
    'const API_KEY: &\'static str = "{}";',
    'NSString *apiKey = @"{}";',
    'signing_key: bytes = b"{}"',
    'variable "db_password" {{\n  description = "of the database (main)"\n  type        = string\n  sensitive   = true\n  default     = "{}"\n}}',
    "DBPassword:\n    Type: String\n    NoEcho: true\n    Default: {}\n",
    '{{\n    "name": "DB_PASSWORD",\n    "slotSetting": false,\n    "value": "{}"\n  }}',
    '"Name": "/prod/db_password",\n  "Type": "SecureString",\n  "Value": "{}"',
    '{{\\"name\\": \\"DB_PASSWORD\\",\\n \\"type\\": \\"plain\\",\\n \\"value\\": \\"{}\\"}}',
    '{{"api_key": {{"kind": "plain", "value": "{}"}}}}',
    '<setting name="ApiKey" serializeAs="String">\n  <value>{}</value>\n</setting>',
    '<property name="password"><value>{}</value></property>',
    '<string name="api_key" translatable="false">{}</string>',
    'SECRET_KEY = env("SECRET_KEY", default="{}")',
)


@pytest.mark.parametrize("value", VALUES)
@every_row("text", REGIONS)
def test_a_value_that_looks_drawn_is_found_whatever_stands_between_it_and_its_name(
    firewall: Firewall, text: str, value: str
) -> None:
    masked = text.format("[ybs:secret:assigned-secret#1]")
    assert firewall.mask(text.format(value)) == masked
    numbered = "".join(f"{at:6}\t{line}\n" for at, line in enumerate(text.split("\n"), 1))
    assert value not in firewall.mask(numbered.format(value))


@every_row(
    "text",
    [
        *(text.format("NotDrawnButNamedByWords") for text in REGIONS),
        *(text.format("com.example.service2.v1.Access3Provider") for text in REGIONS),
        *(text.format("short-1a") for text in REGIONS),
        *(text.format("async_chat_v2_ckpt_35k") for text in REGIONS[:12]),
        *(text.format(f"your-key-{VALUES[0]}") for text in REGIONS[2:8]),
        *(
            text.format(draw("[a-f0-9]{8}(-[a-f0-9]{4}){3}-[a-f0-9]{12}", Random(1)))
            for text in REGIONS[2:8]
        ),
        *(
            text.format(VALUES[2])
            for text in (
                'token = lookup(table); sha == "{}"',
                'if token and sha == "{}":',
                'token != "x" and sha == "{}"',
                'get_token(client, commit="{}")',
                'fetch_token("a", "{}")',
                'expect(token).toBe("{}")',
                '[{{"name": "api_key"}}, {{"id": 1, "value": "{}"}}]',
                'api_key_id: str | None = "{}"',
                'public_key: str | None = "{}"',
                'key: str | None = "{}"',
                'key_handle: Optional[str] = "{}"',
                '"name": "token", "hashes": [{{"alg": "MD5", "content": "{}"}}]',
                'api_key:\n  a: 1\n\n  default: "{}"',
                '- name: DB_PASSWORD\n  from: x\n- name: COMMIT\n  value: "{}"',
                'api_key:\n  a: 1\n  b: 2\n  c: 3\n  d: 4\n  e: 5\n  default: "{}"',
                '<a class="token">x</a><b>{}</b>',
                "see the token <b>{}</b>",
                '"api_key": {{"about": "' + "words " * 60 + '", "value": "{}"}}',
                "my_api_key_name {{ value: {} }}",
                "# the token of the commit, default={}",
            )
        ),
    ],
)
def test_a_value_is_left_alone_that_no_name_of_secrecy_is_given(text: str) -> None:
    assert Firewall().find(text) == ()  # a new one: the values are the same


@every_row(
    "text",
    ["ansible_become_pass: {}", "smtp_pass: {}", "db_pass = {}", "Server=db;Uid=sa;Pwd={};", "bindpw: {}", "rootpw={}", 'psk="{}"', "auth: {{user: me, pass: '{}'}}"],
)  # fmt: skip
def test_a_short_word_that_ends_a_name_is_that_of_a_password(firewall: Firewall, text: str) -> None:
    assert firewall.mask(text.format(SHORT)) == text.format("[ybs:secret:assigned-secret#1]")
    assert firewall.find(text.format("only-words-of-it")) == ()


@every_row(
    "text",
    [
        f"passthrough: {SHORT}",
        f"pass_count = {SHORT}",
        f"['crc-16-buypass', '{SHORT}']",
        f"HAS_PSK_TLS = {SHORT}",
        f"upward: {SHORT}",
    ],
)
def test_a_short_word_within_a_name_is_none(firewall: Firewall, text: str) -> None:
    assert firewall.find(text) == ()


@every_row(
    "text",
    [
        "SECRET_KEY = 'django-insecure-{}'",
        'SECRET_KEY = "{}"',
        "SECRET_KEY={}\nDEBUG=1",
        'SECRET_KEY = env("SECRET_KEY", default="{}")',
    ],
)
def test_the_key_of_django_is_masked_whole(firewall: Firewall, text: str) -> None:
    for seed in range(5):
        key = draw("([a-z]{2}[0-9][!@#$%^&*=+_-][a-z][)(!@#$]){8}[a-z]{2}", Random(seed))
        found = firewall.find(text.format(key))
        assert [text.format(key)[one.start : one.end].endswith(key) for one in found] == [True]
    for code in ("re.sub(a,b)+re.sub(c,d)+re.sub(e,f)+re.sub(g,h)", "^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)$", "name(of)a-word_and(of)more_words-that(say)nothing"):  # fmt: skip
        assert firewall.find(text.format(code)) == (), code


@pytest.mark.integration
@every_row(
    "unit",
    [
        "token: " + "[a]" * 80 + ';("{}"',
        "token: " + "[" * 200 + '="{}"',
        "token {{" + " " * 38 + '}}="{}"',
        "token:\n" + "1\t" * 90 + "- \ndefault: {}\n",
        "token\n" + " " * 200 + "\tdefault: {}\n",
        'pw"default="{}"',
        "token:\n<a>{}</b>\n",
    ],
)
def test_x04_names_without_a_value_of_theirs_take_little_time(unit: str) -> None:
    text = unit.format(VALUES[0])
    with takes_at_most(0.5):  # 10 to 40 ms as a rule
        RuleEngine().spans((text * (20_000 // len(text))).encode())
