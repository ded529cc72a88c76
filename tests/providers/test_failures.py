import json
from base64 import b64encode

import pytest
from msgspec.structs import replace

from rows import every_row
from ybs.commands.advice import told
from ybs.core.errors import AuthError, ContextTooLong, ModelError, ProviderDown, RateLimited
from ybs.frontends.terminal.words import fold
from ybs.providers.http import failures
from ybs.providers.http.failures import (
    BadRequest,
    NotServed,
    Site,
    Unavailable,
    clean,
    retry_after_seconds,
)

KEY = "sk-" + "c3" * 16
SITE = Site(
    provider="openai",
    endpoint="https://user:pw@api.example.com/v1",
    host="api.example.com",
    model="gpt-x",
    key_variable="OPENAI_API_KEY",
)
SECRET = "sk-" + "a1" * 16


def of(status: int, body: object = b"", headers: dict | None = None) -> ModelError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return failures.of_status(SITE, status, headers or {}, data, secret=SECRET)


def in_frame(frame: dict) -> ModelError | None:
    return failures.of_frame(SITE, frame, secret=SECRET)


def assert_fit_to_show(error: ModelError) -> None:
    text = str(error)
    assert text.count("\n") <= 1
    assert SECRET not in text
    assert "pw" not in text
    assert all(character.isprintable() for line in text.split("\n") for character in line)


@every_row("status", [400, 401, 402, 403, 404, 408, 413, 429, 500, 503, 301, 418])
@every_row(
    "body",
    [
        b"",
        b"\x1b[31mred\x07\r\n" * 100,
        b"\xff\xfe",
        b"<html><body>" + b"x" * 5000,
        f"wrong key {SECRET}".encode(),
        {"error": {"message": f"wrong key {SECRET}\x1b]0;x\x07\u202e"}},
        {"error": "text"},
        [{"error": {"message": "in a list", "code": 400}}],
        {"message": "flat", "type": "x"},
        {"detail": [{"msg": "x"}]},
        [],
        7,
    ],
)
def test_every_failure_is_fit_to_show(status: int, body: object):
    assert_fit_to_show(of(status, body))


def test_a_refused_key_says_which_variable_to_set():
    for status in (401, 403):
        error = of(status, {"error": {"message": "Incorrect API key provided"}})
        assert type(error) is AuthError
        assert "openai at api.example.com refused the key" in str(error)
        assert "OPENAI_API_KEY" in told(error)
    assert "api_key_env" in told(
        failures.of_status(Site(provider="p", endpoint="http://h", host="h"), 401, {}, b"")
    )


def test_a_wrong_key_is_told_as_one_and_a_firewalls_page_is_not():
    google = [
        {"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}
    ]
    for body in (google, {"code": "x", "error": "Incorrect API key provided: xa***9"}):
        assert isinstance(of(400, body), AuthError)
    assert isinstance(of(400, {"error": "unknown field api_key"}), BadRequest)
    page = of(403, b"<html><head><title>Attention Required! | Cloudflare</title></head></html>")
    assert not isinstance(page, AuthError)
    assert "Cloudflare" in str(page)


def test_an_unknown_model_is_named_with_its_place():
    error = of(404, {"error": {"message": "The model `gpt-x` does not exist"}})
    assert type(error) is NotServed
    assert "'gpt-x'" in str(error)
    assert told(error).endswith("path of its address: /v1")
    site = Site(
        provider="ollama",
        endpoint="http://h",
        host="h",
        model="q",
        model_advice="fetch it with `ollama pull {model}`",
    )
    assert "`ollama pull q`" in told(
        failures.of_status(site, 404, {}, b'{"error":"model not found"}')
    )


@every_row(
    ("status", "body"),
    [
        (
            400,
            {
                "error": {
                    "code": "context_length_exceeded",
                    "message": "maximum context length is 8192 tokens",
                }
            },
        ),
        (
            400,
            {
                "error": {
                    "code": 400,
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": 20030,
                    "n_ctx": 16384,
                }
            },
        ),
        (
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "prompt is too long: 210000 tokens > 200000 maximum",
                },
            },
        ),
        (
            413,
            {
                "type": "error",
                "error": {
                    "type": "request_too_large",
                    "message": "Request exceeds the maximum size",
                },
            },
        ),
        (400, {"error": "prompt too long; exceeded max context length by 5 tokens"}),
        (
            400,
            {
                "error": {
                    "message": "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."
                }
            },
        ),
        (
            400,
            {
                "object": "error",
                "message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
            },
        ),
        (400, {"error": {"message": "Please reduce the length of the messages or completion."}}),
        # Anthropic, text-generation-inference, Z.ai, Alibaba, Moonshot
        (
            400,
            {"error": {"message": "input length and `max_tokens` exceed context limit: 9 + 8 > 7"}},
        ),
        (422, {"error": "`inputs` must have less than 4095 tokens. Given: 5000"}),
        (
            422,
            {"error": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs`"},
        ),
        (400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}),
        (400, {"error": {"message": "Range of input length should be [1, 129024]"}}),
        (400, {"error": {"message": "Your request exceeded model token limit: 8192"}}),
        (500, {"error": "the request exceeds the available context size"}),
        (413, b""),
    ],
)
def test_a_request_that_does_not_fit_is_recognised(status: int, body: object):
    error = of(status, body)
    assert type(error) is ContextTooLong
    assert "/clear" in told(error)


def test_slowing_down_is_asked_for_with_its_time():
    error = of(429, {"error": {"message": "Rate limit reached"}}, {"retry-after": "20"})
    assert isinstance(error, RateLimited)
    assert error.retry_after_seconds == 20
    assert "in 20 s" in told(error)
    later = of(429, b"", {"retry-after": "9000"})
    assert "in 2.5 h" in told(later)
    assert "in 10 min" in told(of(429, b"", {"retry-after": "600"}))


@every_row(
    ("status", "body"),
    [
        (
            429,
            {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}},
        ),
        (402, {"error": {"message": "Insufficient Balance"}}),
        (400, {"error": {"message": "Your credit balance is too low to access the API"}}),
    ],
)
def test_an_empty_account_is_no_passing_trouble(status: int, body: object):
    error = of(status, body)
    assert type(error) is NotServed
    assert not error.temporary
    assert "no credit left" in str(error)


@every_row("status", [400, 500])
def test_a_strict_template_teaches_and_does_not_pass(status: int):
    """llama.cpp answers 500. After a compaction the person's words stand behind the summary."""
    said = "Conversation roles must alternate user/assistant/user/assistant/..."
    error = of(status, {"error": {"code": status, "message": said}})
    assert isinstance(error, BadRequest)
    assert error.said == said


@every_row("status", [408, 409, 425, 500, 502, 503, 504, 529])
def test_troubles_that_pass(status: int):
    error = of(status, b"", {"retry-after": "3"})
    assert isinstance(error, Unavailable)
    assert error.temporary
    assert error.retry_after_seconds == 3
    assert not error.is_loading


def test_a_server_that_loads_its_model_is_told_apart():
    error = of(
        503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
    )
    assert isinstance(error, Unavailable)
    assert error.is_loading


def test_a_redirect_names_the_other_address():
    error = of(301, b"", {"location": "https://elsewhere.example/v1"})
    assert "https://elsewhere.example/v1" in str(error)
    assert "another address" in str(of(301))


def test_a_bad_request_keeps_what_the_server_said():
    error = of(400, {"error": {"message": "Streaming is not supported"}})
    assert isinstance(error, BadRequest)
    assert error.said == "Streaming is not supported"


@every_row(
    ("frame", "kind"),
    [
        ({"error": {"message": "boom", "type": "server_error"}}, Unavailable),
        ({"error": {"message": "slow", "code": 429}}, RateLimited),
        ({"error": "something broke"}, ProviderDown),
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            Unavailable,
        ),
        ({"type": "error", "error": {"type": "authentication_error", "message": "x"}}, AuthError),
        ({"error": {"message": "context_length_exceeded"}}, ContextTooLong),
        ({"error": {"message": "prompt is too long", "type": "invalid"}}, ContextTooLong),
        ({"object": "error", "message": "no", "code": 400}, BadRequest),
        ({"error": {"metadata": {"x": 1}, "code": 502, "message": "gone"}}, Unavailable),
    ],
)
def test_errors_inside_a_stream(frame: dict, kind: type):
    error = in_frame(frame)
    assert type(error) is kind
    assert_fit_to_show(error)


@every_row("frame", [{}, {"error": None}, {"error": ""}, {"choices": []}, {"type": "ping"}])
def test_frames_without_an_error(frame: dict):
    assert in_frame(frame) is None


def test_nobody_there():
    error = failures.unreachable(
        Site(
            provider="ollama",
            endpoint="http://h:1",
            host="h:1",
            start_advice="start it with `ollama serve`",
        ),
        "connection refused",
    )
    assert told(error) == (
        "ollama at h:1 does not answer (connection refused).\n"
        "Start it with `ollama serve`, or choose another provider: /provider"
    )
    assert "Check the network and the address, or " in told(failures.unreachable(SITE, "x"))
    unnamed = replace(SITE, host="127.0.0.1:8080", is_unnamed=True)
    assert told(failures.unreachable(unnamed, "connection refused")) == (
        "127.0.0.1:8080 does not answer (connection refused).\n"
        "Start the server, or check its address, or choose another provider: /provider"
    )


def test_the_usual_failures_take_two_lines_of_80_columns_and_name_the_place_once():
    site = replace(SITE, start_advice="start it with `ollama serve`", model="qwen3:14b")
    short = {"error": {"message": "the script is over"}}
    errors = [
        *(of(status, body) for status in (401, 500, 503) for body in (short, b"")),
        of(404),
        of(429),
        *(failures.unreachable(each, "connection refused") for each in (SITE, site)),
        failures.stalled(SITE, 120, has_begun=False),
        failures.broke_off(SITE, "the connection was reset"),
        failures.senseless(SITE, b"<html>"),
    ]
    wrong = [told(error) for error in errors if len(fold(told(error), 77)) != 2]
    wrong += [told(error) for error in errors if told(error).count("api.example.com") > 1]
    assert wrong == []


@every_row("status", [400, 401, 402, 403, 404, 413, 429, 500, 503])
def test_what_a_server_says_is_kept_whole(status: int):
    said = "The server says much more about this than fits on a screen. " * 40 + "The end"
    assert said in str(of(status, {"error": {"message": said}}))
    assert said in str(of(status, said.encode()))
    frame = in_frame({"error": {"message": said, "code": status}})
    assert said in str(frame)


def test_what_stands_beside_the_words_of_an_error_is_kept():
    """OpenRouter has what the provider behind it said in `metadata`, llama.cpp the sizes, Anthropic the request's id."""
    behind = {"raw": '{"detail": "temperature must be 1"}', "provider_name": "Far"}
    error = of(400, {"error": {"message": "Provider returned error", "metadata": behind}})
    assert "Provider returned error" in str(error)
    assert "temperature must be 1" in str(error)
    assert "16384" in str(of(400, {"error": {"message": "too long", "n_ctx": 16384}}))
    refused = of(529, {"type": "error", "error": {"message": "busy"}, "request_id": "req_1"})
    assert str(refused) == f"{SITE.name} (request req_1) cannot answer now (529): busy"
    assert str(of(400, {"error": {"message": "plain", "param": None}})).endswith(": plain")
    page = of(502, b"<html><head><title>502 Bad Gateway</title></head>")
    assert str(page).endswith(': a web page "502 Bad Gateway"')


def test_what_a_refusal_teaches_is_read_from_its_beginning():
    """Further down a server may quote the request, in which every word can stand."""
    error = of(400, {"error": {"message": "x" * 400 + "temperature", "input": "tools"}})
    assert isinstance(error, BadRequest)
    assert error.said == "x" * 300


def test_a_bad_certificate_will_not_pass():
    assert not failures.unreachable(SITE, "TLS failed: x").temporary
    assert failures.unreachable(SITE, "connection refused").temporary


def test_silence_is_told_before_and_within_an_answer():
    assert "did not answer: nothing arrived for 600 s" in str(
        failures.stalled(SITE, 600, has_begun=False)
    )
    assert "stopped in the middle of its answer" in str(failures.stalled(SITE, 1.5, has_begun=True))


def test_a_web_page_will_not_pass_and_half_a_frame_may():
    page = failures.senseless(SITE, b"\n<!DOCTYPE html><html>")
    assert not page.temporary
    assert "a web page" in str(page)
    half = failures.senseless(SITE, b'{"choices": [{"del')
    assert half.temporary
    assert "not complete JSON" in str(half)
    assert "nothing" in str(failures.senseless(SITE, b""))


def test_an_answer_that_broke_off():
    assert (
        told(failures.broke_off(SITE))
        == "openai at api.example.com: the answer broke off.\nTry again with /retry"
    )
    assert "(the connection was reset)" in str(failures.broke_off(SITE, "the connection was reset"))


def test_words_of_a_server_are_cleaned():
    assert clean(f"a\x1b[31m\x00b\n\tc {SECRET} \u202e", SECRET) == "a [31m b c ****"


@every_row(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0),
    ],
)
def test_retry_after(headers: dict, seconds: float | None):
    assert retry_after_seconds(headers, now=60) == seconds


@every_row(
    ("header", "found"),
    [
        ({"x-request-id": "req_1"}, "req_1"),
        ({"request-id": "req_2", "cf-ray": "8a-FRA"}, "req_2"),
        ({"x-goog-request-id": "g\x1b[31m"}, "g [31m"),
        ({"cf-ray": "8a-FRA"}, "8a-FRA"),
        ({"x-request-id": "k" * 500}, "k" * 120),
        ({"x-request-id": f"id-{KEY}"}, "id-****"),
    ],
)
def test_the_id_of_a_request_is_named_before_what_may_be_cut(header: dict[str, str], found: str):
    body = b'{"error":{"message":"no"}}'
    for status in (400, 401, 404, 429, 500):
        error = failures.of_status(SITE, status, header, body, secret=KEY)
        assert f"{SITE.name} (request {found})" in str(error)
    assert "(request" not in str(failures.of_status(SITE, 400, {}, body))


@pytest.mark.parametrize("status", [302, 400, 401, 500])
def test_what_goes_with_each_call_stands_in_no_message(status: int):
    """A server repeats what it was sent: the login of the address, its query, a header of the settings."""
    password, code, team = ("pass" + "word-of-mine", "code" + "-of-mine", "team" + "-of-mine")
    endpoint = f"http://me:{password}@127.0.0.1:8000/v1"
    query = f"api-version=2024-02-01&code={code}"
    own = {"x-team": f"Token {team}", "x-short": "ybs"}
    host = "127.0.0.1:8000"
    site = Site(provider="mine", endpoint=endpoint, host=host, query=query, headers=own)
    secret = failures.secrets_of(site, KEY)
    login = b64encode(f"me:{password}".encode()).decode()
    said = f"Basic {login} ?{query} {code} Token {team} {team} {password} {KEY} ybs 2024-02-01"
    headers = {"location": f"http://me:{password}@other/?{query}"}
    error = failures.of_status(site, status, headers, said.encode(), secret=secret)
    text = f"{error} {error.server_words}"
    assert not [each for each in (login, password, code, team, KEY) if each in text]
    if status == 400:
        assert "ybs 2024-02-01" in text
