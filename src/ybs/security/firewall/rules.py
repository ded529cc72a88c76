"""All rules: keys of every issuer, private keys, and what is said to be a secret by the words around it."""

from ybs.security.firewall.rule import EDGE, END, WORDS, Rule, loose, token
from ybs.security.firewall.rules_cloud import CLOUD, CODE
from ybs.security.firewall.rules_services import MODELS, MONEY, PEOPLE

_KEYS = (
    Rule(
        "private-key",
        (b"-----begin",),
        rb"-----BEGIN[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----",
        0.0,
        "key",
    ),
    Rule(
        "private-key",
        (b"-----end",),
        rb"-----END[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----",
        0.0,
        "key-end",
        everywhere=True,
    ),
    Rule(
        "private-key",
        (b"private-lines",),
        rb"Private-Lines: \d{1,3}\s{1,2}((?:[A-Za-z0-9+/=]{10,64}\s{1,2}){2,80})",
    ),
    Rule(
        "age-key",
        (b"age-secret-key-1",),
        rb"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}",
        0.0,
        "sure",
    ),
    token(
        "onepassword-key",
        "a3-",
        rb"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}" + END,
        3.3,
    ),
    loose("onepassword-token", "ops_eyj", rb"ops_eyJ[A-Za-z0-9+/]{200,2000}={0,3}"),
    Rule(
        "jwt",
        (b"ey",),
        EDGE + rb"ey[A-Za-z0-9_-]{12,4096}\.ey[\w/\\-]{8,8192}\.(?:[\w/\\-]{10,2048}={0,2})?",
        3.0,
        least=24,
    ),
    Rule("jwt", (b"zxlk",), EDGE + rb"ZXlK[A-Za-z0-9+/_-]{60,8192}={0,2}", 3.0),
)

_SPOKEN = (
    Rule(
        "url-password",
        (b"://",),
        rb"://[^\s:/@\"'`<>\[\]{}$]{0,100}:([^\s/@\"'`<>\[\]]{3,200})@(?=[\w\[$%-])",
        0.0,
        "login",
        then=b"@",
        level="normal",
        everywhere=True,
    ),
    Rule(
        "basic-auth",
        (b"basic ",),
        EDGE + rb"(?i:basic) {1,3}([A-Za-z0-9+/]{8,400}={0,2})(?![\w+/=-])",
        0.0,
        "basic",
        level="normal",
        everywhere=True,
    ),
    Rule(
        "bearer-token",
        (b"bearer ",),
        EDGE + rb"(?i:bearer) {1,3}([\w.~+/=-]{12,2000})(?![\w.~+/=%(\[{$-])",
        2.8,
        "random",
        level="normal",
        everywhere=True,
    ),
    Rule(
        "auth-header",
        (b"authorization:",),
        rb"(?i:authorization:) {0,4}(?:(?i:api-?|)(?i:token|key) )?([\w=~@.+/-]{8,400})(?=[\"'\s\\]|$)",
        2.8,
        "random",
        level="normal",
        everywhere=True,
    ),
    Rule(
        "curl-login",
        (b" -u", b"--user"),
        rb" ?--?u(?:ser)?(?:=|\s{0,5})(\"[^\"\s]{0,100}:[^\"\s]{0,100}\"|'[^'\s]{0,100}:[^'\s]{0,100}'|[^\s:\"']{1,100}:(?:\"[^\"\s]{3,100}\"|'[^'\s]{3,100}'|[^\s\"']{3,100})|\"[^\"\s]{3,100}\":\"[^\"\s]{3,100}\")(?=\s|$)",
        0.0,
        "login",
        near=b"curl",
        level="normal",
        everywhere=True,
    ),
    Rule(
        "netrc-password",
        (b"machine ",),
        rb"machine {1,4}[\w.-]{1,100}\s{1,4}login\s{1,4}\S{1,100}\s{1,4}password\s{1,4}(\S{4,200})",
        0.0,
        "login",
        level="normal",
        everywhere=True,
    ),
)

_CHARS = rb"[\w.~+/=!@#$%^&*?-]"
#: What follows the backslash of an escape: a sign, or how a number begins. Letters of white space end a value.
_ESCAPED = rb"(?:[!-/:-@\[-`{-~xU01]|u(?:\{\w{1,6}\})?)"
#: The escapes that do not end a value: within quotes, a quote too, and without a backslash one of another kind or one
#: that is doubled; within the quotes of a text that is in quotes itself, each with a backslash more for each of theirs;
#: without quotes, signs that a shell would read.
_WITHIN = (
    (rb"(?<=[^\\][\"'`])", rb"(?:\\" + _ESCAPED + rb"|(?<=\w)[\"'`]{1,2}(?=\w))"),
    (rb"(?<=[^\\]\\[\"'`])", rb"\\\\(?:\\" + _ESCAPED + rb"|[/xu01])"),
    (rb"(?<![\"'`\\])", rb"\\[!#$%&()*+,:;=?@^~-]"),
)
_ESCAPING = b"".join(
    opening + _CHARS + rb"{0,200}+(?:" + escape + _CHARS + rb"{0,200}+){1,20}+|"
    for opening, escape in _WITHIN
)
_VALUE = rb"(" + _ESCAPING + _CHARS + rb"{8,400})"
_ASSIGN = (
    rb"[\w-]{0,30}+(?:\.[\w-]{1,30}+){0,3}(?:\\{0,3}[\"'`\])]{1,3}|[ \t](?:[A-Za-z]{2,10})?)?[ \t]{0,8}[\"']?"  # the rest of the name, a type
    rb"(?:\|\||=>|[:?.]{0,3}={1,2}|[:>]|(?<=[\"'`]),|value[ \t]?=)"
    rb"[\s=]{0,20}[\"'`\\]{0,4}"
)
ASSIGNED = Rule(
    "assigned-secret",
    (b"token", b"secret", b"api_key", b"api-key", b"apikey", b"credential", b"creds", b"key", b"auth", b"pwd", b"pass"),
    rb"((?i:" + WORDS + rb"))" + _ASSIGN + _VALUE,
    0.0, "assigned", level="normal", everywhere=True,
)  # fmt: skip

#: The kind of the person's own secrets, which are known by value.
OWN = "own-secret"
RULES: tuple[Rule, ...] = (*CLOUD, *CODE, *MODELS, *PEOPLE, *MONEY, *_KEYS, *_SPOKEN, ASSIGNED)
KINDS: frozenset[str] = frozenset(rule.kind for rule in RULES) | {OWN}
