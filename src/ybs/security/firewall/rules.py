"""All rules: keys of every issuer, private keys, and what is said to be a secret by the words around it."""

from ybs.security.firewall.rule import ALNUM, EDGE, END, UUID, WORDS, SecretRule, loose, token

MODELS = (
    token("anthropic-key", "sk-ant-", rb"sk-ant-[a-z0-9]{3,12}-[\w-]{80,120}"),
    token(
        "openai-key",
        "sk-",
        rb"sk-(?:(?:proj|svcacct|admin|None)-[\w-]{40,220}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})",
        3.5,
    ),
    SecretRule(
        "api-key",
        (b"sk-",),
        EDGE + rb"sk-(?:or-v1-|lf-|live-|test-)?[A-Za-z0-9]{32,128}" + END,
        3.0,
        "random",
    ),
    token("huggingface-token", "hf_", rb"hf_[A-Za-z]{34}" + END, 3.5),
    token("huggingface-token", "hf_", rb"hf_[A-Za-z0-9]{34,40}" + END, 3.5),
    token("huggingface-token", "api_org_", rb"api_org_[A-Za-z]{34}" + END, 3.5),
    token("perplexity-key", "pplx-", rb"pplx-[A-Za-z0-9]{40,64}"),
    token("groq-key", "gsk_", rb"gsk_[A-Za-z0-9]{52}" + END),
    token("xai-key", "xai-", rb"xai-[A-Za-z0-9]{70,90}"),
    token("replicate-token", "r8_", rb"r8_[A-Za-z0-9]{37}" + END),
    token("langsmith-key", "lsv2_", rb"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    token("fireworks-key", "fw_", rb"fw_[A-Za-z0-9]{22,24}" + END, 3.5),
    token("pinecone-key", "pcsk_", rb"pcsk_[A-Za-z0-9_]{50,80}"),
)

PEOPLE = (
    loose(
        "slack-token",
        "xoxb- xoxp- xoxe- xoxa- xoxr- xoxo- xoxs-",
        rb"xox(?:b-\d{8,14}-[A-Za-z0-9-]{18,60}|[pe](?:-\d{9,13}){3}-[a-zA-Z0-9]{28,34}|e-\d-[A-Za-z0-9]{140,160}"
        rb"|[ar]-(?:\d-)?[0-9A-Za-z-]{8,80}|[os](?:-\d{6,14}){3}-[a-fA-F\d]{8,40})",
        2.5,
    ),
    token("slack-token", "xapp-", rb"(?i:xapp)-\d-[A-Za-z0-9]{6,20}-\d{6,20}-[A-Za-z0-9]{16,80}"),
    token("slack-token", "xoxe.xox", rb"(?i:xoxe\.xox[bp])-\d-[A-Za-z0-9]{160,170}"),
    loose(
        "slack-webhook",
        "hooks.slack.com/",
        rb"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{40,80})",
    ),
    loose("discord-webhook", "/api/webhooks/", rb"/api/webhooks/(\d{17,20}/[\w-]{60,80})"),
    SecretRule(
        "discord-token",
        (b".g", b".x", b".y"),
        rb"[MNO][\w-]{23,25}\.[GXY][\w-]{5}\.[\w-]{27,40}" + END,
        4.0,
        before=ALNUM + b"_-",
        reach=28,
        least=34,
    ),
    loose(
        "teams-webhook",
        ".webhook.office.com/",
        rb"\.webhook\.office\.com/(webhookb2/[\w@-]{73,80}/IncomingWebhook/\w{32}/[\w-]{36})",
    ),
    SecretRule(
        "telegram-token",
        (b":a",),
        rb"\d{5,16}:A[\w-]{34}" + END,
        3.5,
        before=b"0123456789",
        reach=16,
        least=36,
    ),
    token("twilio-key", "sk", rb"SK[0-9a-fA-F]{32}" + END, 3.0),
    token("sendgrid-key", "sg.", rb"SG\.[\w=.-]{59,71}[\w=-]"),
    token("sendinblue-key", "xkeysib-", rb"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    token("mailgun-key", "key- pubkey-", rb"(?:pub)?key-[a-f0-9]{32}" + END),
    SecretRule(
        "mailchimp-key",
        (b"-us",),
        rb"[a-f0-9]{32}-us\d{1,2}" + END,
        3.0,
        before=b"0123456789abcdef",
        reach=32,
    ),
    token("facebook-token", "eaa", rb"EAA[MC][A-Za-z0-9]{100,400}", 3.5),
    SecretRule(
        "facebook-token",
        (b"|", b"%7c"),
        rb"\d{15,16}(?:\||%7[cC])[\w-]{27,40}" + END,
        3.0,
        before=b"0123456789",
        reach=16,
        near=b"facebook",
    ),
    token("instagram-token", "igqv", rb"IGQV[\w-]{100,400}"),
    token("dropbox-token", "sl.", rb"sl\.(?:u\.)?[\w=-]{130,1400}"),
    token("hubspot-token", "pat-na pat-eu", rb"pat-(?:na|eu)\d-" + UUID),
    token("zoho-token", "1000.", rb"1000\.[a-f0-9]{32}\.[a-f0-9]{32}"),
    token("adobe-secret", "p8e-", rb"p8e-[A-Za-z0-9]{32}" + END),
    token(
        "grafana-token",
        "glc_ glsa_",
        rb"(?:glc_[A-Za-z0-9+/]{32,400}={0,3}|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8})",
    ),
    token("grafana-key", "eyjrijoi", rb"eyJrIjoi[A-Za-z0-9]{70,400}={0,3}"),
    token(
        "sentry-token",
        "sntrys_ sntryu_",
        rb"(?:sntryu_[a-f0-9]{64}|sntrys_eyJ[A-Za-z0-9+/=]{60,600}_[A-Za-z0-9+/]{43})",
    ),
    token(
        "newrelic-key",
        "nrak- nrjs- nrii-",
        rb"NR(?:AK-[A-Za-z0-9]{27}|JS-[a-f0-9]{19}|II-[A-Za-z0-9-]{32})" + END,
    ),
    token("mapbox-token", "sk.eyj pk.eyj", rb"[sp]k\.eyJ[\w-]{40,120}\.[\w-]{22}"),
    token("mapbox-token", "pk.", rb"pk\.[A-Za-z0-9]{60}\.[A-Za-z0-9]{22}" + END),
    token(
        "authress-key",
        "sc_ ext_ scauth_ authress_",
        rb"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[\w+/=-]{30,120}",
        least=55,
    ),
    token("settlemint-token", "sm_aat_ sm_pat_ sm_sat_", rb"sm_[aps]at_[A-Za-z0-9]{16}"),
    SecretRule(
        "maxmind-key",
        (b"_mmk",),
        rb"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk" + END,
        3.5,
        before=ALNUM + b"_",
        reach=36,
    ),
    token("intra42-secret", "s-s4t2ud- s-s4t2af-", rb"s-s4t2(?:ud|af)-[a-f0-9]{64}"),
)

MONEY = (
    token(
        "stripe-key",
        "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_",
        rb"[sr]k_(?:test|live|prod)_[A-Za-z0-9]{10,247}",
    ),
    token("stripe-webhook-secret", "whsec_", rb"whsec_[A-Za-z0-9+/]{24,64}={0,2}"),
    token(
        "square-token", "eaaa sq0atp- sq0csp-", rb"(?:EAAA|sq0atp-|sq0csp-)[\w-]{22,60}" + END, 3.5
    ),
    token("shopify-token", "shpat_ shpca_ shppa_ shpss_", rb"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    token("shippo-token", "shippo_", rb"shippo_(?:live|test)_[a-fA-F0-9]{40}"),
    token("easypost-token", "ezak eztk", rb"EZ[AT]K[A-Za-z0-9]{54}" + END),
    token(
        "flutterwave-key",
        "flwseck_test- flwpubk_test- flwseck-",
        rb"FLW(?:SECK|PUBK)(?:_TEST)?-(?:[a-h0-9]{32}-X|[a-h0-9]{12})",
    ),
    token(
        "braintree-token",
        "access_token$",
        rb"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}",
    ),
    token(
        "plaid-token",
        "access-sandbox- access-development- access-production-",
        rb"access-(?:sandbox|development|production)-" + UUID,
    ),
    token("gocardless-token", "live_", rb"live_[\w=-]{40}" + END, 3.5),
    token("lob-key", "live_ test_", rb"(?:live|test)_(?:pub_[a-f0-9]{31}|[a-f0-9]{35})" + END),
    SecretRule(
        "freemius-key",
        (b"secret_key",),
        rb"(?i:secret_key)[\"']\s{0,5}=>\s{0,5}[\"'](sk_[^\s\"']{29})[\"']",
        3.0,
        everywhere=True,
    ),
    token("beamer-token", "b_", rb"b_[A-Za-z0-9=_-]{44}(?![\w=-])", 3.8),
    token("coinbase-key", "organizations/", rb"organizations/" + UUID + rb"/apiKeys/" + UUID),
)


CLOUD = (
    token(
        "aws-access-key",
        "akia asia abia acca a3t",
        rb"(?:A3T[A-Z0-9]|A[KSB]IA|ACCA)[A-Z2-7]{16}" + END,
    ),
    token("aws-bedrock-key", "absk", rb"ABSK[A-Za-z0-9+/]{109,269}={0,2}"),
    loose("aws-bedrock-key", "bedrock-api-key-", rb"bedrock-api-key-[A-Za-z0-9+/=]{32,4000}"),
    token("google-api-key", "aiza", rb"AIza[\w-]{35}", 3.5),
    token("google-oauth-secret", "gocspx-", rb"GOCSPX-[\w-]{28}"),
    token("google-oauth-token", "ya29.", rb"ya29\.[\w-]{20,1024}"),
    SecretRule(
        "azure-client-secret",
        (b"q~",),
        rb"[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~-])",
        3.0,
        before=ALNUM + b"_~.-",
        reach=4,
        everywhere=True,
    ),
    SecretRule(
        "azure-storage-key", (b"accountkey=",), rb"(?i:AccountKey)=([A-Za-z0-9+/]{86}==)", 3.5
    ),
    SecretRule("azure-signature", (b"sig=",), rb"sig=([A-Za-z0-9%+/]{43,90}(?:=|%3[dD]))", 3.5),
    token("alibaba-access-key", "ltai", rb"LTAI[A-Za-z0-9]{20}" + END),
    token("digitalocean-token", "doo_v1_ dop_v1_ dor_v1_", rb"do[opr]_v1_[a-f0-9]{64}"),
    token("cloudflare-origin-key", "v1.0-", rb"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
    token("heroku-key", "hrku-", rb"HRKU-(?:[\w-]{60}|" + UUID + rb")"),
    token("scalingo-token", "tk-us-", rb"tk-us-[\w-]{48}"),
    token(
        "flyio-token",
        "fo1_ fm1a_ fm1r_ fm2_",
        rb"(?:fo1_[\w-]{43}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,4000}={0,3})",
    ),
    token("yandex-key", "aqvn ajep", rb"(?:AQVN|ajep)[\w-]{35,38}" + END, 3.5),
    token("yandex-token", "t1.", rb"t1\.[\w-]{5,300}={0,2}\.[\w-]{86}={0,2}"),
    SecretRule("yandex-access-key", (b"yc",), EDGE + rb"YC[\w-]{38}" + END, 4.0, near=b"yandex"),
    token("oracle-api-key", "ocid1.credential", rb"ocid1\.credential\.[\w.-]{20,200}"),
    token("databricks-token", "dapi", rb"dapi[a-f0-9]{32}(?:-\d)?" + END),
    token("planetscale-token", "pscale_", rb"pscale_(?:tkn|oauth|pw)_[\w=.-]{31,63}[\w=-]"),
    token("supabase-key", "sbp_ sb_secret_", rb"(?:sbp_[a-f0-9]{40}|sb_secret_[\w-]{20,60})"),
    token("clickhouse-key", "4b1d", rb"4b1d[A-Za-z0-9]{38}" + END, 3.5),
    token(
        "doppler-token",
        "dp.pt. dp.st. dp.ct. dp.sa.",
        rb"dp\.(?:pt|st|ct|sa)\.(?:[\w-]{1,40}\.)?[A-Za-z0-9]{40,44}",
    ),
    token("pulumi-token", "pul-", rb"pul-[a-f0-9]{40}" + END),
    token("prefect-token", "pnu_", rb"pnu_[A-Za-z0-9]{36}"),
    SecretRule(
        "terraform-token",
        (b".atlasv1.",),
        rb"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}",
        3.5,
        before=ALNUM,
        reach=14,
    ),
    token("vault-token", "hvs. hvb. hvr.", rb"hv[sbr]\.[\w-]{24,300}", 3.5),
    SecretRule(
        "vault-token", (b"s.",), EDGE + rb"s\.[A-Za-z0-9]{24}(?![\w.-])", 3.6, "random", least=26
    ),
    token("dynatrace-token", "dt0c01.", rb"dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    token("openshift-token", "sha256~", rb"sha256~[\w-]{43}" + END, 3.5),
    token("harness-key", "pat. sat.", rb"[ps]at\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    token("defined-networking-token", "dnkey-", rb"dnkey-[\w=-]{26}-[\w=-]{52}"),
    token(
        "tailscale-key",
        "tskey-",
        rb"tskey-(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{6,30}-[A-Za-z0-9]{20,60}",
    ),
)

CODE = (
    loose("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", rb"gh[pousr]_[0-9A-Za-z]{36,255}"),
    loose("github-token", "github_pat_", rb"github_pat_\w{82,255}"),
    loose(
        "gitlab-token",
        "glpat- gldt- glft- glffct- glsoat- glrt- gloas- glimt- glagent- glptt- glcbt-",
        rb"gl(?:pat|dt|ft|ffct|soat|rt|oas|imt|agent|ptt|cbt)-[\w-]{20,300}(?:\.[\w.]{7,60})?",
    ),
    token("gitlab-token", "gr1348941", rb"GR1348941[\w-]{20,60}"),
    SecretRule("gitlab-session", (b"_gitlab_session=",), rb"_gitlab_session=([0-9a-z]{32})", 3.0),
    token("bitbucket-token", "atbb", rb"ATBB[A-Za-z0-9]{28,60}" + END, 3.5),
    token("atlassian-token", "atatt3", rb"ATATT3[\w=-]{100,300}"),
    token("npm-token", "npm_", rb"npm_[A-Za-z0-9]{36}" + END),
    token(
        "pypi-token", "pypi-ageichlwas5vcmc pypi-agendgvzdc5wexbplm9yzw", rb"pypi-AgE[\w-]{50,1000}"
    ),
    token("rubygems-token", "rubygems_", rb"rubygems_[a-f0-9]{48}"),
    token("clojars-token", "clojars_", rb"(?i:CLOJARS_)[A-Za-z0-9]{60}"),
    token("crates-token", "cio", rb"cio[A-Za-z0-9]{32}" + END, 3.8),
    token("nuget-key", "oy2", rb"oy2[a-z0-9]{43}" + END, 3.5),
    token("docker-token", "dckr_pat_ dckr_oat_", rb"dckr_[po]at_[\w-]{27,60}"),
    token("artifactory-key", "akcp", rb"AKCp[A-Za-z0-9]{69,73}" + END, 4.0),
    token("artifactory-token", "cmvmd", rb"cmVmd[A-Za-z0-9]{59}" + END, 4.0),
    token("sonar-token", "squ_ sqp_ sqa_", rb"sq[upa]_[\w=-]{40}" + END),
    token("sourcegraph-token", "sgp_", rb"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}"),
    SecretRule(
        "sourcegraph-token",
        (b"sourcegraph",),
        rb"(?i:sourcegraph)[\w .-]{0,30}[\"'\s:=>(,]{1,8}([a-fA-F0-9]{40})" + END,
        3.0,
        everywhere=True,
    ),
    token("postman-key", "pmak-", rb"PMAK-[a-fA-F0-9]{24}-[a-fA-F0-9]{34}"),
    token("readme-key", "rdme_", rb"rdme_[a-z0-9]{70}"),
    token("launchdarkly-key", "api- sdk-", rb"(?:api|sdk)-" + UUID + END),
    SecretRule(
        "sidekiq-key",
        (b"contribsys",),
        rb"(?i:contribsys)[\w.-]{0,20}(?:[ \t][a-z]{2,10})?[\"'`\s:=>?,.]{1,10}([a-f0-9]{8}:[a-f0-9]{8})"
        + END,
        everywhere=True,
    ),
    SecretRule(
        "nuget-password",
        (b'password" value=',),
        rb"(?i:password\" value=)[\"']([^\"'\s]{8,200})[\"']",
        0.0,
        "login",
        level="normal",
        everywhere=True,
    ),
    token("octopus-key", "api-", rb"API-[A-Z0-9]{26}" + END),
    token("snyk-token", "snyk_", rb"snyk_(?:uat|sat)\.[a-z0-9]{8}\.[\w-]{20,300}"),
    token("infracost-key", "ico-", rb"ico-[A-Za-z0-9]{32}" + END),
    token("buildkite-token", "bkua_ bkaj_", rb"bk(?:ua|aj)_[a-z0-9]{40}"),
    token("circleci-token", "ccipat_ ccipra_", rb"CCIP(?:AT|RA)_[A-Za-z0-9]{20,24}_[a-f0-9]{40}"),
    token("linear-key", "lin_api_ lin_oauth_", rb"lin_(?:api|oauth)_[A-Za-z0-9]{40,64}"),
    token(
        "notion-token",
        "ntn_ secret_",
        rb"(?:ntn_\d{11}[A-Za-z0-9]{35}|secret_[A-Za-z0-9]{43})" + END,
        3.5,
    ),
    token("figma-token", "figd_ figo_", rb"fig[do]_[\w-]{40}"),
    SecretRule(
        "airtable-token",
        (b"pat",),
        EDGE + rb"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}" + END,
        3.0,
        least=82,
    ),
    token(
        "asana-token", "0/ 1/ 2/", rb"(?<![/\w])[012]/\d{10,20}(?:/\d{10,20})?:[a-f0-9]{32}" + END
    ),
    token("typeform-token", "tfp_", rb"tfp_[\w.=-]{59}"),
    token("contentful-token", "cfpat-", rb"CFPAT-[\w-]{43}"),
    token("frameio-token", "fio-u-", rb"fio-u-[\w=-]{64}"),
    token("duffel-token", "duffel_", rb"duffel_(?:test|live)_[\w=-]{43}"),
)


_KEYS = (
    SecretRule(
        "private-key",
        (b"-----begin",),
        rb"-----BEGIN[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----",
        0.0,
        "key",
    ),
    SecretRule(
        "private-key",
        (b"-----end",),
        rb"-----END[ A-Z0-9_-]{0,60}PRIVATE KEY(?: BLOCK)?-----",
        0.0,
        "key-end",
        everywhere=True,
    ),
    SecretRule(
        "private-key",
        (b"private-lines",),
        rb"Private-Lines: \d{1,3}\s{1,2}((?:[A-Za-z0-9+/=]{10,64}\s{1,2}){2,80})",
    ),
    SecretRule(
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
    SecretRule(
        "jwt",
        (b"ey",),
        EDGE + rb"ey[A-Za-z0-9_-]{12,4096}\.ey[\w/\\-]{8,8192}\.(?:[\w/\\-]{10,2048}={0,2})?",
        3.0,
        least=24,
    ),
    SecretRule("jwt", (b"zxlk",), EDGE + rb"ZXlK[A-Za-z0-9+/_-]{60,8192}={0,2}", 3.0),
)

_SPOKEN = (
    SecretRule(
        "url-password",
        (b"://",),
        rb"://[^\s:/@\"'`<>\[\]{}$]{0,100}:([^\s/@\"'`<>\[\]]{3,200})@(?=[\w\[$%-])",
        0.0,
        "login",
        then=b"@",
        level="normal",
        everywhere=True,
    ),
    SecretRule(
        "basic-auth",
        (b"basic ",),
        EDGE + rb"(?i:basic) {1,3}([A-Za-z0-9+/]{8,400}={0,2})(?![\w+/=-])",
        0.0,
        "basic",
        level="normal",
        everywhere=True,
    ),
    SecretRule(
        "bearer-token",
        (b"bearer ",),
        EDGE + rb"(?i:bearer) {1,3}([\w.~+/=-]{12,2000})(?![\w.~+/=%(\[{$-])",
        2.8,
        "random",
        level="normal",
        everywhere=True,
    ),
    SecretRule(
        "auth-header",
        (b"authorization:",),
        rb"(?i:authorization:) {0,4}(?:(?i:api-?|)(?i:token|key) )?([\w=~@.+/-]{8,400})(?=[\"'\s\\]|$)",
        2.8,
        "random",
        level="normal",
        everywhere=True,
    ),
    SecretRule(
        "curl-login",
        (b" -u", b"--user"),
        rb" ?--?u(?:ser)?(?:=|\s{0,5})(\"[^\"\s]{0,100}:[^\"\s]{0,100}\"|'[^'\s]{0,100}:[^'\s]{0,100}'|[^\s:\"']{1,100}:(?:\"[^\"\s]{3,100}\"|'[^'\s]{3,100}'|[^\s\"']{3,100})|\"[^\"\s]{3,100}\":\"[^\"\s]{3,100}\")(?=\s|$)",
        0.0,
        "login",
        near=b"curl",
        level="normal",
        everywhere=True,
    ),
    SecretRule(
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
ASSIGNED = SecretRule(
    "assigned-secret",
    (b"token", b"secret", b"api_key", b"api-key", b"apikey", b"credential", b"creds", b"key", b"auth", b"pwd", b"pass"),
    rb"((?i:" + WORDS + rb"))" + _ASSIGN + _VALUE,
    0.0, "assigned", level="normal", everywhere=True,
)  # fmt: skip

#: The kind of the person's own secrets, which are known by value.
OWN = "own-secret"
RULES: tuple[SecretRule, ...] = (
    *CLOUD,
    *CODE,
    *MODELS,
    *PEOPLE,
    *MONEY,
    *_KEYS,
    *_SPOKEN,
    ASSIGNED,
)
KINDS: frozenset[str] = frozenset(rule.kind for rule in RULES) | {OWN}
