"""The real `ybs web` in a process of its own, and the system's chromium that looks at it."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from scripted import ScriptedServer
from scripted.faults import Interrupted
from serving import serving
from ybs.testing.script import answer as said
from ybs.testing.script import call, thought

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
WIDE, TABLET, PHONE = (1440, 900), (768, 1024), (360, 740)
#: So long is waited for the page, in milliseconds: the machine may be busy.
PATIENCE = 15_000


class Web:
    """`ybs web`, `ybs serve --web`, or `ybs gateway start --web`, on a project; it can be killed and started again on the same port."""

    def __init__(
        self,
        server: ScriptedServer,
        project: Path,
        home: Path,
        *words: str,
        serves: bool = False,
        chats: bool = False,
    ) -> None:
        self._command = ("serve", "--web") if serves else ("web", "--port")
        self._command = ("gateway", "start", "--web") if chats else self._command
        self.server, self.project, self.home, self._words = server, project, home, words
        self.port, self.link = 0, ""
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        environ = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "YBS_CONTEXT__MAX_TOKENS": "32768",
            "YBS_PROVIDER": "openai",
            "YBS_ENDPOINT": self.server.url,
            "YBS_MODEL": "scripted",
            "OPENAI_API_KEY": "k",
        }
        command = str(Path(sys.executable).parent / "ybs")
        self._process = subprocess.Popen(
            [command, *self._command, str(self.port), *self._words],
            cwd=self.project,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.link = self._process.stdout.readline().strip()
        assert self.link, self._process.communicate()
        self.port = int(self.link.split(":")[2].split("/")[0])

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """End the process; return its exit code and what it said."""
        process, self._process = self._process, None
        if process is None:
            return 0, ""
        process.send_signal(how)
        _, said = process.communicate(timeout=15)
        return process.returncode, said


@contextmanager
def web(
    script: Sequence[Any], project: Path, home: Path, *words: str, **kind: bool
) -> Iterator[Web]:
    """Run `ybs web`, or another command that has the page (`serves`, `chats`), on a scripted server."""
    with serving(script) as server:
        made = Web(server, project, home, *words, **kind)
        try:
            yield made
        finally:
            made.end()
            server.resume()


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the browser, or skip."""
    if CHROMIUM is None:
        pytest.skip("NOT TESTED: chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Its own sandbox needs what containers do not allow; it sees pages of this test alone.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Look:
    """A page that somebody looks at, and what its console complained of."""

    def __init__(self, browser: Any, size: tuple[int, int] = WIDE, **options: Any) -> None:
        viewport = {"width": size[0], "height": size[1]}
        self.context = browser.new_context(viewport=viewport, **options)
        self.context.set_default_timeout(PATIENCE)
        self.complaints: list[str] = []
        self.page = self.tab()

    def tab(self) -> Any:
        page = self.context.new_page()
        page.on("console", lambda said: self._note(said.type, said.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))
        return page

    def _note(self, kind: str, text: str) -> None:
        # A server that is gone and a login that is missing are what some tests are about; the page says so itself.
        if kind == "error" and "Failed to load resource" not in text and "ERR_" not in text:
            self.complaints.append(text)

    def enter(self, web: Web) -> Any:
        """Follow the link, and open a session in the project."""
        self.page.goto(web.link)
        self.page.wait_for_selector("body.ready")
        self.page.keyboard.press("n")
        self.page.click("dialog[open] .choices button")
        until(self.page, "document.querySelector('#mode').options.length > 0")
        return self.page


def until(page: Any, expression: str) -> None:
    """Wait until something holds in the page, whose policy forbids what Playwright's own way of waiting does."""
    for _ in range(PATIENCE // 30):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(30)
    raise AssertionError(f"this never held: {expression}")


def send(page: Any, text: str, key: str = "Enter") -> None:
    page.fill("#prompt", text)
    page.press("#prompt", key)


def answer(page: Any, key: str) -> None:
    """Answer a question by its key, once it may be answered, after a silence."""
    page.wait_for_timeout(450)
    page.wait_for_selector(f".question [data-key='{key}']:not([disabled])")
    page.locator(".question").first.focus()
    page.keyboard.press(key)


def shown(page: Any) -> str:
    """Return what the conversation shows, but for times."""
    script = """() => {
      const copy = document.querySelector('#log').cloneNode(true);
      for (const each of copy.querySelectorAll('.took, .end, .result, .copy')) each.remove();
      return [...copy.children].filter(each => !each.matches('.reply, .note')).map(each => each.textContent.replace(/\\s+/g, ' ').trim()).join('\\n');
    }"""
    return str(page.evaluate(script))


def axe_faults(page: Any) -> list[str]:
    """Return what axe-core finds that is serious or worse."""
    source = (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
    page.evaluate(source)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {each['help']}: {[node['html'][:160] for node in each['nodes'][:3]]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def fill(project: Path) -> None:
    """Put into the project what the script of the states is about."""
    (project / "a.py").write_text('def f() -> int:\n    """Return a number."""\n    return 1\n')
    (project / "old.py").write_text("pass\n")


def states(page: Any, served: Web) -> Iterator[str]:
    """Go through the states of the page that people look at; yield the name of each."""
    yield "welcome"
    page.keyboard.press("n")
    page.wait_for_selector("dialog[open] .choices button")
    yield "new"
    page.click("dialog[open] .choices button")
    until(page, "document.querySelector('#mode').options.length > 0")
    send(page, "Change what f returns, and run it")
    page.wait_for_selector(".question [data-key='y']:not([disabled])")
    yield "question"
    answer(page, "y")
    page.wait_for_selector(".end")
    yield "turn"
    page.click(".call >> nth=0")
    page.locator(".call").nth(1).scroll_into_view_if_needed()
    yield "output"
    send(page, "Be slow")
    page.wait_for_selector(".answer.live")
    yield "streaming"
    send(page, "And this")
    page.wait_for_selector("#waiting li")
    yield "waiting"
    served.server.resume()
    until(page, "document.querySelectorAll('.end').length === 2")
    page.wait_for_selector("#stop", state="hidden")
    page.fill("#prompt", "/mo")
    page.wait_for_selector("#offers li")
    yield "completion"
    page.fill("#prompt", "")
    send(page, "/context")
    page.wait_for_selector(".reply table")
    yield "command"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open] kbd")
    yield "help"
    page.keyboard.press("Escape")
    page.keyboard.press(",")
    page.wait_for_selector("dialog[open] .logins")
    yield "settings"
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    page.wait_for_selector("#board figure")
    yield "board"


SCRIPT = (
    said(thought("I look at the file first."), "I read it first.", call("read_file", path="a.py")),
    call("edit_file", path="a.py", old_text="return 1", new_text="return 2"),
    call("delete_file", path="old.py"),
    said(
        "Done:\n\n1. `f` returns **2** now\n2. `old.py` is gone\n\n```python\ndef f() -> int:\n    return 2  # was 1\n```\n\n| file | change |\n|---|---|\n| a.py | +1 -1 |\n\n> Nothing else was touched."
    ),
    Interrupted(how="stall", answer="This takes a while. " * 6, after_frames=8),
    "I have read it.",
)
