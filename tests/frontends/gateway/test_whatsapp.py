"""The channel WhatsApp, beyond the suite of all channels: its webhook, its buttons and lists, and the window of 24 hours."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from channel_contract import Taken, running
from whatsapp_platform import NUMBER, TOKEN, VERIFY, WhatsAppPlatform, signed
from ybs.frontends.gateway.channel import (
    BadSettingsError,
    Button,
    Channel,
    ChannelError,
    ChatGoneError,
    ChatPlace,
    MaybeSentError,
    Outgoing,
    OutgoingFile,
    RefusedError,
    WaitError,
)
from ybs.frontends.gateway.whatsapp import make_channel

pytestmark = pytest.mark.integration
HOME = ChatPlace("whatsapp", NUMBER, "private", WhatsAppPlatform.home)
HELLO = Outgoing(text="hello", plain="hello")


@asynccontextmanager
async def talking() -> AsyncGenerator[tuple[WhatsAppPlatform, Channel, Taken]]:
    platform, taken = WhatsAppPlatform(), Taken()
    await platform.start()
    channel = make_channel("whatsapp", platform.settings())
    try:
        async with running(channel, taken):
            yield platform, channel, taken
    finally:
        await platform.stop()


def buttons(*labels: str) -> tuple[tuple[Button], ...]:
    return tuple((Button(label, f"token-{n}"),) for n, label in enumerate(labels))


# The webhook


async def test_the_challenge_is_answered_to_who_knows_the_word_alone():
    async with talking() as (platform, _, _), httpx2.AsyncClient() as client:
        query = {"hub.mode": "subscribe", "hub.verify_token": VERIFY, "hub.challenge": "<b>1158"}
        answer = await client.get(platform.webhook, params=query)
        assert (answer.status_code, answer.text) == (200, "<b>1158")
        assert answer.headers["content-type"].startswith("text/plain")
        for wrong in ("", VERIFY[:-1], f"{VERIFY}\u00e9"):
            query["hub.verify_token"] = wrong
            answer = await client.get(platform.webhook, params=query)
            assert (answer.status_code, answer.text) == (403, "")


async def test_a_body_counts_with_the_signature_of_its_bytes_alone():
    async with talking() as (platform, _, taken), httpx2.AsyncClient() as client:

        async def posted(data: bytes, **headers: str) -> int:
            shown = {key.replace("_", "-"): value for key, value in headers.items()}
            return (await client.post(platform.webhook, content=data, headers=shown)).status_code

        body = {"object": "whatsapp_business_account", "entry": []}
        good = signed(body)
        signature = good["headers"]["X-Hub-Signature-256"]
        assert await posted(good["data"]) == 403
        assert await posted(good["data"], X_Hub_Signature_256=signature[:-1]) == 403
        assert await posted(good["data"] + b" ", X_Hub_Signature_256=signature) == 403
        other = signed(body, "6" * 32)["headers"]["X-Hub-Signature-256"]
        assert await posted(good["data"], X_Hub_Signature_256=other) == 403
        unsigned = {"X_Telegram_Bot_Api_Secret_Token": platform.settings()["app_secret"]}
        assert await posted(good["data"], **unsigned) == 403
        assert await posted(good["data"], X_Hub_Signature_256=signature) == 200
        assert await posted(b"x" * 3_000_000, X_Hub_Signature_256=signature) == 413
        for junk in ([], {"entry": 5}, {"entry": [{"changes": [{"value": None}]}]}):
            wrong = signed(junk)  # type: ignore[arg-type]
            assert await posted(wrong["data"], **wrong["headers"]) in (200, 400)
        assert not taken.events


async def test_messages_come_in_their_order_again_until_they_are_kept():
    async with talking() as (platform, _, taken):
        taken.fails = 2
        for text in ("one", "two", "three"):
            await platform.say(text)
        await platform.until(lambda: not platform.unread)
        assert [each.text for each in taken.events] == ["one", "two", "three"]
        assert platform.statuses == [503, 503, 200, 200, 200]


async def test_what_is_told_of_other_numbers_and_of_statuses_is_left_alone():
    async with talking() as (platform, _, taken):
        message = {"from": "1", "id": "w", "timestamp": "1", "type": "text", "text": {"body": "x"}}
        platform.tell({"messages": [message]}, number="999")
        platform.tell({"messages": [message | {"group_id": "g"}]})
        platform.tell({"messages": [message | {"type": "reaction", "reaction": {"emoji": "x"}}]})
        platform.tell({"messages": [{"type": "text"}, {"id": "odd"}]})
        platform.tell({"statuses": [{"id": "w", "status": "delivered", "recipient_id": "1"}]})
        await platform.say("last")
        await platform.until(lambda: not platform.unread)
        assert [each.text for each in taken.events] == ["last"]
        assert set(platform.statuses) == {200}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"type": "audio", "audio": {"id": "1", "voice": True}}, "a voice message"),
        ({"type": "sticker", "sticker": {"id": "1"}}, "a sticker"),
        ({"type": "location", "location": {"latitude": 1}}, "a location"),
        ({"type": "unsupported", "errors": [{"code": 131051}]}, "a message of a kind"),
    ],
)
async def test_what_cannot_be_read_is_named(fields: dict[str, Any], named: str):
    async with talking() as (platform, _, taken):
        platform.message(fields)
        await platform.until(lambda: taken.events)
        assert taken.events[0].unsupported.startswith(named)
        assert not taken.events[0].files


async def test_forwarded_words_pictures_and_persons_without_a_number_are_read():
    async with talking() as (platform, channel, taken):
        await platform.say("/mode auto", context={"forwarded": True})
        platform.message({"type": "image", "image": {"id": "7", "mime_type": "image/jpeg"}})
        hidden = {"from_user_id": "DE.77", "id": "w", "timestamp": "5", "type": "text"}
        contact = {"user_id": "DE.77", "profile": {"name": "Eve\ud800"}}
        platform.tell({"contacts": [contact], "messages": [hidden | {"text": {"body": "hi"}}]})
        await platform.until(lambda: len(taken.events) == 3)
        assert taken.events[0].text == "(forwarded)\n/mode auto"
        (file,) = taken.events[1].files
        assert (file.ref, file.name, file.media_type) == ("7", "image.jpg", "image/jpeg")
        assert (taken.events[2].person, taken.events[2].name) == ("DE.77", "Eve\ufffd")
        await channel.send(taken.events[2].place, HELLO)
        assert platform.sent[-1].chat == "DE.77"


# Sending


async def test_few_short_choices_are_buttons_and_others_a_list():
    async with talking() as (platform, channel, _):
        shown = [
            buttons("Yes", "No", "Always"),
            buttons("Yes", "Yes"),
            buttons("Yes", "No", "Yes, with the network this once"),
            buttons(*(f"choice {n}" for n in range(12))),
        ]
        for each in shown:
            await channel.send(HOME, Outgoing(text="?", plain="?", buttons=each))
        await channel.send(HOME, Outgoing(text="?" * 2000, plain="?", buttons=shown[0]))
        labels = [[label for label, _ in each.buttons] for each in platform.sent]
        assert labels[0] == ["Yes", "No", "Always"]
        assert labels[1] == ["Yes", "Yes"]
        assert labels[2][2] == "Yes, with the network t\u2026"
        assert len(labels[3]) == 10
        assert labels[4] == labels[0]
        assert platform.sent[3].buttons[9] == ("choice 9", "token-9")


async def test_files_are_texts_where_they_are_readable():
    async with talking() as (platform, channel, _):
        for name, data in (("a.py", b"x = 1"), ("b.zip", b"PK\xff"), ("c.pdf", b"%PDF\xff")):
            file = OutgoingFile(name=name, data=data)
            await channel.send(HOME, Outgoing(text="see", plain="see", file=file))
        kinds = [each[1] for each in platform.media]
        assert kinds == ["text/plain", "application/zip", "application/pdf"]


async def test_typing_is_shown_for_the_last_message_once_in_a_while():
    async with talking() as (platform, channel, taken):
        await channel.show_typing(HOME)
        assert platform.typing == []
        for number in range(2):
            await platform.say("hi")
            await platform.until(lambda n=number: len(taken.events) > n and not platform.unread)
            await channel.show_typing(HOME)
            await channel.show_typing(HOME)
        assert platform.typing == [each.message for each in taken.events]
        await channel.send(HOME, HELLO)
        await channel.show_typing(HOME)
        assert len(platform.typing) == 3


async def test_the_window_of_a_day_is_said_in_words():
    async with talking() as (platform, channel, taken):
        platform.fault("late")
        with pytest.raises(ChatGoneError, match="24 hours"):
            await channel.send(HOME, HELLO)
        await channel.send(HOME, HELLO)
        platform.too_late(platform.sent[0])
        for _ in range(2):
            await platform.say("hi")
        await platform.until(lambda: len(taken.events) == 2 and not platform.unread)
        assert [each.text for each in platform.sent].count("hello") == 1
        assert "did not reach you" in platform.sent[1].text
        assert len(platform.sent) == 2


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        ({"code": 190, "message": "expired"}, 401, BadSettingsError),
        ({"code": 100, "error_subcode": 33, "message": "no such object"}, 400, BadSettingsError),
        ({"code": 130429, "message": "rate"}, 400, WaitError),
        ({"code": 131030, "message": "not in allowed list"}, 400, ChatGoneError),
        ({"code": 131000, "message": "something went wrong"}, 500, MaybeSentError),
        ({"code": 131009, "message": "value"}, 400, RefusedError),
        ("text", 502, MaybeSentError),
        (None, 429, WaitError),
    ],
)
async def test_each_refusal_is_an_error_of_its_kind_without_the_token(
    error: Any, status: int, kind: type[ChannelError]
):
    async with talking() as (platform, channel, _):
        platform.answers.append((status, error))
        with pytest.raises(kind) as raised:
            await channel.send(HOME, HELLO)
        assert TOKEN not in str(raised.value)
        assert raised.value.__cause__ is None


async def test_an_answer_that_does_not_come_in_time_may_have_been_sent():
    async with talking() as (platform, channel, _):
        channel._client.timeout = 0.2  # type: ignore[attr-defined]
        platform.fault("hang")
        with pytest.raises(MaybeSentError, match="in time"):
            await channel.send(HOME, HELLO)


async def test_a_port_that_is_taken_is_a_wrong_setting():
    async with talking() as (platform, _, _):
        second = make_channel("whatsapp", platform.settings())
        with pytest.raises(BadSettingsError, match="webhook_listen"):
            await asyncio.wait_for(second.run(Taken(), lambda: None), 5)
        await second.close()


@pytest.mark.parametrize("missing", ["token", "phone_number_id", "app_secret", "verify_token"])
def test_each_missing_setting_is_named(missing: str):
    section = WhatsAppPlatform.__new__(WhatsAppPlatform)
    section.listen, section.url = "127.0.0.1:1", "http://127.0.0.1:1"
    entry = section.settings()
    del entry[missing]
    with pytest.raises(BadSettingsError, match=f"no {missing};"):
        make_channel("whatsapp", entry)
