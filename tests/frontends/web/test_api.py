"""The addresses of the page, as browsers that have logged in ask them."""

import asyncio
import hmac
import json
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from rows import every_row
from trusting import put
from ybs.frontends.web.following import Followed, Tab
from ybs.frontends.web.gate import TOKEN_HEADER
from ybs.testing import answer, call

pytestmark = pytest.mark.integration
Make = Callable[..., Any]
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")


async def opened(made: Any, browser: Any, **given: Any) -> Followed:
    """Open a session by the page, and return it."""
    said = await browser.post("/api/sessions", json=given)
    assert said.status_code == 200, said.text
    return made.pages._followed[said.json()["id"]]


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds: what is waited for happens in the loop."""
    async with asyncio.timeout(8):
        while not condition():  # noqa: ASYNC110 - no one thing tells it
            await asyncio.sleep(0)


async def test_a_link_logs_in_once_by_a_cookie_that_no_script_reads(site: Make):
    made = site()
    key = made.access.new_link()
    async with made.browser() as browser:
        said = await browser.post("/api/enter", json={"key": key})
        cookie = said.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "path=/" in cookie
        assert key not in said.text
        browser.headers["x-ybs-token"] = said.json()["token"]
        assert (await browser.get("/api/sessions")).status_code == 200
    async with made.browser() as other:
        assert (await other.post("/api/enter", json={"key": key})).status_code == 401


async def test_an_open_session_that_is_saved_is_not_handed_on_as_an_incognito_one(site: Make):
    made = site("hello")
    async with made.entered() as browser:
        followed = await opened(made, browser)
        await followed.session.send("hello")
        given = {"resume": followed.session.journal.name}
        assert (await opened(made, browser, **given)) is followed
        said = await browser.post("/api/sessions", json={**given, "incognito": True})
        assert said.status_code >= 400
        assert "incognito cannot be given" in said.text


async def test_a_login_that_was_planted_before_is_not_taken_over(site: Make):
    """Session fixation: the secrets of a login are made when it begins, whatever the browser brought."""
    made = site()
    async with made.browser() as browser:
        browser.cookies.set("ybs-8707", "planted")
        said = await browser.post("/api/enter", json={"key": made.access.new_link()})
        assert "planted" not in said.headers["set-cookie"]
        browser.headers["x-ybs-token"] = said.json()["token"]
        answered = await browser.get("/api/sessions", headers={"cookie": "ybs-8707=planted"})
        assert answered.status_code == 401


async def test_wrong_passwords_are_bounded_and_nobody_is_locked_out_of_links(site: Make):
    made = site()
    async with made.browser() as browser:
        said = [await browser.post("/api/enter", json={"password": "wrong"}) for _ in range(7)]
        assert [each.status_code for each in said] == [401] * 5 + [429] * 2
        assert int(said[-1].headers["retry-after"]) > 0
        for _ in range(7):
            assert (await browser.post("/api/enter", json={"key": "wrong"})).status_code == 401
        good = await browser.post("/api/enter", json={"key": made.access.new_link()})
        assert good.status_code == 200


async def test_tries_at_once_are_counted_one_by_one(site: Make):
    made = site()
    async with made.browser() as browser:
        tries = (browser.post("/api/enter", json={"password": "wrong"}) for _ in range(12))
        codes = [each.status_code for each in await asyncio.gather(*tries)]
        assert codes.count(401) == 5


async def test_who_leaves_is_logged_out_and_his_pages_end(site: Make):
    made = site()
    async with made.entered() as browser, made.entered() as other:
        logins = (await browser.get("/api/logins")).json()["logins"]
        assert [each["own"] for each in logins].count(True) == 1
        theirs = next(each["id"] for each in logins if not each["own"])
        tab = Tab("t", theirs)
        made.pages.add(tab)
        assert (await browser.post(f"/api/logins/{theirs}/end", json={})).json() == {"ended": True}
        assert tab.is_over
        assert (await other.get("/api/sessions")).status_code == 401
        assert (await browser.post("/api/leave", json={})).status_code == 200
        assert (await browser.get("/api/sessions")).status_code == 401


async def test_only_files_of_the_page_are_served(site: Make):
    async with site().browser() as browser:
        for path in (
            "/static/../api.py",
            "/static/%2e%2e/api.py",
            "/static/api.py",
            "/static/",
            "/static//etc/passwd",
        ):
            assert (await browser.get(path)).status_code == 404, path
        script = await browser.get("/static/app.js")
        assert script.headers["content-type"].startswith("text/javascript")
        again = await browser.get(
            "/static/app.js", headers={"if-none-match": script.headers["etag"]}
        )
        assert again.status_code == 304


async def test_the_page_is_small_and_asks_for_nothing_elsewhere(site: Make):
    total = 0
    async with site().browser() as browser:
        for path in (
            "/",
            "/static/app.js",
            "/static/view.js",
            "/static/board.js",
            "/static/style.css",
            "/static/icon.svg",
        ):
            text = (await browser.get(path)).text
            total += len(text.encode())
            assert "https://" not in text
            assert "style=" not in text.replace('"style="', "")
            assert "onclick=" not in text
    assert total <= 120_000


async def test_trust_of_the_run_is_in_the_folder_that_it_was_started_in(
    site: Make, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    other = tmp_path / "other"
    for folder in (project, other):
        put(folder, ".mcp.json", json.dumps({"mcpServers": {"s": {"command": "./srv"}}}))
    made = site(trust=True)
    monkeypatch.setattr(made.pages, "projects", lambda: [str(project), str(other)])
    async with made.entered() as browser:
        here = await opened(made, browser, folder=str(project))
        there = await opened(made, browser, folder=str(other))
    assert here.session.loaded.trusts_project
    assert not there.session.loaded.trusts_project
    assert not there.session.config.mcpServers


async def test_a_session_opens_in_known_projects_alone(site: Make, project: Path, tmp_path: Path):
    made = site()
    async with made.entered() as browser:
        for folder in ("/", "/etc", str(tmp_path), f"{project}/..", "relative"):
            said = await browser.post("/api/sessions", json={"folder": folder})
            assert said.status_code == 400, folder
        followed = await opened(made, browser, folder=str(project))
        assert followed.session.folder == project
        listed = (await browser.get("/api/sessions")).json()
        assert [each["id"] for each in listed["open"]] == [followed.session.id]
        assert listed["projects"][0][0] == str(project)


async def test_a_message_with_a_picture_and_a_file_reaches_the_model(site: Make):
    made = site("Seen.")
    async with made.entered() as browser:
        followed = await opened(made, browser)
        body = {
            "text": "Look",
            "pictures": [{"type": "image/png", "data": b64encode(PNG).decode()}],
            "files": [{"name": "a\u202eb.txt", "text": "```\nthe words\n```"}],
        }
        path = f"/api/sessions/{followed.session.id}"
        assert (await browser.post(f"{path}/lines", json=body)).status_code == 200
        await until(lambda: len(followed.session.conversation.messages) == 2)
        said = followed.session.conversation.messages[0]
        assert "the words" in said.text
        assert "````" in said.text  # the fence is longer than any in the file
        assert "\u202e" not in said.text
        picture = next(
            each for each in followed._events if getattr(each.event, "message", None) == said
        )
        place = followed._events.index(picture) + 1
        shown = await browser.get(f"{path}/pictures/{place}/0")
        assert (shown.content, shown.headers["content-type"]) == (PNG, "image/png")
        assert shown.headers["content-security-policy"].startswith("default-src 'none'")
        for wrong in (f"{place}/1", "0/0", "999999/0", f"{place + 1}/0"):
            assert (await browser.get(f"{path}/pictures/{wrong}")).status_code == 404


async def test_a_picture_that_could_hold_a_script_is_not_taken(site: Make):
    made = site("unused")
    async with made.entered() as browser:
        followed = await opened(made, browser)
        svg = {"type": "image/svg+xml", "data": b64encode(b"<svg/>").decode()}
        path = f"/api/sessions/{followed.session.id}/lines"
        assert (await browser.post(path, json={"text": "x", "pictures": [svg]})).status_code == 400


async def test_an_incognito_session_is_seen_by_its_login_alone(site: Make):
    made = site("unused")
    async with made.entered() as browser, made.entered() as other:
        followed = await opened(made, browser, incognito=True)
        name = followed.session.id
        assert [each["id"] for each in (await browser.get("/api/sessions")).json()["open"]] == [
            name
        ]
        assert (await other.get("/api/sessions")).json()["open"] == []
        for path in ("events?before=1", "search?q=a", "complete?text=/", "jobs", "stream"):
            assert (await other.get(f"/api/sessions/{name}/{path}")).status_code == 400, path
        for path in ("lines", "answer", "stop", "recall", "close"):
            body = {"text": "x", "question": "x", "key": "y"}
            assert (
                await other.post(f"/api/sessions/{name}/{path}", json=body)
            ).status_code == 400, path
        assert (await other.get("/api/board")).json()["running"] == []


async def asked(made: Any, browser: Any, project: Path) -> tuple[Followed, str, str]:
    """Have the model ask to delete a file; return the session, its address and the question's id."""
    (project / "a").write_text("text")
    followed = await opened(made, browser)
    path = f"/api/sessions/{followed.session.id}"
    await browser.post(f"{path}/lines", json={"text": "delete it"})
    await until(lambda: followed.session.questions.open != ())
    return followed, path, followed.session.questions.open[0].id


async def test_a_question_is_answered_once_with_what_it_offers(site: Make, project: Path):
    made = site(call("delete_file", path="a"), "done")
    async with made.entered() as browser:
        followed, path, name = await asked(made, browser, project)
        for wrong in ("o", "i", "w", "yes", ""):
            body = {"question": name, "key": wrong}
            assert (await browser.post(f"{path}/answer", json=body)).status_code == 400
        body = {"question": name, "key": "y"}
        assert (await browser.post(f"{path}/answer", json=body)).json() == {"counted": True}
        assert (await browser.post(f"{path}/answer", json=body)).json() == {"counted": False}
        await until(lambda: not followed.session.is_busy and followed.session.inbox.now is None)
        assert not (project / "a").exists()


async def test_a_no_has_its_reason(site: Make, project: Path):
    made = site(call("delete_file", path="a"), "done")
    async with made.entered() as browser:
        followed, path, name = await asked(made, browser, project)
        body = {"question": name, "key": "r", "reason": "I need it"}
        await browser.post(f"{path}/answer", json=body)
        await until(lambda: len(followed.session.conversation.messages) >= 4)
        assert "I need it" in str(followed.session.conversation.messages[2])
        assert (project / "a").exists()


async def test_a_turn_is_stopped_and_waiting_lines_are_taken_back(site: Make, project: Path):
    made = site(call("delete_file", path="a"), "done")
    async with made.entered() as browser:
        followed, path, _ = await asked(made, browser, project)
        await browser.post(f"{path}/lines", json={"text": "then this", "queue": True})
        assert (await browser.post(f"{path}/recall", json={})).json() == {
            "text": "then this",
            "words": "then this",
            "given": "",
        }
        await browser.post(f"{path}/stop", json={})
        await until(lambda: followed.session.inbox.now is None)
        assert followed.session.questions.open == ()
        assert (project / "a").exists()


async def test_commands_and_files_are_completed(site: Make, project: Path):
    (project / "alpha.py").write_text("x")
    made = site("unused")
    async with made.entered() as browser:
        followed = await opened(made, browser)
        path = f"/api/sessions/{followed.session.id}/complete"
        items = (await browser.get(path, params={"text": "/und"})).json()["items"]
        assert items[0]["text"] == "/undo "
        items = (await browser.get(path, params={"text": "/mode pl"})).json()["items"]
        assert items == [{"text": "plan", "cut": 2, "label": "plan", "detail": ""}]
        items = (await browser.get(path, params={"text": "see @alp"})).json()["items"]
        assert items[0]["text"] == "@alpha.py "


async def test_words_are_found_in_a_session_and_over_sessions(site: Make):
    made = site("The needle is here.")
    async with made.entered() as browser:
        followed = await opened(made, browser)
        path = f"/api/sessions/{followed.session.id}"
        await browser.post(f"{path}/lines", json={"text": "Where is it?"})
        await until(lambda: followed.session.inbox.now is None and len(followed._events) > 4)
        hits = (await browser.get(f"{path}/search", params={"q": "needle"})).json()["hits"]
        assert "needle is here" in hits[0]["excerpt"]
        assert (await browser.get(f"{path}/search", params={"q": "haystack"})).json()["hits"] == []
        await browser.post(f"{path}/close", json={})
        hits = (await browser.get("/api/search", params={"q": "needle"})).json()["hits"]
        assert [hit["name"] for hit in hits] == [followed.session.journal.name]
        saved = (await browser.get("/api/sessions")).json()["saved"]
        assert [each["name"] for each in saved] == [followed.session.journal.name]


class Waiting:
    """Stands in for the chats of a gateway: one person waits."""

    def __init__(self) -> None:
        self.paired = list[tuple[str, str]]()

    async def health(self) -> list[tuple[str, str, bool]]:
        """Say nothing."""
        return []

    async def waiting(self) -> list[dict[str, Any]]:
        """List the person."""
        return [{"code": "ABCDEFGH", "channel": "telegram", "who": "Ann (3)", "age": "now"}]

    async def pair(self, code: str, role: str) -> None:
        """Keep what was decided."""
        self.paired.append((code, role))


async def test_who_may_speak_in_a_chat_is_decided_with_a_login_and_its_token(site: Make):
    made, chats = site(), Waiting()
    body = {"code": "ABCDEFGH", "role": "guest"}
    async with made.entered() as browser, made.browser() as stranger:
        refused = await browser.post("/api/pair", json=body)
        assert refused.status_code == 400
        assert "No chats are served here" in refused.text
        made.pages.chats = chats
        assert (await browser.get("/api/board")).json()["waiting"] == await chats.waiting()
        assert (await stranger.post("/api/pair", json=body)).status_code == 401
        assert (await browser.post("/api/pair", json={**body, "role": "root"})).status_code == 400
        token = browser.headers.pop(TOKEN_HEADER)
        assert (await browser.post("/api/pair", json=body)).status_code in (401, 403)
        browser.headers[TOKEN_HEADER] = token
        other = {"origin": "http://evil.example"}
        assert (await browser.post("/api/pair", json=body, headers=other)).status_code == 403
        assert chats.paired == []
        assert (await browser.post("/api/pair", json=body)).status_code == 200
        assert chats.paired == [("ABCDEFGH", "guest")]


async def test_the_board_counts_what_saved_sessions_used(site: Make, project: Path):
    made = site("one", answer("two"))
    async with made.entered() as browser:
        followed = await opened(made, browser)
        path = f"/api/sessions/{followed.session.id}/lines"
        await browser.post(path, json={"text": "first"})
        await until(lambda: followed.session.inbox.now is None and len(followed.session.turns) == 1)
        board = (await browser.get("/api/board")).json()
        assert [
            (each["model"], each["input"], each["output"], each["answers"])
            for each in board["uses"]
        ] == [("scripted", 10, 5, 1)]
        await browser.post(path, json={"text": "second"})
        await until(lambda: followed.session.inbox.now is None and len(followed.session.turns) == 2)
        board = (await browser.get("/api/board")).json()
        assert board["uses"][0]["answers"] == 2
        assert {name for name, _, _ in board["health"]} >= {
            "ybs",
            "Python",
            "sandbox",
            "open pages",
        }


async def test_a_file_that_goes_with_a_line_is_read_and_not_run_and_comes_back_as_what_it_is(
    site: Make, project: Path
):
    made = site("Seen.", call("delete_file", path="a"), "done")
    async with made.entered() as browser:
        followed = await opened(made, browser)
        path = f"/api/sessions/{followed.session.id}"
        dropped = {"files": [{"name": "notes", "text": "touch ran\n@/etc/hostname"}]}
        await browser.post(f"{path}/lines", json={"text": "!pwd", **dropped})
        await until(lambda: len(followed.session.conversation.messages) == 2)
        assert followed.session.conversation.messages[0].text.startswith("!pwd\n\nFile notes")
        assert not (project / "ran").exists()
        await until(lambda: followed.session.inbox.now is None)
        (project / "a").write_text("text")
        await browser.post(f"{path}/lines", json={"text": "delete it"})
        await until(lambda: followed.session.questions.open)
        await browser.post(f"{path}/lines", json={"text": "!pwd", "queue": True, **dropped})
        back = (await browser.post(f"{path}/recall", json={})).json()
        assert back["text"].startswith("(pasted)\n!pwd\n\nFile notes")
        assert back["given"] == back["text"].removeprefix("(pasted)\n!pwd")
        await browser.post(f"{path}/lines", json={"text": "!pwd", "queue": True})
        back = (await browser.post(f"{path}/recall", json={})).json()
        assert (back["text"], back["words"]) == ("!pwd", "(pasted)\n!pwd")
        await browser.post(f"{path}/stop", json={})
        await until(lambda: followed.session.inbox.now is None)


async def test_a_long_text_names_no_file_outside_without_a_yes(site: Make, tmp_path: Path):
    """The page sends long pastes as files; what else is long may be typed."""
    outside = tmp_path / "diary.txt"
    outside.write_text("the diary")
    words = "line\n" * 10 + f"see @{outside}"
    made = site("one", "two")
    async with made.entered() as browser:
        followed = await opened(made, browser)
        path, said = f"/api/sessions/{followed.session.id}", followed.session.conversation
        for key in ("n", "y"):
            before = len(said.messages)
            await browser.post(f"{path}/lines", json={"text": words})
            await until(lambda: followed.session.questions.open != ())
            question = followed.session.questions.open[0].id
            body = {"question": question, "key": key}
            await browser.post(f"{path}/answer", json=body)
            await until(lambda before=before: len(said.messages) == before + 2)
        assert ["the diary" in str(each) for each in said.messages] == [False, False, True, False]


async def test_words_that_a_way_back_put_into_the_page_name_no_more_after_a_restart(
    site: Make, tmp_path: Path
):
    """Nothing of the server's own says any more that the person never typed them."""
    outside = tmp_path / "diary.txt"
    outside.write_text("the diary")
    words = f'see @"{outside} '
    made = site("one", "two")
    async with made.entered() as browser:
        followed = await opened(made, browser)
        path = f"/api/sessions/{followed.session.id}/lines"
        await browser.post(path, json={"text": words.strip(), "given": words})
        await until(lambda: followed.session.questions.open != ())
        question = followed.session.questions.open[0].id
        body = {"question": question, "key": "n"}
        await browser.post(path.replace("lines", "answer"), json=body)
        await until(lambda: len(followed.session.conversation.messages) == 2)
        await until(lambda: followed.session.inbox.now is None)
        assert "the diary" not in str(followed.session.conversation.messages)
        followed.session.parts.composer.has_given_back = False
        await browser.post(path, json={"text": words.strip()})
        await until(lambda: "the diary" in str(followed.session.conversation.messages))


async def test_requests_that_make_no_sense_are_refused_in_words(site: Make):
    made = site("unused")
    async with made.entered() as browser:
        followed = await opened(made, browser)
        path = f"/api/sessions/{followed.session.id}/lines"
        for content, kind in (
            (b"[", "application/json"),
            (b"{}", "application/json"),
            (b'{"text":1}', "application/json"),
            (b'{"text":"x"}', "text/plain"),
        ):
            said = await browser.post(path, content=content, headers={"content-type": kind})
            assert said.status_code == 400
            assert said.json()["error"]
        assert (await browser.get("/api/sessions/none/events?before=1")).status_code == 400
        assert (await browser.get("/api/sessions", headers={"accept": "*"})).status_code == 200
        assert (
            json.loads(
                (await browser.get(f"/api/sessions/{followed.session.id}/events?before=-1")).text
            )["records"]
            == []
        )


@every_row("name", ["app.js", "view.js", "board.js"])
def test_scripts_take_html_from_one_place_alone(name: str):
    text = (Path(__file__).parents[3] / "src/ybs/frontends/web/static" / name).read_text()
    assert text.count("innerHTML") == (1 if name == "view.js" else 0)
    for word in (
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "setAttribute('style",
    ):
        assert word not in text


ORIGIN = "http://127.0.0.1:8707"


async def test_the_proof_is_for_the_origin_at_which_it_is_asked(site):
    async with site().entered() as browser:
        token = browser.headers["x-ybs-token"]
        key = sha256(token.encode()).hexdigest().encode()
        answered = await browser.get("/api/proof", params={"nonce": "n"})
        proofs = [
            hmac.digest(key, f"n {origin}".encode(), "sha256").hex()
            for origin in (ORIGIN, "http://127.0.0.1:8708")
        ]
        assert answered.text == proofs[0] != proofs[1]


async def test_what_another_program_left_at_this_address_is_cleared_and_its_worker_ended(site):
    made = site()
    async with made.browser() as stranger, made.entered() as browser:
        assert '"storage"' in (await stranger.get("/")).headers["clear-site-data"]
        assert "clear-site-data" not in (await browser.get("/")).headers
        worker = await stranger.get("/sw.js", headers={"service-worker": "script"})
        assert (worker.status_code, "unregister" in worker.text) == (200, True)
