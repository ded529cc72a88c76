"""The tools that come with ybs: each does what it says, on real input."""

import json
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hosts import this_host
from tools.external.programs import playing
from trusting import put
from ybs.frontends.subcommands.tools import install, names
from ybs.ready_tools import git_status, run_tests, web_fetch, web_search
from ybs.tools.web import WebPage

HTML = """<html><head><title>T</title><style>p {color: red}</style></head><body>
<h1>Carts</h1><p>Two <a href="/wheels">wheels</a> &amp; more.</p><script>alert(1)</script>
<ul><li>one</li><li>two</li></ul></body></html>"""


def page(text: str, kind: str = "text/html") -> WebPage:
    return WebPage(
        url="https://site.example/", content_type=kind, data=text.encode(), encoding="utf-8"
    )


def fetching(monkeypatch: pytest.MonkeyPatch, module: ModuleType, answer: WebPage) -> list[Any]:
    asked: list[Any] = []

    def fetch(url: str, **more: Any) -> WebPage:
        asked.append((url, more))
        return answer

    monkeypatch.setattr(module, "fetch", fetch)
    return asked


@pytest.mark.integration
def test_a_page_becomes_markdown(monkeypatch: pytest.MonkeyPatch):
    fetching(monkeypatch, web_fetch, page(HTML))
    said = web_fetch.web_fetch("https://site.example/")
    assert said.startswith("[https://site.example/]\n")
    for part in ("# Carts", "Two [wheels](/wheels) & more.", "* one\n* two"):
        assert part in said
    assert "alert" not in said
    assert "color" not in said


def test_without_the_library_its_words_are_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "markdownify", None)
    said = web_fetch.markdown(HTML)
    assert "Carts" in said
    assert "alert" not in said
    assert "color" not in said


def test_a_long_page_is_read_in_parts(monkeypatch: pytest.MonkeyPatch):
    fetching(monkeypatch, web_fetch, page("word " * 20_000, "text/plain"))
    assert "[go on with start=40000 of 100000 characters]" in web_fetch.web_fetch("https://x")
    assert "[go on" not in web_fetch.web_fetch("https://x", 80_000)


def test_what_is_no_text_is_said(monkeypatch: pytest.MonkeyPatch):
    fetching(monkeypatch, web_fetch, page("\x00", "image/png"))
    with pytest.raises(ValueError, match="image/png, which is not text"):
        web_fetch.web_fetch("https://site.example/")


def test_searxng_is_asked_where_it_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SEARXNG_URL", "http://127.0.0.1:8888/")
    results = [{"title": f"T{n}", "url": f"https://x/{n}", "content": "words"} for n in range(9)]
    asked = fetching(monkeypatch, web_search, page(json.dumps({"results": results})))
    found = web_search.web_search("carts", max_results=2)
    assert found == {"results": [{"title": f"T{n}", "url": f"https://x/{n}", "snippet": "words"} for n in range(2)]}  # fmt: skip
    ((url, more),) = asked
    assert url == "http://127.0.0.1:8888/search"
    assert more["is_trusted"]


def test_brave_gets_its_key_in_a_header(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SEARXNG_URL", raising=False)
    monkeypatch.setenv("BRAVE_API_KEY", "k" * 8)
    results = [{"title": "T", "url": "https://x", "description": "words"}]
    asked = fetching(monkeypatch, web_search, page(json.dumps({"web": {"results": results}})))
    assert web_search.web_search("carts")["results"][0]["snippet"] == "words"
    assert asked[0][1]["headers"]["X-Subscription-Token"] == "k" * 8


def test_duckduckgos_page_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SEARXNG_URL", raising=False)
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    html = """<div class="result"><h2><a rel="nofollow" class="result__a"
     href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fsite.example%2Fa&amp;rut=1">A <b>cart</b></a></h2>
     <a class="result__snippet" href="x">Two  <b>wheels</b></a></div>
     <div class="result"><a class="result__a" href="https://other.example/">Other</a></div>"""
    fetching(monkeypatch, web_search, page(html))
    assert web_search.web_search("carts")["results"] == [
        {"title": "A cart", "url": "https://site.example/a", "snippet": "Two wheels"},
        {"title": "Other", "url": "https://other.example/", "snippet": ""},
    ]


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"Cargo.toml": ""}, ("cargo", "test", "it")),
        ({"go.mod": ""}, ("go", "test", "./...", "-run", "it")),
        ({"package.json": '{"scripts": {"test": "jest"}}', "yarn.lock": ""}, ("yarn", "test", "--", "it")),
        ({"package.json": '{"scripts": {"test": "jest"}}'}, ("npm", "test", "--", "it")),
        ({"package.json": "{broken", "Makefile": "all:\n\ntest:\n\ttrue\n"}, ("make", "test")),
        ({"pom.xml": ""}, ("mvn", "-q", "test")),
    ],
)  # fmt: skip
def test_the_framework_is_found_by_the_files(files: dict[str, str], command: Any, project: Path):
    for name, text in files.items():
        put(project, name, text)
    assert tuple(run_tests.command_in(project, "it")) == command


def test_where_there_is_none_that_is_said(project: Path):
    with pytest.raises(LookupError, match="no test framework is known here"):
        run_tests.command_in(project, "")


@pytest.mark.integration
def test_the_git_state_runs_no_filter_of_the_repository(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(project)
    (project / "f.bin").write_text("a")
    (project / ".gitattributes").write_text("*.bin filter=x\n*.txt filter=a=b.c\n")
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@x")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "x")):
        subprocess.run((*git, *words), check=True)
    for name in ("x", "a=b.c"):
        for key, value in (("clean", "touch owned; cat"), ("process", "touch owned"), ("required", "true")):  # fmt: skip
            subprocess.run((*git, "config", f"filter.{name}.{key}", value), check=True)
    (project / "f.bin").write_text("b")
    (project / "f.txt").write_text("b")
    subprocess.run(("git", "add", "-N", "f.txt"), check=False, capture_output=True)
    (project / "owned").unlink(missing_ok=True)
    told = git_status.git_status(5)
    assert " M f.bin" in told
    assert (
        "f.bin | 2 +-" in told
    )  # of f.txt it depends on when git noticed that the filter had ended
    assert not (project / "owned").exists()


@pytest.mark.integration
async def test_they_are_installed_and_work_in_a_session(project: Path, home: Path, capsys: pytest.CaptureFixture[str]):  # fmt: skip
    del home
    assert install(this_host(), None) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("git_status: Report the git state")
    for name in ("git-status", "run_tests"):
        assert install(this_host(), name) == 0
    assert install(this_host(), "no-such") == 2
    put(project, "test_it.py", "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1, 2)\n")  # fmt: skip
    for words in (["init", "-q", "-b", "main"], ["add", "."]):
        subprocess.run(["git", *words], cwd=project, check=True)  # noqa: ASYNC221 - a moment
    async with playing(project, "auto") as played:
        assert played.names == ["git_status", "run_tests"]
        told = await played.run("git_status")
        assert "## No commits yet on main" in told.output
        ran = await played.run("run_tests")
        found = json.loads(ran.output)
        assert (found["passed"], found["exit_code"]) == (False, 1)
        assert "AssertionError: 1 != 2" in found["result"]
        assert len(played.questions) == 1


def test_a_changed_one_is_not_overwritten(home: Path, capsys: pytest.CaptureFixture[str]):
    file = put(home, ".config/ybs/tools/web_fetch.py", "mine")
    assert install(this_host(), "web_fetch") == 1
    assert "is there already, and is not overwritten" in capsys.readouterr().err
    assert file.read_text() == "mine"


def test_the_examples_folder_has_them():
    shown = Path(__file__).parents[3] / "examples/tools"
    assert sorted(file.stem for file in shown.glob("[a-z]*.py")) == names()
