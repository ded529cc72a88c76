"""Texts that look like secrets and are none: ids, hashes, lock files, pictures, programs, and what documents show."""

import base64
from collections.abc import Iterator
from hashlib import md5, sha1, sha256, sha512
from random import Random
from uuid import UUID

_ALNUM = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#: What stands where a secret would, and how it is written.
_STAND_INS = (
    *("changeme", "change_me", "password", "secret", "xxxxxxxx", "********", "<your-api-key>", "<YOUR_TOKEN_HERE>"),
    *("${API_KEY}", "$API_KEY", "{{ api_key }}", "%(token)s", "your-api-key-here", "YOUR_SECRET_KEY", "REDACTED"),
    *("example", "dummy-token", "test", "placeholder", "...", "os.environ['API_KEY']", "process.env.API_KEY"),
    *("getenv(\"TOKEN\")", "None", "null", "undefined", "insert-token-here", "[REDACTED]", "<redacted>"),
)  # fmt: skip
_FRAMES = ('api_key = "{}"', "API_TOKEN={}", 'password: "{}"', '"client_secret": "{}",')
_CODE = (
    "token = self.tokens[self.position]", "for token in tokenize(text): yield token", "def get_token(self) -> str:",
    "const key = Object.keys(map)[0];", "key = lambda item: item.name2", "sorted(rows, key=str.lower)", "primary_key=True,",
    'cache_key = f"user:{user_id}:profile:v2"', 'KEY_PREFIX = "sessions-v1"', "if token is None: raise ValueError('no token')",
    "token_count = 4096", "max_tokens: 8192,", '"max_tokens": 1000000', "auth = HTTPBasicAuth(user, password)", "password = getpass.getpass()",
    "api_key: Optional[str] = None", "secret: bytes = os.urandom(32)", "passwords = load_passwords(path)", "PASSWORD_HASHERS = [",
    "AUTH_USER_MODEL = 'accounts.User'", "'django.contrib.auth.password_validation.MinimumLengthValidator'", "keyboard: 'qwerty'",
    'foreign_key = "orders_customer_id_fk1"', "monkeypatch.setenv('TOKEN', 'x')", "public_key_path = ~/.ssh/id_ed25519.pub",
    "token_url = 'https://auth.example.org/oauth2/token'", "author = 'Jane Q. Public <jane42@mail.example>'", "<Key.shift_r: <65506>>",
    'i18n.t("errors.password.too_short2")', "PasswordField(label='Password2')", "secretName: my-app-tls-2024", "keyPath: tls.key",
    'react_key="item-0042-row-7"', "sort_key: created_at_2", "token_type: bearer", '"token_type":"Bearer","expires_in":3600',
    "Authorization: Bearer <token>", "Authorization: Bearer $TOKEN", "Authorization: Basic <credentials>", "curl -u user:password https://x.example",
    "curl -u $USER:$PASS https://x.example", "https://user:password@host.example/path", "postgres://user:pass@localhost:5432/db", "redis://:${REDIS_PASSWORD}@cache:6379/0",
    "git clone https://<user>:<token>@git.example/repo.git", "ssh://git@git.example:22/repo.git", "http://[::1]:8080/", "a basic understanding of things",
    "Bearer of bad news arrived yesterday evening", "Basic authentication is simple", "basic realisation: nothing", "sk-learn is short for scikit-learn",
    "sk-SK locale for Slovak", "task-runner-with-long-name-and-more", "risk-assessment-framework-2024-edition", "eyJust a word", "AIzantium is no key",
    "akia is a town", "ghp_ is the prefix of tokens", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "glpat-xxxxxxxxxxxxxxxxxxxx", "npm_config_registry_override_default_value",
    "xoxb-your-token-goes-here", "xoxb-xxxxxxxxxxxx-xxxxxxxxxxxx-xxxxxxxxxxxxxxxxxxxxxxxx", "SG.xxxxxxxxxxxxxxxxxxxxxx.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "sk_test_xxxxxxxxxxxxxxxxxxxxxxxx", "sk_live_...", "hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "-----BEGIN PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----",
    "-----BEGIN RSA PRIVATE KEY----- ... -----END RSA PRIVATE KEY-----", 'if line.startswith("-----BEGIN PRIVATE KEY-----"):',
    "AKIA" + "IOSFODNN7" + "EXAMPLE", "aws_secret_access" + "_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "sk-ant-...", "sk-" + "x" * 48,
)  # fmt: skip


def negatives(random: Random) -> Iterator[tuple[str, str]]:
    """Yield what each text is, and the text."""
    for stand_in in _STAND_INS:
        for frame in _FRAMES[: 2 if len(stand_in) > 12 else 4]:
            yield "stand-in", frame.format(stand_in)
    for line in _CODE:
        yield "code", line
    for _ in range(4):
        yield from _ids(random)
        yield from _hashes(random)
        yield from _locks(random)
        yield from _blobs(random)


def _ids(random: Random) -> Iterator[tuple[str, str]]:
    uuid = UUID(int=random.getrandbits(128))
    yield "uuid", str(uuid)
    yield "uuid", f'"id": "{uuid}",'
    yield "uuid", f"request_id={uuid} status=200"
    yield "uuid", f'<Guid("{str(uuid).upper()}")>'
    yield "uuid", f'key: "{uuid}"'
    yield "ulid", "01" + "".join(random.choices("0123456789ABCDEFGHJKMNPQRSTVWXYZ", k=24))
    yield "object id", f'"_id": {{"$oid": "{random.getrandbits(96):024x}"}}'
    yield "number", f"phone: +49 {random.randrange(10**9)} iban: DE{random.randrange(10**20):020}"
    yield "address", ":".join(f"{random.randrange(256):02x}" for _ in range(6))
    yield (
        "time",
        f"token expires at 2024-0{random.randint(1, 9)}-11T10:{random.randint(10, 59)}:00.123456Z",
    )


def _hashes(random: Random) -> Iterator[tuple[str, str]]:
    raw = random.randbytes(32)
    yield "git", f"commit {sha1(raw).hexdigest()}"
    yield "git", f"index {raw.hex()[:7]}..{raw.hex()[8:15]} 100644"
    yield "sha256", f"{sha256(raw).hexdigest()}  ybs-0.1.0.tar.gz"
    yield "md5", f"Content-MD5: {base64.b64encode(md5(raw).digest()).decode()}"
    yield "etag", f'ETag: "{md5(raw).hexdigest()}"'
    yield "docker", f"FROM python:3.11@sha256:{sha256(raw).hexdigest()}"
    yield "sri", f'integrity="sha384-{base64.b64encode(sha512(raw).digest()[:48]).decode()}"'
    yield "checksum", f'checksum_key = "{sha256(raw).hexdigest()}"'
    yield (
        "fingerprint",
        f"SHA256:{base64.b64encode(sha256(raw).digest()).decode().rstrip('=')} user@host (ED25519)",
    )


def _locks(random: Random) -> Iterator[tuple[str, str]]:
    raw = random.randbytes(64)
    yield "npm lock", f'"integrity": "sha512-{base64.b64encode(raw).decode()}",'
    yield (
        "npm lock",
        f'"resolved": "https://registry.example/auth-token/-/auth-token-{random.randrange(9)}.0.{random.randrange(30)}.tgz",',
    )
    yield "yarn lock", f"  checksum: {raw.hex()}"
    yield "pip", f"    --hash=sha256:{sha256(raw).hexdigest()} \\"
    yield (
        "poetry",
        f'{{file = "jsonwebtoken-1.2.tar.gz", hash = "sha256:{sha256(raw).hexdigest()}"}},',
    )
    yield (
        "go sum",
        f"golang.org/x/crypto v0.{random.randrange(30)}.0 h1:{base64.b64encode(raw[:32]).decode()}",
    )
    yield (
        "cargo lock",
        f'name = "secret-service"\nversion = "3.0.{random.randrange(9)}"\nchecksum = "{sha256(raw).hexdigest()}"',
    )


def _blobs(random: Random) -> Iterator[tuple[str, str]]:
    yield (
        "picture",
        f'<img src="data:image/png;base64,iVBORw0KGgo{base64.b64encode(random.randbytes(600)).decode()}">',
    )
    yield (
        "font",
        f"src:url(data:font/woff2;base64,d09GMgABAAAAA{base64.b64encode(random.randbytes(500)).decode()})",
    )
    yield (
        "minified",
        "!function(e,t){var n="
        + ",".join(
            f"{random.choice('abcdefgh')}{random.randrange(99)}=function(e){{return e.key||t[{random.randrange(99)}]}}"
            for _ in range(12)
        )
        + "}()",
    )
    yield (
        "source map",
        '{"mappings":"'
        + ";".join("".join(random.choices(_ALNUM[:52], k=4)) for _ in range(40))
        + '"}',
    )
    yield (
        "ssh",
        f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{base64.b64encode(random.randbytes(32)).decode().rstrip('=')} me@host",
    )
    certificate = base64.b64encode(random.randbytes(300)).decode()
    yield (
        "certificate",
        "-----BEGIN CERTIFICATE-----\n"
        + "\n".join(certificate[i : i + 64] for i in range(0, 400, 64))
        + "\n-----END CERTIFICATE-----",
    )
    yield (
        "css",
        f".token-{random.randrange(9)}{{color:#{random.getrandbits(24):06x};background:#{random.getrandbits(24):06x}}}",
    )
