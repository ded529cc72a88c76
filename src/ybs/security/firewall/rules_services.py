"""Keys of models, of what people write and talk with, and of what they pay with."""

from ybs.security.firewall.rule import ALNUM, EDGE, END, UUID, Rule, loose, token

MODELS = (
    token("anthropic-key", "sk-ant-", rb"sk-ant-[a-z0-9]{3,12}-[\w-]{80,120}"),
    token(
        "openai-key",
        "sk-",
        rb"sk-(?:(?:proj|svcacct|admin|None)-[\w-]{40,220}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})",
        3.5,
    ),
    Rule(
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
    Rule(
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
    Rule(
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
    Rule(
        "mailchimp-key",
        (b"-us",),
        rb"[a-f0-9]{32}-us\d{1,2}" + END,
        3.0,
        before=b"0123456789abcdef",
        reach=32,
    ),
    token("facebook-token", "eaa", rb"EAA[MC][A-Za-z0-9]{100,400}", 3.5),
    Rule(
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
    Rule(
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
    Rule(
        "freemius-key",
        (b"secret_key",),
        rb"(?i:secret_key)[\"']\s{0,5}=>\s{0,5}[\"'](sk_[^\s\"']{29})[\"']",
        3.0,
        everywhere=True,
    ),
    token("beamer-token", "b_", rb"b_[A-Za-z0-9=_-]{44}(?![\w=-])", 3.8),
    token("coinbase-key", "organizations/", rb"organizations/" + UUID + rb"/apiKeys/" + UUID),
)
