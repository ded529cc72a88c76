"""Secret patterns as data: for each kind the literals that it begins with, a bounded pattern and a check.

A pattern is matched where a literal stands and nowhere else, so a text without the literals costs next to nothing.
Formats are those that the issuers publish; where one says only "opaque", lengths seen in public tokens stand.
Literals are lower case and matched in any case; patterns mind the case.
"""

from collections.abc import Iterator
from functools import cache
from typing import Literal, TypeAlias

from msgspec import Struct

#: The sensitivity from which on a rule holds.
Level: TypeAlias = Literal["low", "normal", "high"]
#: How a value is looked at beyond its pattern, see `checks`.
Check: TypeAlias = Literal["", "sure", "random", "login", "basic", "assigned", "key", "key-end"]


class SecretRule(Struct, frozen=True):
    """One kind of secret.

    `anchors` are lower-case literals. `pattern` is matched at the anchor, or before it by as many bytes of the
    set `before` as stand there (`reach` at most). The secret is the last group, or the whole match where there is none.
    `entropy` is the least, in bits for each character. `near` must stand within `NEAR` bytes before (lower case), or within `around` bytes on either side.
    `then` must stand within `NEAR` bytes behind it: a quick look before the pattern, which may have to be compiled.
    `least` is how many bytes from the anchor on have no space among them: a quick look before the pattern.
    `everywhere`: the anchor is looked for in all of a text. The others are found only in a word, or up to 64 bytes
    before one, of ten or more letters, digits, `_` and `-`, which are not only lower-case letters.
    """

    kind: str
    anchors: tuple[bytes, ...]
    pattern: bytes
    entropy: float = 0.0
    check: Check = ""
    before: bytes = b""
    reach: int = 0
    near: bytes = b""
    around: int = 0
    then: bytes = b""
    level: Level = "low"
    least: int = 0
    everywhere: bool = False


#: No token is shorter, in bytes.
_LEAST = 12
#: How far before an anchor `near` is looked for, and behind it `then`, in bytes. No pattern that has one reaches further.
NEAR = 600
#: What escapes of JSON and C end with that are one sign, as `\n`.
ESCAPES = b"nrtfbav01234567"
#: Not within a word; such an escape before it is not part of a word, nor are signs of Markdown (`__TOKEN__`).
EDGE = (
    rb"(?:(?<![0-9A-Za-z_-])|(?<=\\["
    + ESCAPES
    + rb"])|(?<=(?<![0-9A-Za-z_-])[_-])|(?<=(?<![0-9A-Za-z_-])[_-]{2}))"
)
#: Not going on.
END = rb"(?![_-]{0,2}[0-9A-Za-z])"
UUID = rb"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
ALNUM = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


#: The kind of private keys, which the person is told of.
PRIVATE_KEY = "private-key"
#: What stands in every frame of a key in a text, as `-----BEGIN RSA PRIVATE KEY-----` and `---- BEGIN SSH2 PUBLIC KEY ----`.
FRAME_SIGNS = (b"-BEGIN ", b"- BEGIN ", b"-BEGIN+", b"-END ", b"- END ", b"-END+")


def key_frame(word: bytes) -> bytes:
    """Return the pattern of a line that begins or ends a private key: its words do not say that it is something public."""
    said = rb"(?:[ +\w./]|-(?!---)){0,60}?"
    public = rb"PUBLIC|CERT|REQUEST|SIGNATURE|SIGNED|MESSAGE|PARAMETERS|CRL|PKCS|CMS|FILE|RESPONSE"
    is_private = rb"(?:(?=" + said + rb"PRIVATE)|(?!" + said + rb"(?:" + public + rb")))"
    return rb"-----?(?i:[ +]?" + word + rb"[ +]" + is_private + said + rb")-----?"


#: Words of secrecy in the names of what values are given to.
WORDS = rb"token|secret|passw(?:or)?d|passphrase|api[_-]?key|credentials?|creds|key|auth(?:orization)?|pwd|pass|p(?:w|sk)(?![\w.-])|identified by|(?<=_)pat(?![A-Za-z])"

#: Tokens that stand by themselves, a row for each kind: its name, its anchors, its pattern, and the entropy where that is not 3.
_TOKENS = r"""
    # clouds
    aws-access-key           akia,asia,abia,acca,a3t     (?:A3T[A-Z0-9]|A[KSB]IA|ACCA)[A-Z2-7]{16}{END}
    aws-bedrock-key          absk                        ABSK[A-Za-z0-9+/]{109,269}={0,2}
    google-api-key           aiza                        AIza[\w-]{35}  3.5
    google-oauth-secret      gocspx-                     GOCSPX-[\w-]{28}
    google-oauth-token       ya29.                       ya29\.[\w-]{20,1024}
    alibaba-access-key       ltai                        LTAI[A-Za-z0-9]{20}{END}
    digitalocean-token       doo_v1_,dop_v1_,dor_v1_     do[opr]_v1_[a-f0-9]{64}
    cloudflare-origin-key    v1.0-                       v1\.0-[a-f0-9]{24}-[a-f0-9]{146}
    heroku-key               hrku-                       HRKU-(?:[\w-]{60}|{UUID})
    scalingo-token           tk-us-                      tk-us-[\w-]{48}
    flyio-token              fo1_,fm1a_,fm1r_,fm2_       (?:fo1_[\w-]{43}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,4000}={0,3})
    yandex-key               aqvn,ajep                   (?:AQVN|ajep)[\w-]{35,38}{END}  3.5
    yandex-token             t1.                         t1\.[\w-]{5,300}={0,2}\.[\w-]{86}={0,2}
    oracle-api-key           ocid1.credential            ocid1\.credential\.[\w.-]{20,200}
    databricks-token         dapi                        dapi[a-f0-9]{32}(?:-\d)?{END}
    planetscale-token        pscale_                     pscale_(?:tkn|oauth|pw)_[\w=.-]{31,63}[\w=-]
    supabase-key             sbp_,sb_secret_             (?:sbp_[a-f0-9]{40}|sb_secret_[\w-]{20,60})
    clickhouse-key           4b1d                        4b1d[A-Za-z0-9]{38}{END}  3.5
    doppler-token            dp.pt.,dp.st.,dp.ct.,dp.sa. dp\.(?:pt|st|ct|sa)\.(?:[\w-]{1,40}\.)?[A-Za-z0-9]{40,44}
    pulumi-token             pul-                        pul-[a-f0-9]{40}{END}
    prefect-token            pnu_                        pnu_[A-Za-z0-9]{36}
    vault-token              hvs.,hvb.,hvr.              hv[sbr]\.[\w-]{24,300}  3.5
    dynatrace-token          dt0c01.                     dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}
    openshift-token          sha256~                     sha256~[\w-]{43}{END}  3.5
    harness-key              pat.,sat.                   [ps]at\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}
    defined-networking-token dnkey-                      dnkey-[\w=-]{26}-[\w=-]{52}
    tailscale-key            tskey-                      tskey-(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{6,30}-[A-Za-z0-9]{20,60}
    # code and its packages
    gitlab-token             gr1348941                   GR1348941[\w-]{20,60}
    bitbucket-token          atbb                        ATBB[A-Za-z0-9]{28,60}{END}  3.5
    atlassian-token          atatt3                      ATATT3[\w=-]{100,300}
    npm-token                npm_                        npm_[A-Za-z0-9]{36}{END}
    pypi-token               pypi-ageichlwas5vcmc,pypi-agendgvzdc5wexbplm9yzw pypi-AgE[\w-]{50,1000}
    rubygems-token           rubygems_                   rubygems_[a-f0-9]{48}
    clojars-token            clojars_                    (?i:CLOJARS_)[A-Za-z0-9]{60}
    crates-token             cio                         cio[A-Za-z0-9]{32}{END}  3.8
    nuget-key                oy2                         oy2[a-z0-9]{43}{END}  3.5
    docker-token             dckr_pat_,dckr_oat_         dckr_[po]at_[\w-]{27,60}
    artifactory-key          akcp                        AKCp[A-Za-z0-9]{69,73}{END}  4.0
    artifactory-token        cmvmd                       cmVmd[A-Za-z0-9]{59}{END}  4.0
    sonar-token              squ_,sqp_,sqa_              sq[upa]_[\w=-]{40}{END}
    sourcegraph-token        sgp_                        sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}
    postman-key              pmak-                       PMAK-[a-fA-F0-9]{24}-[a-fA-F0-9]{34}
    readme-key               rdme_                       rdme_[a-z0-9]{70}
    launchdarkly-key         api-,sdk-                   (?:api|sdk)-{UUID}{END}
    octopus-key              api-                        API-[A-Z0-9]{26}{END}
    snyk-token               snyk_                       snyk_(?:uat|sat)\.[a-z0-9]{8}\.[\w-]{20,300}
    infracost-key            ico-                        ico-[A-Za-z0-9]{32}{END}
    buildkite-token          bkua_,bkaj_                 bk(?:ua|aj)_[a-z0-9]{40}
    circleci-token           ccipat_,ccipra_             CCIP(?:AT|RA)_[A-Za-z0-9]{20,24}_[a-f0-9]{40}
    linear-key               lin_api_,lin_oauth_         lin_(?:api|oauth)_[A-Za-z0-9]{40,64}
    notion-token             ntn_,secret_                (?:ntn_\d{11}[A-Za-z0-9]{35}|secret_[A-Za-z0-9]{43}){END}  3.5
    figma-token              figd_,figo_                 fig[do]_[\w-]{40}
    asana-token              0/,1/,2/                    (?<![/\w])[012]/\d{10,20}(?:/\d{10,20})?:[a-f0-9]{32}{END}
    typeform-token           tfp_                        tfp_[\w.=-]{59}
    contentful-token         cfpat-                      CFPAT-[\w-]{43}
    frameio-token            fio-u-                      fio-u-[\w=-]{64}
    duffel-token             duffel_                     duffel_(?:test|live)_[\w=-]{43}
    # models
    anthropic-key            sk-ant-                     sk-ant-[a-z0-9]{3,12}-[\w-]{80,120}
    openai-key               sk-                         sk-(?:(?:proj|svcacct|admin|None)-[\w-]{40,220}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})  3.5
    huggingface-token        hf_                         hf_[A-Za-z]{34}{END}  3.5
    huggingface-token        hf_                         hf_[A-Za-z0-9]{34,40}{END}  3.5
    huggingface-token        api_org_                    api_org_[A-Za-z]{34}{END}  3.5
    perplexity-key           pplx-                       pplx-[A-Za-z0-9]{40,64}
    groq-key                 gsk_                        gsk_[A-Za-z0-9]{52}{END}
    xai-key                  xai-                        xai-[A-Za-z0-9]{70,90}
    replicate-token          r8_                         r8_[A-Za-z0-9]{37}{END}
    together-key             tgp_v1_                     tgp_v1_[\w-]{40,80}
    langsmith-key            lsv2_                       lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}
    fireworks-key            fw_                         fw_[A-Za-z0-9]{22,24}{END}  3.5
    pinecone-key             pcsk_                       pcsk_[A-Za-z0-9_]{50,80}
    # people, mail and the web
    slack-token              xapp-                       (?i:xapp)-\d-[A-Za-z0-9]{6,20}-\d{6,20}-[A-Za-z0-9]{16,80}
    slack-token              xoxe.xox                    (?i:xoxe\.xox[bp])-\d-[A-Za-z0-9]{160,170}
    matrix-token             syt_                        syt_[\w+/=-]{1,200}_[A-Za-z]{20}_[0-9A-Za-z]{6}{END}
    matrix-token             mat_,mar_                   ma[tr]_[A-Za-z0-9]{30,40}_[A-Za-z0-9]{6}{END}
    twilio-key               sk                          SK[0-9a-fA-F]{32}{END}
    sendgrid-key             sg.                         SG\.[\w=.-]{59,71}[\w=-]
    sendinblue-key           xkeysib-                    xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}
    mailgun-key              key-,pubkey-                (?:pub)?key-[a-f0-9]{32}{END}
    facebook-token           eaa                         EAA[A-Z][A-Za-z0-9]{90,400}  3.5
    instagram-token          igqv                        IGQV[\w-]{100,400}
    dropbox-token            sl.                         sl\.(?:u\.)?[\w=-]{130,1400}
    hubspot-token            pat-na,pat-eu               pat-(?:na|eu)\d-{UUID}
    zoho-token               1000.                       1000\.[a-f0-9]{32}\.[a-f0-9]{32}
    adobe-secret             p8e-                        p8e-[A-Za-z0-9]{32}{END}
    grafana-token            glc_,glsa_                  (?:glc_[A-Za-z0-9+/]{32,400}={0,3}|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8})
    grafana-key              eyjrijoi                    eyJrIjoi[A-Za-z0-9]{70,400}={0,3}
    sentry-token             sntrys_,sntryu_             (?:sntryu_[a-f0-9]{64}|sntrys_eyJ[A-Za-z0-9+/=]{60,600}_[A-Za-z0-9+/]{43})
    newrelic-key             nrak-,nrjs-,nrii-           NR(?:AK-[A-Za-z0-9]{27}|JS-[a-f0-9]{19}|II-[A-Za-z0-9-]{32}){END}
    mapbox-token             sk.eyj,pk.eyj               [sp]k\.eyJ[\w-]{40,120}\.[\w-]{22}
    mapbox-token             pk.                         pk\.[A-Za-z0-9]{60}\.[A-Za-z0-9]{22}{END}
    settlemint-token         sm_aat_,sm_pat_,sm_sat_     sm_[aps]at_[A-Za-z0-9]{16}
    intra42-secret           s-s4t2ud-,s-s4t2af-         s-s4t2(?:ud|af)-[a-f0-9]{64}
    # money
    stripe-key               sk_live_,sk_test_,sk_prod_,rk_live_,rk_test_,rk_prod_ [sr]k_(?:test|live|prod)_[A-Za-z0-9]{10,247}
    stripe-webhook-secret    whsec_                      whsec_[A-Za-z0-9+/]{24,64}={0,2}
    square-token             eaaa,sq0atp-,sq0csp-        (?:EAAA|sq0atp-|sq0csp-)[\w-]{22,60}{END}  3.5
    shopify-token            shpat_,shpca_,shppa_,shpss_ shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}
    shippo-token             shippo_                     shippo_(?:live|test)_[a-fA-F0-9]{40}
    easypost-token           ezak,eztk                   EZ[AT]K[A-Za-z0-9]{54}{END}
    flutterwave-key          flwseck_test-,flwpubk_test-,flwseck- FLW(?:SECK|PUBK)(?:_TEST)?-(?:[a-h0-9]{32}-X|[a-h0-9]{12})
    braintree-token          access_token$               access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}
    plaid-token              access-sandbox-,access-development-,access-production- access-(?:sandbox|development|production)-{UUID}
    gocardless-token         live_                       live_[\w=-]{40}{END}  3.5
    lob-key                  live_,test_                 (?:live|test)_(?:pub_[a-f0-9]{31}|[a-f0-9]{35}){END}
    beamer-token             b_                          b_[A-Za-z0-9=_-]{44}(?![\w=-])  3.8
    coinbase-key             organizations/              organizations/{UUID}/apiKeys/{UUID}
    # vaults
    onepassword-key          a3-                         A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}{END}  3.3
"""
#: Those whose prefix is so odd that it may stand within a word.
_LOOSE = r"""
    aws-bedrock-key          bedrock-api-key-            bedrock-api-key-[A-Za-z0-9+/=]{32,4000}
    github-token             ghp_,gho_,ghu_,ghs_,ghr_    gh[pousr]_[0-9A-Za-z]{36,255}
    github-token             github_pat_                 github_pat_\w{82,255}
    gitlab-token             glpat-,gldt-,glft-,glffct-,glsoat-,glrt-,gloas-,glimt-,glagent-,glptt-,glcbt- gl(?:pat|dt|ft|ffct|soat|rt|oas|imt|agent|ptt|cbt)-[\w-]{20,300}(?:\.[\w.]{7,60})?
    slack-token              xoxb-,xoxp-,xoxe-,xoxa-,xoxr-,xoxo-,xoxs- xox(?:b-\d{8,14}-[A-Za-z0-9-]{18,60}|[pe](?:-\d{9,13}){3}-[a-zA-Z0-9]{28,34}|e-\d-[A-Za-z0-9]{140,160}|[ar]-(?:\d-)?[0-9A-Za-z-]{8,80}|[os](?:-\d{6,14}){3}-[a-fA-F\d]{8,40})  2.5
    slack-webhook            hooks.slack.com/            hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{40,80})
    discord-webhook          /api/webhooks/              /api/webhooks/(\d{17,20}/[\w-]{60,80})
    teams-webhook            .webhook.office.com/        \.webhook\.office\.com/(webhookb2/[\w@-]{73,80}/IncomingWebhook/\w{32}/[\w-]{36})
    onepassword-token        ops_eyj                     ops_eyJ[A-Za-z0-9+/]{200,2000}={0,3}
"""


def _rules_in(table: str, before: bytes = b"") -> Iterator[SecretRule]:
    """Yield the rules of a table. In its patterns `{END}` and `{UUID}` stand for the expressions of these names."""
    rows = (row.split() for row in table.splitlines() if row.strip() and "#" not in row[:6])
    for kind, anchors, pattern, *entropy in rows:
        found = pattern.encode().replace(b"{END}", END).replace(b"{UUID}", UUID)
        names = tuple(anchors.encode().split(b","))
        bits = float(entropy[0]) if entropy else 3.0
        yield SecretRule(kind, names, before + found, bits, least=_LEAST)


#: An element of a key in XML, and such a key with private ones among them; the last one may be cut off.
_MEMBER = rb"<\w{1,9}>[\w+/=\s\\]{0,1400}"
_MEMBERS = rb"(?:" + _MEMBER + rb"</\w{1,9}>[\w\s\\]{0,40}){0,8}"
_XML_KEY = (
    rb"<RSAKeyValue>[\w\s\\]{0,40}(?="
    + _MEMBERS
    + rb"<[DPQ]>)("
    + _MEMBERS
    + rb"(?:"
    + _MEMBER
    + rb")?)"
)
#: Tokens that are known by more than a prefix, and private keys.
_MORE = (
    SecretRule("azure-client-secret", (b"q~",), rb"[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![_-]{0,2}[0-9A-Za-z~])", 3.0, before=ALNUM + b"_~.-", reach=4, everywhere=True),
    SecretRule("azure-storage-key", (b"accountkey=",), rb"(?i:AccountKey)=([A-Za-z0-9+/]{86}==)", 3.5),
    SecretRule("azure-signature", (b"sig=",), rb"sig=([A-Za-z0-9%+/]{43,90}(?:=|%3[dD]))", 3.5),
    SecretRule("yandex-access-key", (b"yc",), EDGE + rb"YC[\w-]{38}" + END, 4.0, near=b"yandex"),
    SecretRule("terraform-token", (b".atlasv1.",), rb"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}", 3.5, before=ALNUM, reach=14),
    SecretRule("vault-token", (b"s.",), EDGE + rb"s\.[A-Za-z0-9]{24}(?![\w.-])", 3.6, "random", least=26),
    SecretRule("gitlab-session", (b"_gitlab_session=",), rb"_gitlab_session=([0-9a-z]{32})", 3.0),
    SecretRule("sourcegraph-token", (b"sourcegraph",), rb"(?i:sourcegraph)[\w .-]{0,30}[\"'\s:=>(,]{1,8}([a-fA-F0-9]{40})" + END, 3.0, everywhere=True),
    SecretRule("sidekiq-key", (b"contribsys",),
         rb"(?i:contribsys)[\w.-]{0,20}(?:[ \t][a-z]{2,10})?[\"'`\s:=>?,.]{1,10}([a-f0-9]{8}:[a-f0-9]{8})" + END, everywhere=True),
    SecretRule("nuget-password", (b'password" value=',),
         rb"(?i:password\" value=)[\"']([^\"'\s]{8,200})[\"']", 0.0, "login", level="normal", everywhere=True),
    SecretRule("airtable-token", (b"pat",), EDGE + rb"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}" + END, 3.0, least=82),
    SecretRule("api-key", (b"sk-",), EDGE + rb"sk-(?:or-v1-|lf-|live-|test-)?[A-Za-z0-9]{32,128}" + END, 3.0, "random"),
    SecretRule("discord-token", (b".g", b".x", b".y"),
         rb"[MNO][\w-]{23,25}\.[GXY][\w-]{5}\.[\w-]{27,40}" + END, 4.0, before=ALNUM + b"_-", reach=28, least=34),
    SecretRule("telegram-token", (b":a",), rb"\d{5,16}:A[\w-]{34}" + END, 3.5, before=b"0123456789", reach=16, least=36),
    SecretRule("mailchimp-key", (b"-us",), rb"[a-f0-9]{32}-us\d{1,2}" + END, 3.0, before=b"0123456789abcdef", reach=32),
    SecretRule("facebook-token", (b"|", b"%7c"), rb"\d{15,16}(?:\||%7[cC])[\w-]{27,40}" + END, 3.0, before=b"0123456789", reach=16, near=b"facebook"),
    SecretRule("authress-key", (b"sc_", b"ext_", b"scauth_", b"authress_"),
         EDGE + rb"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[\w+/=-]{30,120}", 3.0, least=55),
    SecretRule("maxmind-key", (b"_mmk",), rb"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk" + END, 3.5, before=ALNUM + b"_", reach=36),
    SecretRule(PRIVATE_KEY, (b"----begin", b"---- begin"), key_frame(b"BEGIN"), 0.0, "key", before=b"-", reach=1, everywhere=True),
    SecretRule(PRIVATE_KEY, (b"----end", b"---- end"), key_frame(b"END"), 0.0, "key-end", before=b"-", reach=1, everywhere=True),
    SecretRule(PRIVATE_KEY, (b"<rsakeyvalue>",), _XML_KEY, 0.0, "sure", everywhere=True),
    SecretRule(PRIVATE_KEY, (b"private-lines",), rb"Private-Lines: \d{1,3}\s{1,2}((?:(?:\d{1,6}[\t:])?[A-Za-z0-9+/=]{10,64}\s{1,2}){1,80})"),
    SecretRule(PRIVATE_KEY, (b'"d"', b'"p"', b'"q"', b'"dp"', b'"dq"', b'"qi"', b'"k"'),
         rb'"(?:d[pq]?|p|qi?|k)"\s{0,4}:\s{0,4}"([\w-]{22,1400})"', 3.5, near=b'"kty"', around=4_000, everywhere=True),
    SecretRule("age-key", (b"age-secret-key-1",), rb"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}", 0.0, "sure"),
    SecretRule("jwt", (b"ey",), EDGE + rb"ey[A-Za-z0-9_-]{12,4096}\.ey[\w/\\-]{8,8192}\.(?:[\w/\\-]{10,2048}={0,2})?", 3.0, least=24),
    SecretRule("jwt", (b"zxlk",), EDGE + rb"ZXlK[A-Za-z0-9+/_-]{60,8192}={0,2}", 3.0),
)  # fmt: skip

#: What the words around it say to be a secret.
_SPOKEN = (
    SecretRule("url-password", (b"://",),
         rb"://[^\s:/\"'`<>\[\]]{0,300}:([^\s/\"'`<>\[\]]{3,200})@(?=[\w\[$%/{#(\"'*:\x80-\xff-])", 0.0, "login", then=b"@", level="normal", everywhere=True),
    SecretRule("url-token", (b"://",), rb"://([\w.~+-]{16,400})@(?=[\w\[])", 0.0, "random", then=b"@", level="normal", everywhere=True),
    SecretRule("basic-auth", (b"basic ",),
         EDGE + rb"(?i:basic) {1,3}([A-Za-z0-9+/]{8,400}={0,2})(?![\w+/=-])", 0.0, "basic", level="normal", everywhere=True),
    SecretRule("bearer-token", (b"bearer ",),
         EDGE + rb"(?i:bearer) {1,3}([\w.~+/=-]{12,2000})(?![\w.~+/=%(\[{$-])", 2.8, "random", level="normal", everywhere=True),
    SecretRule("auth-header", (b"authorization:",),
         rb"(?i:authorization:) {0,4}(?:(?i:api-?|)(?i:token|key) )?([\w=~@.+/-]{8,400})(?=[\"'\s\\]|$)", 2.8, "random", level="normal", everywhere=True),
    SecretRule("curl-login", (b" -u", b"--user"),
         rb" ?--?u(?:ser)?(?:=|\s{0,5})(\"[^\"\s]{0,100}:[^\"\s]{0,100}\"|'[^'\s]{0,100}:[^'\s]{0,100}'|[^\s:\"']{1,100}:(?:\"[^\"\s]{3,100}\"|'[^'\s]{3,100}'|[^\s\"']{3,100})|\"[^\"\s]{3,100}\":\"[^\"\s]{3,100}\")(?=\s|$)", 0.0, "login", near=b"curl", level="normal", everywhere=True),
    SecretRule("netrc-password", (b"machine ",),
         rb"machine {1,4}[\w.-]{1,100}\s{1,4}login\s{1,4}\S{1,100}\s{1,4}password\s{1,4}(\S{4,200})", 0.0, "login", level="normal", everywhere=True),
)  # fmt: skip

_CHARS = rb"[\w.~+/=!@#$%^&*?-]"
#: What follows the backslash of an escape: a sign, or how a number begins. Letters of white space end a value.
_ESCAPED = rb"(?:[!-/:-@\[-`{-~xU01]|u(?:\{\w{1,6}\})?)"
#: The escapes that do not end a value: within quotes, a quote too, and without a backslash one of another kind or one
#: that is doubled; within the quotes of a text that is in quotes itself, each with a backslash more for each of theirs;
#: without quotes, signs that a shell would read.
_WITHIN = (
    (rb"(?<=[^\\][\"'`])", rb"(?:\\" + _ESCAPED + rb"|(?<=\w)[\"'`]{1,2}(?=\w))"),
    (rb"(?<=[^\\]\\[\"'`])", rb"\\\\(?:\\" + _ESCAPED + rb"|[/xu01])"),
    (rb"(?<![\"'`\\])", rb"\\[!#$%&(*+),:;=?@^~-]"),
)
_ESCAPING = b"".join(
    opening + _CHARS + rb"{0,200}+(?>(?:" + escape + _CHARS + rb"{0,200}+){1,20})|"
    for opening, escape in _WITHIN
)
#: What quotes hold with signs in it that end a value elsewhere: no run of letters is as long as a word.
_QUOTED = (
    rb"(?<=[\"'])(?=(?:[^\s\"'(),:;<>\[\]{|}\\]{0,40}[ (),:;<>\[\]{|}]){3})"
    rb"(?>(?:[a-z]{1,7}(?![a-z])|[A-Z]{1,7}(?![A-Z])|[0-9]{1,7}|[ !#-&(-/:-@\[\]-`{-~]{1,7}){8,99})(?=[\"'])|"
)
#: The signs of which Django draws a key, two of which end a value elsewhere.
_LOWER = (
    rb"(?<=[\"'\s=:])(?=[0-9a-z!#-&*+=@^_-]{0,80}+[()])[0-9a-z!#-&*+=@^_()-]{40,80}(?=[\"'\s]|$)|"
)
_VALUE = rb"(" + _LOWER + _QUOTED + _ESCAPING + _CHARS + rb"{8,400}(?<!\.))"
#: What stands between a name and its value where no one sign says so; a line end only behind a sign.
_LINES = rb"(?:\s|\\[nrt]|(?<=[\n ])[0-9]{1,7}[\t:]){0,40}"  # with numbers, as tools show them
_TIE = (
    rb"(?>(?:[ \t]{1,8}|(?:[\"'`)\]}:=>|,*?-]|[(\[{](?=[\s\"'`])){1,4}"
    + _LINES
    + rb"|</[\w:.-]{1,40}>"
    + _LINES
    + rb"<[\w:.-]{1,40}>|(?i:value|content|default|is|by|with|str|string)(?=\W)"
    rb"|[&!]{1,2}\w{1,20} |type {0,8}= {0,8}\w{1,12}" + _LINES + rb"){1,8})"
)
_ASSIGN = (
    rb"[\w-]{0,30}+(?:\.[\w-]{1,30}+){0,3}(?:"  # the rest of the name
    # a type, and a sign that gives it a value; `name: DB_PASSWORD` and below it `value: ...`, too
    rb"(?:\\{0,3}[\"'`\])]{1,3}|[ \t](?:[A-Za-z]{2,10})?)?[ \t]{0,8}[\"']?"
    rb"(?:\|\||=>|[:?.]{0,3}={1,2}|[:>]|,?\s{0,40}[\"']?(?i:[\w:]{0,20}value)[\"']?[ \t]?[:=]|(?<=[\"'`]),(?:\s{0,40}default[ \t]?=)?)[\s=]{0,20}|"
    # or what says less: signs, blanks, elements, a few words
    rb"(" + _TIE + rb")"
    rb")[\"'`\\]{0,4}(?:base64:)?"
)
ASSIGNED = SecretRule(
    "assigned-secret",
    (b"token", b"secret", b"api_key", b"api-key", b"apikey", b"credential", b"creds", b"key", b"auth", b"pw", b"psk", b"pass", b"identified by", b"_pat"),
    rb"_?((?i:" + WORDS + rb"))" + _ASSIGN + _VALUE,
    0.0, "assigned", level="normal", everywhere=True,
)  # fmt: skip

#: The kind of the person's own secrets, which are known by value.
OWN = "own-secret"
RULES: tuple[SecretRule, ...] = (
    *_rules_in(_TOKENS, EDGE),
    *_rules_in(_LOOSE),
    *_MORE,
    *_SPOKEN,
    ASSIGNED,
)
KINDS: frozenset[str] = frozenset(rule.kind for rule in RULES) | {OWN}


@cache
def guessed_kinds() -> frozenset[str]:
    """Return the kinds of what only the words around it say to be a secret: it is a group of the pattern, or something has to stand near."""
    groups = (rule.pattern.replace(b"(?", b"").replace(b"\\(", b"") for rule in RULES)
    rows = zip(RULES, groups, strict=True)
    return frozenset(rule.kind for rule, rest in rows if rule.near or b"(" in rest)
