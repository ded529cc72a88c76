"""Completion: what is offered where, what is written for it, and what is never drawn."""

import os
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.completion import CompleteEvent, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.utils import get_cwidth
from stage import staged

from fake_session import Cue, FakeSession, says
from hosts import this_host
from ybs.commands.open import SlashCommands
from ybs.frontends.terminal.prompt.completion import YbsCompleter
from ybs.frontends.terminal.prompt.paste import Pastes
from ybs.security.paths.roots import Roots
from ybs.session.mentions import mentions_in
from ybs.session.session import Session

TYPED = CompleteEvent(text_inserted=True)
TAB = CompleteEvent(completion_requested=True)


class Narrow(DummyOutput):
    def get_size(self) -> Size:
        return Size(rows=20, columns=40)


@pytest.fixture
def session(project: Path) -> Session:
    for name in ("src/cart.py", "src/cart_test.py", "a b.txt", "spaced dir/x.py", "README.md"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("")
    return Session.open(
        project,
        provider="openai",
        endpoint="http://127.0.0.1:9",
        model="m",
        sandbox=False,
        commands=SlashCommands(),
    )


@pytest.fixture
def completer(session: Session) -> YbsCompleter:
    return YbsCompleter(session)


async def offered(
    completer: YbsCompleter, text: str, event: CompleteEvent = TYPED
) -> list[Completion]:
    found = completer.get_completions_async(Document(text), event)
    return [completion async for completion in found]


async def written(completer: YbsCompleter, text: str, event: CompleteEvent = TYPED) -> list[str]:
    """Return the whole text of the prompt for each completion."""
    return [
        text[: len(text) + c.start_position] + c.text for c in await offered(completer, text, event)
    ]


@pytest.mark.integration
async def test_a_path_is_completed_in_the_words(completer: YbsCompleter):
    cases = {
        "see @cart": ["see @src/cart.py ", "see @src/cart_test.py "],
        "(@READ": ["(@README.md "],
        "one\n@READ": ["one\n@README.md "],
        "@spaced": ['@"spaced dir/', '@"spaced dir/x.py" '],
        '@"spaced dir/': ['@"spaced dir/x.py" '],
        '@"a b': ['@"a b.txt" '],
        "@src/": ["@src/cart.py ", "@src/cart_test.py "],
        "/tmp/shot.png @READ": ["/tmp/shot.png @README.md "],
        "@sr": ["@src/"],
        "@": ['@"spaced dir/', "@src/", '@"a b.txt" ', "@README.md "],
    }
    wrong = {
        text: found
        for text, wanted in cases.items()
        if (found := await written(completer, text))[: len(wanted)] != wanted
    }
    assert wrong == {}


async def test_nothing_pops_up_elsewhere(completer: YbsCompleter):
    texts = ("", "hello", "me@cart", "@cart and", "x /mode", "one\n/mo", "!cat @cart", "!cat ca")
    popped = [text for text in texts if await offered(completer, text)]
    assert popped == []


async def test_paths_of_a_shell_line_come_on_tab(completer: YbsCompleter):
    assert (await written(completer, "!cat ca", TAB))[0] == "!cat src/cart.py"
    assert (await written(completer, "!cat <a", TAB))[:2] == ["!cat <'a b.txt'", "!cat <README.md"]
    assert "!cat 'a b.txt'" in await written(completer, "!cat a", TAB)


async def test_names_that_would_break_a_shell_line_are_not_offered_there(completer, project):
    for name in ("odd\nline", "odd\x1b[2Jesc", "odd plain"):
        (project / name).write_text("")
    assert await written(completer, "!cat odd", TAB) == ["!cat 'odd plain'"]


async def test_within_quotes_only_names_are_offered_that_a_shell_takes_as_they_stand(
    completer, project
):
    (project / "cart;touch x.md").touch()
    for line in ('!!git commit -m "see cart', "!echo 'see cart", "!cat $(echo cart"):
        found = await written(completer, line, TAB)
        assert f"{line.removesuffix('cart')}src/cart.py" in found
        assert not any("touch" in each for each in found)
    assert "!cat 'cart;touch x.md'" in await written(completer, "!cat cart", TAB)


async def test_a_quote_counts_wherever_it_was_opened_in_a_shell_line(session, project):
    (project / "design$(id>..").mkdir()
    (project / "design$(id>../witness).md").touch()
    pastes = Pastes()
    pasted = pastes.fold('"pasted', "")
    completer = YbsCompleter(session, pastes.expand)
    for begun in (
        '!!git commit -m "Add new\nsee ',
        f'!!git commit -m "Add new {"and more words " * 40}see ',
        '  !git commit -m "see ',
        f"!!git commit -m {pasted} see ",
    ):
        assert not any("$" in each for each in await written(completer, f"{begun}desmd", TAB))
        assert f"{begun}src/cart.py" in await written(completer, f"{begun}cart", TAB)
    closed = '!!git commit -m "Add\nnew" '
    assert f"{closed}'design$(id>../witness).md'" in await written(completer, f"{closed}desmd", TAB)


async def test_no_mention_is_offered_in_what_is_sent_as_a_shell_line(completer):
    assert await written(completer, " !cat @cart") == []


async def test_commands_come_with_arguments_and_what_they_do(completer: YbsCompleter):
    rows = await offered(completer, "/")
    assert {row.display_text.split(" ")[0] for row in rows} >= {"/help", "/mode", "/clear", "/quit"}
    assert all(row.display_meta_text for row in rows)
    assert (await written(completer, "/mod"))[0] == "/model "
    assert (await written(completer, "/clea"))[0] == "/clear"
    assert "/exit" in await written(completer, "/EX")
    begins_so = [text.startswith("/co") for text in await written(completer, "/co")]
    assert begins_so == sorted(begins_so, reverse=True)
    assert set(begins_so) == {True, False}
    assert await written(completer, "/etc/ho") == []
    assert await written(completer, "/nosuch x") == []


async def test_arguments_come_where_a_command_knows_them(completer, monkeypatch):
    from ybs.commands import table

    def choices(_session: Session) -> list[str]:
        return ["auto", "ask", "plan", "\x1b[2J"]

    async def run(*_: Any) -> Any:
        raise AssertionError

    command = table.SlashCommand(("mode",), "[NAME]", "change it", run, choices=choices)

    def listed(_self: SlashCommands, _session: Session) -> list[Any]:
        return [command]

    monkeypatch.setattr(SlashCommands, "listed", listed)
    assert await written(completer, "/mode ") == ["/mode auto", "/mode ask", "/mode plan"]
    assert await written(completer, "/mode A") == ["/mode auto", "/mode ask", "/mode plan"]
    assert await written(completer, "/mode plan") == []


async def test_odd_names_are_drawn_harmless_and_written_so_that_they_are_found(completer, project):
    names = ["odd\nline", "odd\x1b[2Jesc", "odd\u202etxt", os.fsdecode(b"odd\xff"), 'odd"q', "odd,"]
    names += ["odd" + "x" * 200]
    for name in names:
        (project / name).write_text("")
    narrow: Application[None] = Application(output=Narrow())
    with set_app(narrow):
        rows = await offered(completer, "@odd")
    assert len(rows) == len(names)
    assert [row for row in rows if not (row.text + row.display_text).isprintable()] == []
    assert [row for row in rows if get_cwidth(row.display_text) > 39] == []
    roots = Roots(this_host(), project)
    meant = {roots.resolve(next(mentions_in(row.text))[0].path) for row in rows}
    assert meant == {project / name for name in names}


async def test_a_new_session_has_its_own_files(completer: YbsCompleter, session: Session):
    first = completer.index
    assert completer.index is first
    await session.start_anew(is_incognito=True)
    assert completer.index is not first


class Here(FakeSession):
    """Plays a script in the folders of a real session."""

    def __init__(self, real: Session, *script: Cue) -> None:
        super().__init__(*script)
        self.environment = real.environment


@pytest.mark.integration
async def test_the_keys_choose_and_a_folder_leads_on(session: Session):
    fake = Here(session, says("ok"))
    async with staged(fake) as stage:
        draft = stage.terminal.window.draft

        def offers(text: str, *, behind: str) -> bool:
            state = draft.complete_state
            if state is None or state.original_document.text != behind:
                return False
            return text in [one.text for one in state.completions]

        stage.keys("@sr")
        await stage.until(lambda: offers("@src/", behind="@sr"))
        stage.keys("\t")
        await stage.until(lambda: draft.text == "@src/")
        stage.keys("\r")
        await stage.until(lambda: offers("@src/cart.py ", behind="@src/"))
        stage.keys("\t")
        await stage.until(lambda: draft.text == "@src/cart.py ")
        stage.keys("\r")
        await stage.until(lambda: draft.complete_state is None)
        assert fake.lines == []
        stage.keys("\r")
        await stage.sees("1.2k in")
    assert fake.lines == ["@src/cart.py"]
