"""Map a provider's failures (statuses, error bodies, broken answers) to the errors of `core.errors`.

Pure functions. Every message says what happened and where, in a line, and its remedies what to do. What a server
wrote stands in it whole, for whoever draws it to cut, but without control characters, and never with the key in it.
"""

from collections.abc import Mapping, Sequence
from re import IGNORECASE, search
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.config.addresses import login_of
from ybs.core.errors import AuthError, ContextTooLong, ModelError, ProviderDown, RateLimited
from ybs.core.remedies import Remedy
from ybs.providers.wire.loose_json import as_list, as_object, as_text
from ybs.providers.wire.quirks import refuses_tools

#: So much of a refusal is looked at for what it teaches about the server: further down it may quote the request.
_TELLING_CHARACTERS: Final = 300
#: What an error body has for its words and its kind.
_KNOWN_KEYS: Final = frozenset({"error", "message", "detail", "object", "type", "code", "status"})
#: Statuses that may pass by themselves.
_PASSING: Final = frozenset({408, 409, 425, 500, 502, 503, 504, 520, 522, 524, 529})
_CANNOT_BE_LENGTH: Final = frozenset({401, 403, 404, 429})

#: How servers say that a request does not fit the window.
_TOO_LONG: Final = (
    r"context.?length|context.?window|context.?size|context limit|maximum context|max(imum)?.{0,12}prompt.?length"
    r"|(prompt|input|request|conversation) (is |are |was )?too (long|large)"
    r"|(input|prompt) token(s| count).{0,60}exceed|exceeds? the (maximum )?(number of|limit of).{0,20}tokens"
    r"|reduce the length|too many (input |prompt )?tokens|too large for model"
    r"|inputs` (tokens .{0,40}must be <=|must have less than)|prompt exceeds max|range of input length"
    r"|exceeded model token limit"
)
_NO_CREDIT: Final = r"insufficient.?(quota|balance|credit|funds)|exceeded your current quota|billing|credit balance|payment required"
#: How servers say under 400 that the key is wrong: Google, xAI.
_WRONG_KEY: Final = r"(incorrect|invalid|expired) api.?key|api.?key (not valid|expired|is invalid|is not valid)|api_key_invalid"
_CHANGE_PROVIDER: Final = Remedy("change_provider")
_SET_ENDPOINT: Final = Remedy("set_endpoint")
_TRY_AGAIN: Final = Remedy("try_again")
_CHECK: Final = "check the network and the address"
#: Where the server's certificate is not accepted.
_TRUST: Final = "check the address, or set network.ca_file to a file with the certificate to trust"
#: Where servers put the id by which their makers find a request: OpenAI and most others, Anthropic, Google, Azure, AWS,
#: Mistral, DeepSeek, OpenRouter, and last of all Cloudflare, which stands before many of them.
_ID_HEADERS: Final = (
    *("x-request-id", "request-id", "x-goog-request-id", "apim-request-id", "x-ms-request-id"),
    *("x-amzn-requestid", "mistral-correlation-id", "x-ds-trace-id", "x-generation-id", "cf-ray"),
)
_LONGEST_ID: Final = 120
#: What stands in no message: one text, or several, the longest first.
Secret: TypeAlias = str | Sequence[str] | None
#: Words of headers and addresses with fewer characters stand in messages by chance.
_LEAST_SECRET: Final = 6
#: Words of servers about pictures.
_PICTURE: Final = r"image|picture|photo|vision|multi.?modal|media|mime|mmproj|png|jpe?g"
_PAGE: Final = "a web page"
_HTML: Final = rb"\s*<(!doctype|html|head|body|\?xml)"


class Site(Struct, frozen=True, kw_only=True):
    """Who was asked, for messages. `host` has the port; `*_advice` is half a sentence for the person.

    `is_unnamed` where only the address is known: the server speaks as OpenAI does, and is not OpenAI's. `request_id` is
    the server's id of the request that the message is about. `query` and `headers` (those of the settings)
    go with each call, and may be secret.
    """

    provider: str
    endpoint: str
    host: str
    query: str = ""
    headers: Mapping[str, str] = {}
    model: str = ""
    key_variable: str = ""
    start_advice: str = ""
    model_advice: str = ""
    is_unnamed: bool = False
    request_id: str = ""

    @property
    def name(self) -> str:
        """Return its name in messages."""
        name = self.host if self.is_unnamed else f"{self.provider} at {self.host}"
        return f"{name} (request {self.request_id})" if self.request_id else name

    @property
    def path(self) -> str:
        """Return the path of the endpoint; its host stands in the name already."""
        return "/" + self.endpoint.partition("://")[2].partition("/")[2]


class Unavailable(ProviderDown):
    """The server is there but cannot answer now; it may say when to ask again."""

    def __init__(
        self,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        is_loading: bool = False,
        remedies: Sequence[Remedy] = (),
    ) -> None:
        super().__init__(message, remedies=remedies)
        self.retry_after_seconds = retry_after_seconds
        #: True while a local server reads its model from disk: that takes longer than other troubles.
        self.is_loading = is_loading


class BadRequest(ModelError):
    """The server refuses the request as it stands. `said` is the beginning of what it says, cleaned."""

    def __init__(self, message: str, *, said: str, remedies: Sequence[Remedy] = ()) -> None:
        super().__init__(message, remedies=remedies)
        self.said = said


class NotServed(ModelError):
    """The account or the model is not served there, and will not be soon; another provider may serve it."""


def secrets_of(site: Site, key: str | None) -> tuple[str, ...]:
    """Return what stands in no message: the key, the login and the query of the address, and what the person's own headers say."""
    login = urlsplit(site.endpoint).netloc.rpartition("@")[0]
    sent = [login_of(site.endpoint).rpartition(" ")[2], unquote(login.partition(":")[2])]
    query = [value for what, value in parse_qsl(site.query) if not what.endswith("version")]
    words = [part for value in site.headers.values() for part in (value, value.rpartition(" ")[2])]
    found = [e for e in (site.query, *query, *words, login, *sent) if len(e) >= _LEAST_SECRET]
    return tuple(sorted({*found, *filter(None, [key])}, key=len, reverse=True))


def clean(text: str, secret: Secret = None) -> str:
    """Make a server's words fit to show: one line, no control characters, without the key and the like."""
    for each in (secret,) if isinstance(secret, str) else secret or ():
        text = text.replace(each, "****")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def answered(site: Site, headers: Mapping[str, str], secret: Secret = None) -> Site:
    """Return the site with the id that the server gave a request, from the headers of its answer."""
    found = next((value for name in _ID_HEADERS if (value := headers.get(name))), "")
    return replace(site, request_id=clean(found, secret)[:_LONGEST_ID]) if found else site


def of_status(
    site: Site, status: int, headers: Mapping[str, str], body: bytes, *, secret: Secret = None
) -> ModelError:
    """Say what an answer with an error status means."""
    error, said = _of_status(site, status, headers, body, secret)
    return error.said_by_server(status, said)


def _of_status(
    site: Site, status: int, headers: Mapping[str, str], body: bytes, secret: Secret
) -> tuple[ModelError, str]:
    kind, text, rest, request_id = _read_body(body)
    site = replace(answered(site, headers, secret), **_id(request_id, secret))
    said = clean(f"{text} {rest}", secret)
    words = f"{kind} {text}"
    if (error := _of_words(site, status, words, said)) is not None:
        return error, said
    is_wrong_key = status == 400 and search(_WRONG_KEY, said, IGNORECASE)
    if status in {401, 403} or is_wrong_key:
        is_blocked = status == 403 and text == _PAGE  # by what has not looked at the key
        refused = _blocked(site, said) if is_blocked else _refused_key(site, status, said)
        return refused, said
    if status == 404:
        return _not_found(site, said), said
    is_of_template = "roles must alternate" in said  # of llama.cpp, as a 500; it would never pass
    if status == 429 or (status in _PASSING and not is_of_template):
        return _busy(site, status, said, retry_after_seconds(headers)), said
    if 300 <= status < 400:
        to = clean(headers.get("location", ""), secret) or "another address"
        return ModelError(f"{site.name} redirects to {to}.", remedies=(_SET_ENDPOINT,)), said
    return _bad_request(site, status, said), said


def of_frame(site: Site, frame: Mapping[str, Any], *, secret: Secret = None) -> ModelError | None:
    """Return the error that a frame of a stream reports, or None."""
    type_ = frame.get("type")
    if type_ == "response.failed":
        frame = as_object(frame.get("response"))
    if not (frame.get("error") or type_ == "error" or frame.get("object") == "error"):
        return None
    kind, text, rest, request_id = _read_object(frame)
    site = replace(site, **_id(request_id, secret))
    said = clean(f"{text} {rest}", secret)
    code = as_object(frame.get("error")).get("code") or frame.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else _status_of(kind)
    if status:
        return of_status(site, status, {}, msgspec.json.encode(frame), secret=secret)
    words = f"{kind} {text}"
    if (error := _of_words(site, 400, words, said)) is not None:
        return error
    return ProviderDown(f"{site.name} broke off its answer{_colon(said)}", remedies=(_TRY_AGAIN,))


def unreachable(site: Site, reason: str) -> ProviderDown:
    """Say that no connection came about."""
    where = "start the server, or check its address" if site.is_unnamed else _CHECK
    first = Remedy("do", site.start_advice or where)
    is_unsafe = reason.startswith("TLS")
    if is_unsafe:
        first = Remedy("do", _TRUST)
    what = "cannot be reached safely" if is_unsafe else "does not answer"
    error = ProviderDown(
        f"{site.name} {what} ({clean(reason)}).", remedies=(first, _CHANGE_PROVIDER)
    )
    return error.known(temporary=not is_unsafe)  # retrying does not help with a bad certificate


def stalled(site: Site, seconds: float, *, has_begun: bool) -> ProviderDown:
    """Say that the server fell silent."""
    what = "stopped in the middle of its answer" if has_begun else "did not answer"
    more = Remedy("do", "allow more time with llm.timeout_seconds")
    return ProviderDown(
        f"{site.name} {what}: nothing arrived for {seconds:g} s.", remedies=(_TRY_AGAIN, more)
    )


def broke_off(site: Site, reason: str = "") -> ProviderDown:
    """Say that the answer ended before its end."""
    why = f" ({clean(reason)})" if reason else ""
    return ProviderDown(f"{site.name}: the answer broke off{why}.", remedies=(_TRY_AGAIN,))


def senseless(site: Site, sample: bytes, *, secret: Secret = None) -> ModelError:
    """Say that the answer is not what the wire format asks for. A web page will not pass; half a frame may."""
    if search(_HTML, sample[:200], IGNORECASE):
        check = f"check the path of its address ({site.path}), and that no login page is in between"
        return ModelError(
            f"{site.name} sent a web page instead of an answer.", remedies=(Remedy("do", check),)
        )
    said = clean(sample.decode("utf-8", "replace"), secret)
    return ProviderDown(
        f"{site.name} sent an answer that is not complete JSON: {said or 'nothing'}",
        remedies=(_TRY_AGAIN, Remedy("do", f"check the path of its address: {site.path}")),
    )


def retry_after_seconds(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Read `retry-after-ms` or `Retry-After` (seconds or an HTTP date), from lower-case headers.

    https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if search(r"^\d+(\.\d+)?$", value):
            return float(value) * unit
    if not (date := headers.get("retry-after", "")):
        return None
    from email.utils import parsedate_to_datetime  # slow to import
    from time import time

    try:
        then = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None
    return max(0.0, then - (time() if now is None else now))


def names_a_picture(error: ModelError) -> bool:
    """Return whether a server speaks of pictures where it fails."""
    return search(_PICTURE, error.server_words[:_TELLING_CHARACTERS], IGNORECASE) is not None


def may_be_a_picture(error: ModelError, *, is_repeated: bool) -> bool:
    """Return whether a server that fails so may refuse a picture, whatever it says; `is_repeated`: it failed before.

    Not where it is clearly about something else: the key, a quota, the length. What may pass by itself is tried once more
    first, unless the server speaks of pictures.
    """
    match error.status:
        case 400 | 415 | 422:
            return isinstance(error, BadRequest)
        case 404:
            return True
        case 413:
            return search("token|context|prompt", error.server_words, IGNORECASE) is None
        case 500:
            return is_repeated or names_a_picture(error)
        case _:
            return False


def asked_seconds(error: ModelError) -> float | None:
    """Return the pause that the server asks for, or None."""
    return error.retry_after_seconds if isinstance(error, RateLimited | Unavailable) else None


def _of_words(site: Site, status: int, words: str, said: str) -> ModelError | None:
    """Recognise what servers say under many statuses: no tools, no credit, and a request that is too long."""
    if refuses_tools(words):  # OpenRouter says it with a 404, llama.cpp with a 500
        return _bad_request(site, status, said)
    if status not in {401, 404} and search(_NO_CREDIT, words, IGNORECASE):
        return NotServed(
            f"{site.name}: the account has no credit left{_colon(said)}",
            remedies=(Remedy("do", "add credit there"), _CHANGE_PROVIDER),
        )
    is_too_long = status == 413 or (
        status not in _CANNOT_BE_LENGTH and search(_TOO_LONG, words, IGNORECASE)
    )
    if not is_too_long:
        return None
    return ContextTooLong(
        f"The conversation is too long for {site.model or 'the model'} ({site.name}){_colon(said)}",
        remedies=(Remedy("begin_anew"), Remedy("enlarge_window")),
    )


def _bad_request(site: Site, status: int, said: str) -> BadRequest:
    return BadRequest(
        f"{site.name} refused the request ({status}){_colon(said)}",
        said=said[:_TELLING_CHARACTERS],
        remedies=(Remedy("change_model"), Remedy("begin_anew")),
    )


def _busy(site: Site, status: int, said: str, after: float | None) -> ModelError:
    when = "in a while" if after is None else f"in {_duration(after)}"
    remedies = (Remedy("try_again", when), _CHANGE_PROVIDER)
    if status == 429:
        message = f"{site.name} has received too many requests (429){_colon(said)}"
        return RateLimited(message, retry_after_seconds=after, remedies=remedies)
    message = f"{site.name} cannot answer now ({status}){_colon(said)}"
    is_loading = status == 503 and "loading model" in said.lower()
    return Unavailable(message, retry_after_seconds=after, is_loading=is_loading, remedies=remedies)


def _blocked(site: Site, said: str) -> ModelError:
    check = "check the address, the proxy and the VPN: what is in between does not let ybs pass"
    return ModelError(
        f"{site.name} is not reached (403): {said}",
        remedies=(Remedy("do", check), _CHANGE_PROVIDER),
    )


def _refused_key(site: Site, status: int, said: str) -> AuthError:
    return AuthError(
        f"{site.name} refused the key ({status}){_colon(said)}",
        remedies=(Remedy("set_key", site.key_variable), _CHANGE_PROVIDER),
    )


def _not_found(site: Site, said: str) -> ModelError:
    how = site.model_advice.format(model=site.model)
    first = Remedy("do", how) if how else Remedy("change_model")
    check = Remedy("do", f"check the path of its address: {site.path}")
    return NotServed(
        f"{site.name} does not have the model {site.model!r} (404){_colon(said)}",
        remedies=(first, check),
    )


def _colon(said: str) -> str:
    return f": {said}" if said else ""


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _status_of(kind: str) -> int:
    """Return the status that the type of an error in a stream would have had."""
    known = {
        "overloaded": 529,
        "rate_limit": 429,
        "authentication": 401,
        "permission": 403,
        "not_found": 404,
        "unavailable": 503,
        "server_error": 500,
        "api_error": 500,
        "timeout": 504,
    }
    return next((status for word, status in known.items() if word in kind.lower()), 0)


def _id(request_id: str, secret: Secret) -> dict[str, str]:
    return {"request_id": clean(request_id, secret)[:_LONGEST_ID]} if request_id else {}


def _read_body(body: bytes) -> tuple[str, str, str, str]:
    """Return the kind, the words, the rest and the request id of an error body, in whichever shape it comes."""
    try:
        value = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        if search(_HTML, body[:200], IGNORECASE):
            title = search(rb"<title[^>]*>([^<]+)", body, IGNORECASE)
            return "", _PAGE, f'"{title[1].decode("utf-8", "replace")}"' if title else "", ""
        return "", body.decode("utf-8", "replace"), "", ""
    return _read_object(as_object((as_list(value) or [value])[0]))


def _read_object(value: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return the kind and the words of an error, in JSON what else stands in it, and the request id beside it.

    A provider that hands on what another one said puts that beside its own words: OpenRouter into `metadata.raw`.
    """
    error = value.get("error")
    inner = as_object(error) or value
    text = as_text(error) if isinstance(error, str) else ""
    text = text or as_text(inner.get("message")) or as_text(inner.get("detail"))
    kinds = (inner.get("type"), inner.get("code"), inner.get("status"))
    kind = " ".join(str(each) for each in kinds if isinstance(each, str | int))
    if not text:
        return kind, msgspec.json.encode(value).decode() if value else "", "", ""
    rest = {key: each for key, each in inner.items() if each and key not in _KNOWN_KEYS}
    request_id = as_text(value.get("request_id"))
    return kind, text, msgspec.json.encode(rest).decode() if rest else "", request_id
