"""The page in a real browser, served by the real command."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from chat_platform import TOKEN, ChatPlatform
from commands.test_learn import WORDS as RECURRING
from learning.past_sessions import CHANGELOG, turn, write
from screen import Screen
from scripted.faults import Interrupted
from web_pages import (
    PHONE,
    SCRIPT,
    TABLET,
    WIDE,
    Look,
    Web,
    answer,
    axe_faults,
    chromium,
    fill,
    send,
    shown,
    states,
    until,
    web,
)
from ybs.testing.script import answer as said
from ybs.testing.script import call, thought

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
Serve = Callable[..., Web]
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000020000000208020000"
    "00fdd49a730000001649444154789c63fccfc0c0c0c0c4c0c0c0c0c000000d1d0103c2dc46900000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture
def serve(project: Path, home: Path) -> Iterator[Serve]:
    """Return a function that runs `ybs web` on a script."""
    with ExitStack() as stack:

        def run(*script: Any, words: tuple[str, ...] = (), **kind: bool) -> Web:
            return stack.enter_context(web(script, project, home, *words, **kind))

        yield run


@pytest.fixture
def look(browser: Any) -> Iterator[Callable[..., Look]]:
    """Return a function that opens a browser of its own; what its console complains of fails the test."""
    made: list[Look] = []

    def open_one(*given: Any, **options: Any) -> Look:
        made.append(Look(browser, *given, **options))
        return made[-1]

    yield open_one
    for each in made:
        each.context.close()
    assert [each.complaints for each in made] == [[]] * len(made)


def test_a_message_is_sent_and_its_answer_streams(serve: Serve, look: Any):
    slow = Interrupted(
        how="stall", answer=said(thought("Hm."), "One.\n\nTwo **bold**.\n\nThree."), after_frames=5
    )
    served, seen = serve(slow), look()
    page = seen.enter(served)
    send(page, "Tell me <b>three</b> things")
    page.wait_for_selector(".answer.live")
    until(page, "document.querySelector('.answer.live').textContent.includes('One.')")
    assert page.inner_text(".user p") == "Tell me <b>three</b> things"
    assert page.is_visible("#stop")
    served.server.resume()
    page.wait_for_selector(".answer:not(.live) strong")
    page.wait_for_selector(".end")
    assert page.query_selector(".answer.live") is None
    assert page.is_hidden("#stop")
    until(page, "document.querySelector('#said').textContent === 'The answer is finished.'")
    page.click(".think summary")
    assert "Hm." in page.inner_text(".think")
    until(page, "document.title.includes('three')")


def test_a_link_logs_in_once_and_a_reload_needs_none(serve: Serve, look: Any):
    served, seen, other = serve("unused"), look(), look()
    seen.page.goto(served.link)
    seen.page.wait_for_selector("body.ready")
    assert "key=" not in seen.page.url
    seen.page.reload()
    seen.page.wait_for_selector("body.ready")
    other.page.goto(served.link)
    other.page.wait_for_selector("#login:not([hidden])")
    until(other.page, "document.querySelector('#loginwhy').textContent.includes('was used')")
    assert other.page.is_hidden("#app")
    seen.page.click("#settings")
    seen.page.click("text=A link for another browser")
    until(seen.page, "document.querySelector('#dialogbody').textContent.includes('#key=')")
    link = seen.page.locator("#dialogbody p", has_text="#key=").last.inner_text()
    other.page.goto("about:blank")
    other.page.goto(link)
    other.page.wait_for_selector("body.ready")
    seen.page.click("#settings") if seen.page.is_hidden("dialog") else None
    seen.page.click("#dialogclose")
    seen.page.click("#settings")
    seen.page.locator(".logins li", has_not_text="this one").locator("button").click()
    other.page.wait_for_selector("#login:not([hidden])")


def test_each_choice_of_a_question(serve: Serve, look: Any, project: Path):
    for name in "abcdef":
        (project / name).write_text("text")
    served, seen = (
        serve(
            call("delete_file", path="a"),
            call("delete_file", path="b"),
            call("delete_file", path="c"),
            call("write_file", path="new.txt", content="one\n"),
            call("write_file", path="newer.txt", content="two\n"),
            call("ask_user", question="Which colour?", options=["red", "blue"]),
            call("ask_user", question="And which shape?", options=["round"]),
            "All done.",
        ),
        look(),
    )
    page = seen.enter(served)
    send(page, "Go on")
    page.wait_for_selector(".question")
    assert page.locator(
        ".question [data-key]"
    ).first.is_disabled()  # what was pressed before it could be read
    answer(page, "y")
    page.wait_for_selector(".call.ok >> text=a")
    answer(page, "n")
    page.wait_for_selector(".call.refused")
    answer(page, "r")
    page.fill(".question .words input", "I still need c")
    page.keyboard.press("Enter")
    page.wait_for_selector(".call:has-text('I still need c')", state="attached")
    answer(page, "a")
    page.wait_for_selector(
        ".question:has-text('Which colour?')"
    )  # the second write was not asked about
    assert (project / "newer.txt").read_text() == "two\n"
    answer(page, "2")
    answer(page, "r")
    page.fill(".question .words input", "square")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=All done.")
    assert sorted(each.name for each in project.iterdir() if len(each.name) == 1) == [
        "b",
        "c",
        "d",
        "e",
        "f",
    ]
    bodies = served.server.requests[-1].body["messages"]
    told = str(bodies)
    assert "blue" in told
    assert "square" in told
    assert "I still need c" in told


def test_words_steer_a_turn_lines_wait_and_a_stop_gives_them_back(serve: Serve, look: Any):
    slow = Interrupted(how="stall", answer="I am slow.", after_frames=1)
    served, seen = serve(call("list_files", pattern="*"), slow, "Steered."), look()
    page = seen.enter(served)
    send(page, "Begin")
    page.wait_for_selector(".call.ok")
    page.wait_for_selector("#stop:not([hidden])")
    assert page.inner_text("#send") == "Steer"
    send(page, "Be quick")
    page.wait_for_selector("#waiting >> text=Be quick")
    send(page, "And then this", "Alt+Enter")
    page.wait_for_selector("#waiting >> text=And then this")
    page.click("text=Take back the newest")
    until(page, "document.querySelector('#prompt').value.includes('And then this')")
    send(page, "!pwd", "Alt+Enter")
    page.wait_for_selector("#waiting >> text=!pwd")
    page.fill("#prompt", "touch ran")
    page.click("text=Take back the newest")
    until(page, "document.querySelector('#prompt').value === '(pasted)\\n!pwd\\ntouch ran'")
    page.fill("#prompt", "")
    page.locator("#scroll").focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.wait_for_selector("#stop", state="hidden")
    until(page, "document.querySelector('#prompt').value.includes('Be quick')")
    assert page.locator(".note.warning").count() == 1


def test_what_a_turn_changed_is_undone_and_redone(serve: Serve, look: Any, project: Path):
    (project / "a.py").write_text("x = 1\n")
    served, seen = (
        serve(
            call("read_file", path="a.py"),
            call("edit_file", path="a.py", old_text="1", new_text="2"),
            "Done.",
        ),
        look(),
    )
    page = seen.enter(served)
    page.select_option("#mode", "accept-edits")
    until(page, "document.querySelector('#mode').value === 'accept-edits'")
    send(page, "Make it two")
    page.wait_for_selector("text=Done.")
    page.wait_for_selector(".call .diff mark")
    page.wait_for_selector(".end")
    page.locator("#scroll").focus()
    page.keyboard.press("u")
    page.wait_for_selector("dialog[open] .diff")
    page.click("dialog[open] button.primary")
    page.wait_for_selector(".user", state="detached")
    until(page, "document.querySelector('#prompt').value === 'Make it two'")
    assert (project / "a.py").read_text() == "x = 1\n"
    page.fill("#prompt", "")
    page.click("#redo")
    page.wait_for_selector("dialog[open] .diff .add >> text=x = 2")
    page.click("dialog[open] button.primary")
    page.wait_for_selector(".user >> text=Make it two")
    assert (project / "a.py").read_text() == "x = 2\n"


def test_a_long_text_that_is_pasted_or_dropped_goes_along_as_a_file_and_names_none(
    serve: Serve, look: Any, home: Path
):
    (home / "diary.txt").write_text("the diary")
    served, seen = serve("Fixed."), look()
    page = seen.enter(served)
    give = """([type, text]) => {
      const data = new DataTransfer(); data.setData('text/plain', text);
      const more = { bubbles: true, cancelable: true };
      document.querySelector('#prompt').dispatchEvent(type === 'paste' ? new ClipboardEvent('paste', { clipboardData: data, ...more }) : new DragEvent('drop', { dataTransfer: data, ...more }));
    }"""
    page.evaluate(give, ["paste", "a short one"])  # the browser itself puts that into the prompt
    page.evaluate(give, ["paste", "trace\n" * 20 + "see @~/diary.txt"])
    page.wait_for_selector("#attached >> text=pasted, 21 lines")
    page.evaluate(give, ["drop", "x" * 1_001])
    page.wait_for_selector("#attached >> text=pasted, 1 line")
    assert page.locator("#attached li").count() == 2
    send(page, "Please fix")
    page.wait_for_selector("text=Fixed.")
    told = str(served.server.requests[-1].body)
    assert "see @~/diary.txt" in told
    assert "the diary" not in told


def test_a_picture_and_a_file_are_attached_pasted_and_shown(serve: Serve, look: Any):
    served, seen = serve("A picture."), look()
    page = seen.enter(served)
    page.set_input_files(
        "#files",
        [
            {"name": "dot.png", "mimeType": "image/png", "buffer": PNG},
            {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"remember"},
        ],
    )
    page.wait_for_selector("#attached >> text=notes.txt")
    paste = """data => {
      const bytes = Uint8Array.from(data), files = new DataTransfer();
      files.items.add(new File([bytes], 'pasted.png', { type: 'image/png' }));
      document.querySelector('#prompt').dispatchEvent(new ClipboardEvent('paste', { clipboardData: files, bubbles: true, cancelable: true }));
    }"""
    page.evaluate(paste, list(PNG))
    page.wait_for_selector("#attached >> text=pasted.png")
    page.click("[aria-label='Do not attach pasted.png']")
    drop = """() => {
      const files = new DataTransfer();
      files.items.add(new File(['dropped words'], 'dropped.txt', { type: 'text/plain' }));
      for (const kind of ['dragover', 'drop']) document.querySelector('#log').dispatchEvent(new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true }));
    }"""
    page.evaluate(drop)
    page.wait_for_selector("#attached >> text=dropped.txt")
    send(page, "What is this?")
    page.wait_for_selector("text=A picture.")
    until(page, "document.querySelector('.user img').naturalWidth === 2")
    told = str(served.server.requests[-1].body)
    assert "image/png" in told
    assert "remember" in told
    assert "dropped words" in told
    assert page.locator("#attached li").count() == 0


def test_what_is_typed_as_a_question_comes_answers_nothing(serve: Serve, look: Any, project: Path):
    served = serve(
        call("run_shell", command="mkdir one"), call("run_shell", command="mkdir two"), "Made."
    )
    page = look().enter(served)
    send(page, "Go on")
    page.wait_for_selector(".question")
    page.keyboard.type("please also wait", delay=90)
    assert page.input_value("#prompt") == "please also wait"
    page.keyboard.press("Escape")
    page.wait_for_timeout(400)
    page.keyboard.type("oy", delay=50)  # the first letter may have been an answer, until the second
    page.wait_for_timeout(300)
    assert page.input_value("#prompt") == "please also waitoy"
    assert page.locator(".question [data-key]:not([disabled])").count()
    assert not (project / "one").exists()
    page.fill("#filter", "the")
    page.keyboard.press("Escape")
    page.wait_for_timeout(400)
    page.keyboard.press("y")
    page.wait_for_selector(".question:has-text('mkdir two')")
    assert (project / "one").is_dir()


def test_a_question_takes_no_focus_from_words(serve: Serve, look: Any):
    page = look().enter(serve(call("run_shell", command="mkdir one"), "Made."))
    send(page, "Go on")
    page.fill("#filter", "the")
    page.wait_for_selector(".question")
    assert page.evaluate("document.activeElement.id") == "filter"


def test_a_page_that_nobody_looks_at_notifies_of_questions_and_ends(serve, look, project):
    for name in "ab":
        (project / name).write_text("text")
    steps = [call("delete_file", path="a"), call("delete_file", path="b"), "Gone."]
    served, seen = serve(*steps), look()
    seen.context.add_init_script("""
      globalThis.shown = [];
      globalThis.Notification = class { constructor(title, { body }) { globalThis.shown.push(body); } static permission = 'granted'; };
      Object.defineProperty(document, 'hidden', { get: () => globalThis.isAway || false });
    """)
    page = seen.enter(served)
    send(page, "Delete it")
    until(page, "document.title.startsWith('(asks)')")  # the list of sessions knows it too
    assert page.evaluate("shown") == []  # somebody looks
    page.evaluate("globalThis.isAway = true")
    answer(page, "y")
    until(page, "shown.length === 1")
    assert page.evaluate("shown")[0].endswith(" asks")
    assert page.title().startswith("(asks)")
    answer(page, "y")
    page.wait_for_selector(".end")
    until(page, "shown.length === 2")
    assert page.evaluate("shown")[1].endswith(": done")
    assert page.title().startswith("(done)")


def test_a_task_that_recurs_is_shown_accepted_and_dismissed_on_the_board(serve, look, home):
    folder = home / ".config/ybs/sessions"
    for week, words in enumerate(RECURRING):
        write(folder, f"changelog-{week}", week * 7, turn(words, CHANGELOG))
    served, seen = serve("unused"), look()
    page = seen.page
    page.goto(served.link)
    page.wait_for_selector("body.ready")
    page.keyboard.press("b")
    row = page.locator(".learned li")
    assert "4 times on 4 days" in row.inner_text()
    row.get_by_text("Why").click()
    page.wait_for_selector("dialog[open] >> text=changelog for version 1.4.1 please")
    page.keyboard.press("Escape")
    row.get_by_text("Make a command").click()
    page.wait_for_selector("dialog[open] .diff .add")
    assert page.locator("dialog .choices button").count() == 2
    page.click("dialog .choices button >> nth=0")
    page.wait_for_selector("dialog[open] >> text=Written:")
    assert (home / ".config/ybs/commands/changelog-version.md").exists()
    page.keyboard.press("Escape")
    page.wait_for_selector(".learned >> text=accepted")
    row.get_by_text("Dismiss").click()
    page.wait_for_selector("dialog[open] >> text=is not offered again")
    page.keyboard.press("Escape")
    page.wait_for_selector(".learned >> text=dismissed")


@contextmanager
def bot(home: Path) -> Iterator[tuple[ChatPlatform, Callable[[int], None]]]:
    """Run a chat platform and name it in the settings; the function has somebody write to the bot."""
    loop, platform = asyncio.new_event_loop(), ChatPlatform()
    thread = Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(platform.__aenter__(), loop).result(10)
    settings = home / ".config/ybs/config.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    telegram = {"token": TOKEN, "base_url": platform.url}
    gateway = {"channels": {"telegram": telegram}}
    settings.write_text(json.dumps({"version": "1.0", "gateway": gateway}))
    try:
        yield (
            platform,
            lambda who: loop.call_soon_threadsafe(
                lambda: platform.say("hello", chat=who, person=who)
            ),
        )
    finally:
        asyncio.run_coroutine_threadsafe(platform.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_who_writes_to_the_bot_is_let_in_or_refused_on_the_board(serve, look, home):
    with bot(home) as (platform, write_to_bot):
        served, page = serve("Hello yourself.", chats=True), look().page
        page.goto(served.link)
        page.wait_for_selector("body.ready")
        row = page.locator(".waiting li")

        def wanted(who: int) -> None:
            write_to_bot(who)
            for _ in range(100):
                if platform.texts(who):
                    break
                page.wait_for_timeout(100)
            assert "is private" in platform.texts(who)[0]
            page.keyboard.press("Escape")
            page.keyboard.press("b")
            page.wait_for_selector(f".waiting li >> text=({who})")

        for who, label, words in (
            (3, "Let in as owner", "You are the owner"),
            (4, "Let in as guest", "You were let in"),
            (5, "Refuse", ""),
        ):
            wanted(who)
            assert row.count() == 1
            row.get_by_text(label).click()
            until(page, "!document.querySelector('.waiting')")
            for _ in range(50):
                if len(platform.texts(who)) > 1:
                    break
                page.wait_for_timeout(100)
            assert [words in each for each in platform.texts(who)[1:]] == ([True] if words else [])


def test_a_terminal_and_the_page_hold_one_session_of_the_server(serve, look, project, home):
    for name in "ab":
        (project / name).write_text("text")
    served, seen = (
        serve(
            call("delete_file", path="a"),
            "The first is gone.",
            call("delete_file", path="b"),
            "The second is gone.",
            Interrupted(how="stall", answer="Slow. " * 9, after_frames=3),
            "Read that.",
            serves=True,
        ),
        look(),
    )
    page = seen.enter(served)
    with Screen("attach", environ={"HOME": str(home)}) as screen:
        screen.sees(r"› *\n")
        send(page, "from the page")
        screen.sees(r"› from the page\n[\s\S]*\[y\] yes")
        answer(page, "y")
        screen.sees(r"The first is gone\.[\s\S]*› *\n")
        screen.keys("from the terminal\r")
        page.wait_for_selector(".user >> text=from the terminal")
        page.wait_for_selector(".question")
        screen.sees(r"delete_file wants to delete b[\s\S]*\[y\] yes")
        screen.stays(0.5)  # keys that come before a question can be read are none
        screen.keys("y")
        page.wait_for_selector("text=The second is gone.")
        page.wait_for_selector(".question", state="detached")
        assert not (project / "b").exists()
        send(page, "be slow")
        page.wait_for_selector(".answer.live")
        screen.keys("steered by the terminal\r")
        page.wait_for_selector("#waiting >> text=steered by the terminal")
        page.click("text=Take back the newest")
        page.wait_for_selector("#waiting li", state="detached")
        send(page, "steered by the page")
        screen.sees("steered by the page")
        served.server.resume()
        screen.sees(r"Read that\.[\s\S]*› *\n")
        page.wait_for_selector("text=Read that.")
        screen.keys("/mode plan\r")
        until(page, "document.querySelector('#mode').value === 'plan'")
        page.click("#close")
        screen.sees("It was closed on the page")
    page.wait_for_selector("#welcome:not([hidden])")
    assert page.locator("#open .session").count() == 0


class Editor:
    """A bare editor on `ybs acp`."""

    def __init__(self, served: Web, home: Path, project: Path) -> None:
        command = [str(Path(sys.executable).parent / "ybs"), "acp"]
        model = {"YBS_PROVIDER": "openai", "YBS_ENDPOINT": served.server.url, "YBS_MODEL": "m"}
        environ = {"HOME": str(home), "PATH": os.environ["PATH"], "OPENAI_API_KEY": "k", **model}
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, cwd=project, env=environ, text=True, **pipes)
        self.text = ""

    def __enter__(self) -> "Editor":
        self.say(1, "initialize", protocolVersion=1, clientCapabilities={})
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.communicate(timeout=20)[1] is None
        assert self._process.returncode == 0

    def say(self, number: int, method: str = "", **params: Any) -> None:
        """Send a request, or the answer to one."""
        message = {"method": method, "params": params} if method else {"result": params}
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, **message}) + "\n")
        self._process.stdin.flush()

    def hears(self, words: str) -> Any:
        """Return the next message with these words in it; the words of the model that come before are kept."""
        assert self._process.stdout
        for line in self._process.stdout:
            message = json.loads(line)
            update = message.get("params", {}).get("update", {})
            if update.get("sessionUpdate") == "agent_message_chunk":
                self.text += update["content"]["text"]
            if words in line:
                return message
        raise AssertionError(f"{words} did not come")


def test_an_editor_a_terminal_and_the_page_hold_one_session_of_the_server(
    serve: Serve, look: Any, project: Path, home: Path
):
    for name in "abc":
        (project / name).write_text("text")
    deletes = (call("delete_file", path=name) for name in "abc")
    ends = ("The first is gone.", "The second is gone.", "The third is gone.")
    script = [each for pair in zip(deletes, ends, strict=True) for each in pair]
    served, seen = serve(*script, serves=True), look()
    page = seen.enter(served)
    send(page, "from the page")
    page.wait_for_selector(".question")
    with (
        Editor(served, home, project) as editor,
        Screen("attach", environ={"HOME": str(home)}) as screen,
    ):
        editor.say(2, "session/list", cwd=str(project))
        (listed,) = editor.hears('"sessions"')["result"]["sessions"]
        name = listed["sessionId"]
        editor.say(3, "session/load", sessionId=name, cwd=str(project), mcpServers=[])
        asked = editor.hears("session/request_permission")
        screen.sees(r"› from the page\n[\s\S]*\[y\] yes")
        editor.say(asked["id"], outcome={"outcome": "selected", "optionId": "0"})
        page.wait_for_selector("text=The first is gone.")
        screen.sees(r"The first is gone\.[\s\S]*› *\n")
        words = [{"type": "text", "text": "from the editor"}]
        editor.say(4, "session/prompt", sessionId=name, prompt=words)
        page.wait_for_selector(".user >> text=from the editor")
        screen.sees(r"delete_file wants to delete b[\s\S]*\[y\] yes")
        screen.stays(0.5)  # keys that come before a question can be read are none
        screen.keys("y")
        page.wait_for_selector("text=The second is gone.")
        assert editor.hears('"stopReason"')["result"]["stopReason"] == "end_turn"
        screen.sees(r"The second is gone\.[\s\S]*› *\n")
        screen.keys("from the terminal\r")
        assert "user_message_chunk" in str(editor.hears("from the terminal"))
        answer(page, "y")
        screen.sees(r"The third is gone\.[\s\S]*› *\n")
        assert editor.hears('"usage_update"')
        assert "The third is gone." in editor.text
        page.wait_for_selector("text=The third is gone.")
    assert not [name for name in "abc" if (project / name).exists()]


def test_a_session_that_begins_elsewhere_in_the_server_is_listed(serve, look, home):
    served, seen = serve("Hello.", serves=True), look()
    page = seen.page
    page.goto(served.link)
    page.wait_for_selector("body.ready")
    model = ("--provider", "openai", "--endpoint", served.server.url, "--model", "scripted")
    with Screen("--background", "hi", *model, environ={"HOME": str(home)}) as screen:
        screen.sees("works in the background")
    page.click("#open .session")
    page.wait_for_selector("text=Hello.")


def test_two_tabs_and_a_late_one_show_the_same(serve: Serve, look: Any, project: Path):
    (project / "a").write_text("text")
    served, seen = serve(said("Look.", call("delete_file", path="a")), "Gone."), look()
    page = seen.enter(served)
    other = seen.tab()
    other.goto(page.url)
    other.wait_for_selector("#foot:not([hidden])")
    send(page, "Delete it")
    other.wait_for_selector(".question")
    answer(other, "y")
    for each in (page, other):
        each.wait_for_selector(".end")
        each.wait_for_selector(".question", state="detached")
    late = seen.tab()
    late.goto(page.url)
    late.wait_for_selector(".end")
    assert shown(page) == shown(other) == shown(late)
    assert "Gone." in shown(late)


def test_the_server_is_killed_in_a_turn_and_at_a_question(serve: Serve, look: Any, project: Path):
    (project / "a").write_text("text")
    slow = Interrupted(how="stall", answer="Never whole.", after_frames=3)
    served, seen = serve("First.", slow, call("delete_file", path="a"), "Deleted."), look()
    page = seen.enter(served)
    send(page, "One")
    page.wait_for_selector("text=First.")
    page.wait_for_selector(".end")
    send(page, "Two")
    page.wait_for_selector(".answer.live")
    served.end(signal.SIGKILL)
    page.wait_for_selector("#lost:not([hidden])")
    served.start()
    page.wait_for_selector(
        "#login:not([hidden])"
    )  # without a certificate a login ends with the server
    page.goto(served.link)
    page.wait_for_selector("text=ybs ended in the midst of this turn.")
    assert page.inner_text(".user p >> nth=1") == "Two"
    page.click("button:has-text('Go on')")
    page.wait_for_selector(".question")
    served.end(signal.SIGKILL)
    page.wait_for_selector("#lost:not([hidden])")
    served.start()
    page.wait_for_selector("#login:not([hidden])")
    other = seen.tab()
    other.goto(served.link)
    other.wait_for_selector("body.ready")
    page.click("button:has-text('Go on')")  # it has seen that another tab is logged in
    answer(page, "y")
    page.wait_for_selector("text=Deleted.")
    assert not (project / "a").exists()
    assert page.locator(".user").count() == 2


def test_a_hostile_page_of_the_same_machine_gets_nothing_and_changes_nothing(serve, look, project):
    served, seen = serve("Hello.", "No."), look()
    page = seen.enter(served)
    send(page, "secret words")
    page.wait_for_selector(".end")
    told = list[tuple[str, str]]()

    class Hostile(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.append((self.path, self.headers["cookie"] or ""))
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><iframe name=sink></iframe>")

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        other = seen.context.new_page()
        other.goto(f"http://127.0.0.1:{server.server_address[1]}/")
        name = page.evaluate("location.hash.slice(3)")
        found = other.evaluate(HOSTILE, [f"http://127.0.0.1:{served.port}", name])
        server.shutdown()
        thread.join()
    assert any(f"ybs-{served.port}=" in cookie for _, cookie in told)  # cookies go to every port
    assert found == {
        "read": [], "events": "error", "image": "error", "script": "error",
        "frame": "no", "window": "no",
    }  # fmt: skip
    assert len(served.server.requests) == 1
    page.reload()
    page.wait_for_selector("text=Hello.")
    assert page.locator("#open .session").count() == 1
    assert page.locator(".user").count() == 1


HOSTILE = """async ([origin, name]) => {
  const found = { read: [] }, path = `${origin}/api/sessions`, body = JSON.stringify({ text: 'owned', folder: '' });
  for (const mode of ['cors', 'same-origin']) {
    for (const options of [{}, { method: 'POST', body, headers: { 'content-type': 'application/json', 'x-ybs-token': 'guess' } }]) {
      await fetch(path, { mode, credentials: 'include', ...options }).then(answer => found.read.push(answer.status), () => {});
    }
  }
  for (const options of [{}, { method: 'POST', body }, { method: 'POST', body: new URLSearchParams({ text: 'owned' }) }]) {
    await fetch(path, { mode: 'no-cors', credentials: 'include', ...options }).catch(() => {});
  }
  const loads = (tag, address) => new Promise(done => {
    const made = document.createElement(tag);
    Object.assign(made, { onload: () => done('loaded'), onerror: () => done('error'), src: address });
    document.body.append(made);
  });
  const source = new EventSource(`${path}/${name}/stream`, { withCredentials: true });
  found.events = await new Promise(done => { source.onerror = () => done('error'); source.onmessage = () => done('read'); });
  source.close();
  found.image = await loads('img', `${path}/${name}/pictures/1/0`);
  found.script = await loads('script', path);
  const form = document.createElement('form');
  Object.assign(form, { action: `${path}/${name}/lines`, method: 'post', enctype: 'text/plain', target: 'sink' });
  form.innerHTML = `<input name='{"text":"owned","x":"' value='"}'>`;
  document.body.append(form);
  form.submit();
  const frame = document.createElement('iframe');
  frame.src = origin;
  document.body.append(frame);
  const opened = open(origin);
  await new Promise(done => setTimeout(done, 800));
  const reads = target => { try { return target.document.querySelector('#app') ? 'read' : 'no'; } catch { return 'no'; } };
  return { ...found, frame: reads(frame.contentWindow), window: opened && !opened.closed ? reads(opened) : 'no' };
}"""


def test_a_program_that_takes_the_port_of_a_server_that_ended_is_not_told_the_token(serve, look):
    served, seen, asked = serve("Hello."), look(), list[tuple[str, str | None]]()
    page = seen.enter(served)
    assert page.evaluate("localStorage.getItem('ybs-token')")

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["x-ybs-token"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    served.end(signal.SIGKILL)
    with ThreadingHTTPServer(("127.0.0.1", served.port), Other) as other:
        thread = Thread(target=other.serve_forever)
        thread.start()
        for _ in range(500):
            page.wait_for_timeout(20)
            if len(asked) > 1:
                break
        page.evaluate("document.querySelector('#find').click()")
        page.fill("dialog[open] input", "words")
        page.keyboard.press("Enter")
        page.wait_for_timeout(200)
        other.shutdown()
        thread.join()
    assert len(asked) > 1
    assert {(path.partition("?")[0], token) for path, token in asked} == {("/api/proof", None)}
    served.start()
    page.wait_for_selector("#login:not([hidden])")


def test_who_takes_the_port_of_a_server_that_ended_is_not_the_person_once_it_is_back(serve, look):
    served, seen = serve("Hello."), look()
    page, origin = seen.enter(served), f"http://127.0.0.1:{served.port}"
    told = dict[str, str]()

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/token?"):
                told["x-ybs-token"] = self.path.partition("?")[2]
            if cookie := self.headers["cookie"]:
                told["cookie"] = cookie
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            reads = "fetch('/token?' + localStorage.getItem('ybs-token'))"
            self.wfile.write(f"<title>ybs</title><script>{reads}</script>".encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    served.end()
    with ThreadingHTTPServer(("127.0.0.1", served.port), Other) as other:
        thread = Thread(target=other.serve_forever)
        thread.start()
        with page.expect_response(lambda said: "/token?" in said.url):
            page.reload()
        other.shutdown()
        thread.join()
    assert told.keys() == {"x-ybs-token", "cookie"}
    assert len(told["x-ybs-token"]) > 20
    served.start()
    asked = Request(f"{origin}/api/sessions", headers={**told, "origin": origin})
    with pytest.raises(HTTPError, match="401"):
        urlopen(asked)


def test_any_order_of_reconnects_shows_what_a_fresh_page_shows(serve: Serve, look: Any):
    answers = [
        said(
            thought("Think."),
            f"Answer {number}.\n\n- a\n- b\n\n```python\nx = {number}\n```\n\nEnd.",
            call("list_files", pattern=f"{number}*"),
        )
        for number in range(8)
    ]
    served, seen = serve(*answers, "The end."), look()
    page = seen.enter(served)
    chance = random.Random(7)
    send(page, "Go")
    for _ in range(25):
        page.wait_for_timeout(chance.randrange(5, 80))
        seen.context.set_offline(True) if chance.random() < 0.3 else None
        page.evaluate("window.dispatchEvent(new Event('blur'))")
        seen.context.set_offline(False)
        if chance.random() < 0.3:
            page.reload()
            page.wait_for_selector("#foot:not([hidden])")
    page.wait_for_selector("text=The end.")
    page.wait_for_selector(".end")
    fresh = seen.tab()
    fresh.goto(page.url)
    fresh.wait_for_selector(".end")
    assert shown(page) == shown(fresh)
    assert shown(fresh).count("Think. Answer") == 8


def test_by_keyboard_alone(serve: Serve, look: Any, project: Path):
    (project / "notes.md").write_text("words")
    served, seen = serve("Read.", "Again."), look()
    page = seen.page
    page.goto(served.link)
    page.wait_for_selector("body.ready")
    keys = page.keyboard
    keys.press("?")
    page.wait_for_selector("dialog[open] >> text=new session")
    keys.press("Escape")
    keys.press("n")
    page.wait_for_selector("dialog[open] .choices button")
    page.locator("dialog[open] .choices button").first.focus()
    keys.press("Enter")
    until(page, "document.activeElement.id === 'prompt'")
    keys.type("Look at @not")
    page.wait_for_selector("#offers [aria-selected=true]")
    keys.press("Tab")
    until(page, "document.querySelector('#prompt').value === 'Look at @notes.md '")
    keys.press("Enter")
    page.wait_for_selector("text=Read.")
    keys.type("/mod")
    page.wait_for_selector("#offers [aria-selected=true]")
    keys.press("Escape")
    page.fill("#prompt", "")
    keys.press("Escape")
    keys.press("m")
    until(page, "document.querySelector('#mode').value === 'accept-edits'")
    keys.press("/")
    page.wait_for_selector("dialog[open] input[type=search]")
    keys.type("Read")
    keys.press("Enter")
    page.wait_for_selector("dialog[open] .choices button")
    page.locator("dialog[open] .choices button").first.focus()
    keys.press("Enter")
    page.wait_for_selector(".found")
    keys.press("b")
    page.wait_for_selector("#board figure")
    keys.press("j")
    page.wait_for_selector("#foot:not([hidden])")
    keys.press("f")
    until(page, "document.activeElement.id === 'filter'")


def test_commands_answer_with_tables_and_menus(serve: Serve, look: Any):
    served, seen = serve("unused"), look()
    page = seen.enter(served)
    send(page, "/context")
    page.wait_for_selector(".reply table")
    send(page, "/mode")
    page.wait_for_selector(".reply .choices button")
    page.click(".reply .choices button:has-text('plan')")
    until(page, "document.querySelector('#mode').value === 'plan'")
    send(page, "/nonsense")
    page.wait_for_selector(".reply.error")
    page.click("#effort")
    page.wait_for_selector("dialog[open] .reply")


def test_a_sub_agent_is_a_branch_with_its_own_question(serve: Serve, look: Any, project: Path):
    (project / "a").write_text("text")
    served, seen = (
        serve(
            call("delegate", tasks=[{"task": "Delete the file a.", "kind": "general"}]),
            said("I delete it.", call("delete_file", path="a")),
            "The file is gone.",
            "All is done.",
        ),
        look(),
    )
    page = seen.enter(served)
    send(page, "Have somebody delete a")
    page.wait_for_selector(".question")
    name = page.inner_text(".question h3")
    answer(page, "y")
    page.wait_for_selector("#log > .answer >> text=All is done.")
    assert ": " in name
    branch = page.locator(".call .agent .branch")
    assert branch.count() == 1
    assert "The file is gone." in branch.inner_text()
    assert branch.locator(".call.ok").count() == 1
    page.click(".agent > summary")
    assert page.is_hidden(".branch")
    late = seen.tab()
    late.goto(page.url)
    late.wait_for_selector("text=All is done.")
    assert shown(late) == shown(page)


def test_a_command_in_the_background_shows_what_it_prints_and_is_stopped(serve: Serve, look: Any):
    job = call("run_shell", command="echo begun; sleep 60", background=True)
    served, seen = serve(job, "It runs.", words=("--mode", "bypass", "--no-sandbox")), look()
    page = seen.enter(served)
    send(page, "Start it")
    page.wait_for_selector("text=It runs.")
    page.click("#jobs")
    page.wait_for_selector("dialog[open] pre >> text=begun")
    page.click("dialog[open] button:has-text('Stop it')")
    until(page, "document.querySelector('#jobs').hidden")


def test_a_command_gets_the_network_only_where_that_was_chosen(serve: Serve, look: Any):
    served, seen = serve(call("run_shell", command="touch made"), "Made."), look()
    page = seen.enter(served)
    send(page, "Make it")
    page.wait_for_selector(".question [data-key='y']:not([disabled])")
    label = page.locator(".question label")
    if label.count() == 0:
        pytest.skip("NOT TESTED: there is no sandbox that could hold the network back")
    page.locator(".question").focus()
    page.keyboard.press("w")
    page.wait_for_selector(".question >> text=yes, with network")
    page.wait_for_timeout(350)
    page.keyboard.press("y")
    page.wait_for_selector("text=Made.")


def test_code_is_copied(serve: Serve, look: Any):
    served = serve("```python\nx = '<b>'\n```")
    seen = look(permissions=["clipboard-read", "clipboard-write"])
    page = seen.enter(served)
    send(page, "Show it")
    page.click(".codehead .copy")
    page.wait_for_selector(".copy >> text=Copied")
    assert page.evaluate("navigator.clipboard.readText()").strip() == "x = '<b>'"


def test_an_incognito_session_and_a_restart_leave_nothing(serve: Serve, look: Any, home: Path):
    served, seen = serve("Secretly."), look()
    page = seen.page
    page.goto(served.link)
    page.wait_for_selector("body.ready")
    page.keyboard.press("n")
    page.check("dialog[open] input[type=checkbox]")
    page.click("dialog[open] .choices button")
    until(page, "document.querySelector('#mode').options.length > 0")
    send(page, "the words nobody keeps")
    page.wait_for_selector("text=Secretly.")
    assert "incognito" in page.inner_text("#where")
    served.end()
    for path in home.rglob("*"):
        if path.is_file():
            assert b"nobody keeps" not in path.read_bytes(), path


def test_hostile_words_are_text(serve: Serve, look: Any, project: Path):
    bad = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    name = "<img src=x onerror=alert(1)>.py"
    (project / name).write_text("x\n")
    branch = "<img/src=x/onerror=alert(1)>"
    subprocess.run(["git", "init", "-q", "-b", branch], cwd=project, check=True)
    served, seen = (
        serve(
            said(thought(bad), bad, call("read_file", path=name)),
            call("write_file", path="<svg onload=alert(1)>.txt", content=f"{bad}\n"),
            call("run_shell", command=f"printf '%s' '{bad}' # \x1b[31m"),
            f"[x](javascript:alert(1)) ![p](http://127.0.0.1:9/x.png)\n\n```html\n{bad}\n```",
        ),
        look(),
    )
    page = seen.enter(served)
    page.on("dialog", lambda box: pytest.fail(f"a script ran: {box.message}"))
    send(page, bad)
    for asked in ("<svg onload", "commit what each turn changes"):  # the second comes after the end
        page.wait_for_selector(f".question:has-text('{asked}')")
        answer(page, "y")
    page.wait_for_selector(".end")
    assert page.title() != "owned"
    assert branch in page.inner_text("#where")
    page.wait_for_function(
        "text => document.querySelector('#title').innerText.includes(text)", arg=bad[:20]
    )
    assert page.locator("#app img, #log svg, #app script, [onerror], [onload]").count() == 0
    assert page.locator("#log a:not([href^='http'])").count() == 0


def test_ten_thousand_events_open_at_their_end_and_scroll(serve, look, project, home):
    from ybs.core.events import AssistantSaid, Noticed, SessionStarted, TurnFinished, UserSaid
    from ybs.transcripts.store import SessionStore

    store = SessionStore(home / ".config/ybs/sessions")
    name = store.create()
    log = store.open_log(name)
    log.add(
        SessionStarted(
            session=name, folder=str(project), config={"provider": "openai", "model": "scripted"}
        )
    )
    for number in range(2_500):
        log.add(UserSaid(content=f"question {number}"))
        log.add(AssistantSaid(content=f"**answer** {number}"))
        log.add(Noticed(level="info", text="between"))
        log.add(TurnFinished(reason="done"))
    log.close()
    served, seen = serve("unused"), look()
    seen.page.goto(served.link)
    page = seen.page
    page.wait_for_selector("#saved .session")
    page.click("#saved .session")
    page.wait_for_selector("text=answer 2499")
    assert page.evaluate("document.querySelector('#scroll').scrollTop") > 1000
    assert page.locator("#log > *").count() < 1_500
    page.evaluate("document.querySelector('#scroll').scrollTop = 0")
    until(page, "document.querySelectorAll('#log > *').length > 400")
    at = page.evaluate("document.querySelector('#scroll').scrollTop")
    assert at > 100  # what was read stays where it is
    page.click("#find")
    page.fill("dialog[open] input", "2200")
    page.keyboard.press("Enter")
    page.click("dialog[open] .choices button")
    page.wait_for_selector(".found >> text=2200")


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (TABLET, "light"), (PHONE, "dark")])
def test_no_state_has_a_serious_fault_or_is_wider_than_the_screen(
    serve: Serve, look: Any, project: Path, size: tuple[int, int], scheme: str
):
    """axe-core looks at every state; the pictures are for people (`make pictures-web`)."""
    fill(project)
    served = serve(*SCRIPT)
    seen = look(size, color_scheme=scheme, reduced_motion="reduce", bypass_csp=True)
    page = seen.page
    page.goto(served.link)
    page.wait_for_selector("body.ready")
    faults: dict[str, list[str]] = {}
    for state in states(page, served):
        if found := axe_faults(page):
            faults[state] = found
        parts = "['html', '#scroll', '#board', '#dialogbody', '#side']"
        width = page.evaluate(
            f"Math.max(...{parts}.map(each => document.querySelector(each)).map(each => {size[0]} + each.scrollWidth - each.clientWidth))"
        )
        if width > size[0]:
            faults.setdefault(state, []).append(f"the page is {width} wide")
    assert faults == {}
