"""Published shapes of tokens, from which made-up ones are drawn at run time, and the frames that they stand in."""

from collections.abc import Iterator
from random import Random

from secrets_corpus.drawing import draw

#: The kind that the firewall names, and the shape. None of these is a token, and none is in a rule's own words.
SHAPES = (
    ("github-token", "ghp_[A-Za-z0-9]{36}"), ("github-token", "gho_[A-Za-z0-9]{36}"), ("github-token", "ghs_[A-Za-z0-9]{36}"),
    ("github-token", "github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"), ("gitlab-token", "glpat-[A-Za-z0-9]{20}"), ("gitlab-token", "glrt-[A-Za-z0-9]{20}"),
    ("gitlab-token", "gldt-[A-Za-z0-9]{20}"), ("aws-access-key", "AKIA[A-Z2-7]{16}"), ("aws-access-key", "ASIA[A-Z2-7]{16}"), ("google-api-key", "AIza[A-Za-z0-9]{35}"),
    ("google-oauth-secret", "GOCSPX-[A-Za-z0-9]{28}"), ("google-oauth-token", "ya29\\.[A-Za-z0-9]{60}"), ("digitalocean-token", "dop_v1_[a-f0-9]{64}"),
    ("databricks-token", "dapi[a-f0-9]{32}"), ("npm-token", "npm_[A-Za-z0-9]{36}"), ("pypi-token", "pypi-AgEIcHlwaS5vcmc[A-Za-z0-9]{70}"),
    ("rubygems-token", "rubygems_[a-f0-9]{48}"), ("docker-token", "dckr_pat_[A-Za-z0-9]{27}"), ("postman-key", "PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("linear-key", "lin_api_[A-Za-z0-9]{40}"), ("notion-token", "ntn_[0-9]{11}[A-Za-z0-9]{35}"), ("figma-token", "figd_[A-Za-z0-9]{40}"),
    ("airtable-token", "pat[A-Za-z0-9]{14}\\.[a-f0-9]{64}"), ("typeform-token", "tfp_[A-Za-z0-9]{59}"), ("anthropic-key", "sk-ant-api03-[A-Za-z0-9]{93}AA"),
    ("openai-key", "sk-proj-[A-Za-z0-9]{74}T3BlbkFJ[A-Za-z0-9]{74}"), ("api-key", "sk-[a-f0-9]{32}"), ("huggingface-token", "hf_[A-Za-z]{34}"),
    ("groq-key", "gsk_[A-Za-z0-9]{52}"), ("replicate-token", "r8_[A-Za-z0-9]{37}"), ("perplexity-key", "pplx-[A-Za-z0-9]{48}"), ("xai-key", "xai-[A-Za-z0-9]{80}"),
    ("langsmith-key", "lsv2_pt_[a-f0-9]{32}_[a-f0-9]{10}"), ("slack-token", "xoxb-[0-9]{12}-[0-9]{13}-[A-Za-z0-9]{24}"), ("slack-token", "xapp-1-A[A-Z0-9]{10}-[0-9]{13}-[a-f0-9]{64}"),
    ("slack-webhook", "https://hooks\\.slack\\.com/services/T[A-Z0-9]{8}/B[A-Z0-9]{8}/[A-Za-z0-9]{24}"), ("discord-webhook", "https://discord\\.com/api/webhooks/[0-9]{18}/[A-Za-z0-9]{68}"),
    ("telegram-token", "[0-9]{10}:A[A-Za-z0-9]{34}"), ("twilio-key", "SK[a-f0-9]{32}"), ("sendgrid-key", "SG\\.[A-Za-z0-9]{22}\\.[A-Za-z0-9]{43}"), ("mailgun-key", "key-[a-f0-9]{32}"),
    ("mailchimp-key", "[a-f0-9]{32}-us1[0-9]"), ("sendinblue-key", "xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"), ("hubspot-token", "pat-na1-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}"),
    ("stripe-key", "sk_live_[A-Za-z0-9]{24}"), ("stripe-key", "rk_test_[A-Za-z0-9]{99}"), ("stripe-webhook-secret", "whsec_[A-Za-z0-9]{32}"), ("square-token", "sq0atp-[A-Za-z0-9]{22}"),
    ("shopify-token", "shpat_[a-f0-9]{32}"), ("easypost-token", "EZAK[A-Za-z0-9]{54}"), ("shippo-token", "shippo_live_[a-f0-9]{40}"), ("plaid-token", "access-sandbox-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}"),
    ("vault-token", "hvs\\.[A-Za-z0-9]{90}"), ("terraform-token", "[A-Za-z0-9]{14}\\.atlasv1\\.[A-Za-z0-9]{64}"), ("doppler-token", "dp\\.pt\\.[A-Za-z0-9]{43}"), ("pulumi-token", "pul-[a-f0-9]{40}"),
    ("planetscale-token", "pscale_tkn_[A-Za-z0-9]{43}"), ("dynatrace-token", "dt0c01\\.[A-Z0-9]{24}\\.[A-Z0-9]{64}"), ("grafana-token", "glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}"),
    ("newrelic-key", "NRAK-[A-Z0-9]{27}"), ("sentry-token", "sntryu_[a-f0-9]{64}"), ("atlassian-token", "ATATT3[A-Za-z0-9]{180}"), ("age-key", "AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    ("onepassword-key", "A3-[A-Z0-9]{6}-[A-Z0-9]{11}-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}"), ("jwt", "eyJhbGciOiJIUzI1NiJ9\\.eyJ[A-Za-z0-9]{40}\\.[A-Za-z0-9]{43}"), ("supabase-key", "sbp_[a-f0-9]{40}"),
    ("tailscale-key", "tskey-auth-[A-Za-z0-9]{12}-[A-Za-z0-9]{32}"), ("azure-client-secret", "[A-Za-z0-9]{3}8Q~[A-Za-z0-9]{34}"), ("launchdarkly-key", "sdk-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}"),
)  # fmt: skip
FRAMES = (
    "{}", "value: {}", 'x = "{}"', "export X={}", '{{"x": "{}"}}', "'{}',", "see {}.", "({})", "`{}`", "a\n{}\nb", "x={}&y=1", "line one\\n{}\\nline two", "<v>{}</v>", "-H 'X-Auth: {}'",
)  # fmt: skip


def tokens(random: Random) -> Iterator[tuple[str, str]]:
    """Yield one made-up token of every shape, with its kind."""
    for kind, shape in SHAPES:
        yield kind, draw(shape, random)


def private_key(random: Random, kind: str = "RSA ") -> str:
    """Make up what looks like a private key."""
    lines = [draw("[A-Za-z0-9+/]{64}", random) for _ in range(12)]
    return "\n".join(
        (f"-----BEGIN {kind}PRIVATE" + " KEY-----", *lines, f"-----END {kind}PRIVATE" + " KEY-----")
    )
