"""Menus: what is drawn, what is found, what is sent."""

import asyncio

import pytest
from prompt_toolkit.keys import Keys
from stage import Stage, staged

from fake_session import FakeSession, asks, hangs, question_of, says
from ybs.commands.models import offer_plan
from ybs.frontends.terminal.questions.picker import Picker
from ybs.frontends.terminal.signs import ASCII, UNICODE, Paint, Signs
from ybs.frontends.terminal.words import cells
from ybs.session.reply import Menu, MenuItem, Reply, TerminalActions

PLAIN = Paint(has_colour=False)
DOWN, UP = "\x1b[B", "\x1b[A"


def menu_of(*names: str, current: str = "", detail: str = "") -> Menu:
    items = (MenuItem(f"/model {n}", n, detail, is_current=n == current) for n in names)
    return Menu("Choose a model", tuple(items))


MODELS = menu_of("qwen3:14b", "mistral-small", "claude-haiku", current="mistral-small")
MANY = menu_of(*(f"model-{number}" for number in range(100)))


def drawn(picker: Picker, width: int = 60, height: int = 24, signs: Signs = UNICODE) -> list[str]:
    lines = picker.lines(width, height, PLAIN, signs)
    return [
        line.replace("\x1b[1m", "").replace("\x1b[22m", "").replace("\x1b[2m", "") for line in lines
    ]


def labels(picker: Picker) -> list[str]:
    return [item.label for item in picker.items]


def test_the_mark_begins_at_the_current_item_and_both_have_a_sign() -> None:
    assert drawn(Picker(MODELS)) == [
        "Choose a model",
        "    1 qwen3:14b",
        "› • 2 mistral-small",
        "    3 claude-haiku",
        "  type to filter, Enter chooses, Esc closes",
    ]
    assert drawn(Picker(MODELS), signs=ASCII)[2] == "> * 2 mistral-small"


def test_a_question_is_read_whole_and_cut_only_where_it_would_fill_the_screen() -> None:
    asked = "Forward a port? " + "Every program of this machine can then reach it. " * 2
    picker = Picker(Menu(asked, MODELS.items))
    title = drawn(picker, 64)[:-4]
    assert " ".join(title) == asked.strip()
    assert len(title) in (2, 3)
    assert max(map(cells, title)) <= 64
    picker.press("y", "y")
    assert drawn(picker, 64)[: len(title)] == [*title[:-1], f"{title[-1]}: y"]
    picker = Picker(Menu(asked * 9, MODELS.items))
    assert drawn(picker)[3].endswith("…")
    assert drawn(picker)[4].endswith("qwen3:14b")


def test_a_long_menu_scrolls_and_says_where_one_is() -> None:
    picker = Picker(MANY)
    assert len(drawn(picker)) == 12
    for key, place in ((Keys.PageDown, 10), (Keys.Down, 11), (Keys.ControlP, 10), (Keys.End, 99)):
        picker.press(key, "")
        assert picker.place == place
        assert f"›   {place + 1:>3} model-{place}" in drawn(picker)
    assert drawn(picker)[-1] == "  91-100 of 100. type to filter, Enter chooses, Esc closes"
    picker.press(Keys.Down, "")
    assert picker.place == 99
    picker.press(Keys.PageUp, "")
    picker.press(Keys.Home, "")
    picker.press(Keys.Up, "")
    assert picker.place == 0


def test_typing_filters_words_first_then_letters_in_their_order() -> None:
    picker = Picker(menu_of("sonnet", "mistral-small", "small-mistral", detail="32k window"))
    found = {
        "small": ["mistral-small", "small-mistral"],
        "SMALL mis": ["mistral-small", "small-mistral"],
        "mtrl": ["mistral-small", "small-mistral"],
        "32k": ["sonnet", "mistral-small", "small-mistral"],
        "ms": ["mistral-small", "small-mistral"],
        "xyz": [],
    }
    for query, names in found.items():
        picker.filter("")
        for letter in query:
            picker.press(letter, letter)
        assert labels(picker) == names, query
    assert "  no match; Backspace deletes the last letter" in drawn(picker)
    assert picker.chosen is None
    picker.press(Keys.Down, "")
    picker.press(Keys.ControlU, "")
    picker.press(Keys.BracketedPaste, "son\nnet\x1b")
    assert picker.query == "son net␛"
    picker.press(Keys.Backspace, "")
    assert labels(picker) == ["sonnet"]
    picker.press(Keys.F1, "\x1bOP")
    assert picker.query == "son net"


def test_a_number_chooses_its_item_before_all_that_hold_it() -> None:
    picker = Picker(menu_of("qwen3:14b", "three", "other", "model-4"))
    for typed, names in (("3", ["other", "qwen3:14b"]), ("4", ["model-4", "qwen3:14b"])):
        picker.filter(typed)
        assert labels(picker) == names
        assert picker.chosen is not None
        assert picker.chosen.label == names[0]
    picker.filter("14")  # there are not so many
    assert labels(picker) == ["qwen3:14b"]
    assert drawn(picker)[1] == "›   1 qwen3:14b"  # its number stays
    unnumbered = Picker(Menu("x", MODELS.items, is_numbered=False))
    assert drawn(unnumbered)[1] == "    [1] qwen3:14b"
    unnumbered.press("3", "3")
    assert labels(unnumbered) == [item.label for item in MODELS.items]
    assert unnumbered.answer("3") is unnumbered.items[2]
    assert not unnumbered.answer("9")


def test_no_line_is_wider_or_higher_than_the_terminal() -> None:
    long = menu_of("a-model-with-quite-a-long-name:70b-instruct", "日本語" * 9, detail="wide " * 20)
    for menu in (long, MANY, MODELS):
        for width in (12, 20, 39, 79):
            picker = Picker(menu)
            picker.filter("a")
            for height in (8, 12, 24):
                lines = drawn(picker, width, height)
                assert all(cells(line) <= width for line in lines), (width, lines)
                assert len(lines) <= max(3, height - 4)


def test_a_long_label_leaves_room_for_what_tells_it_from_the_next() -> None:
    menu = menu_of(
        "The same title in the " + "same words " * 4, "short", detail="3 days ago, 4 messages"
    )
    _, first, second, _ = drawn(Picker(menu), 72)
    assert first == "›   1 The same title in the same words same wor…  3 days ago, 4 messages"
    assert second.endswith("2 short" + " " * 39 + "3 days ago, 4 messages")
    narrow = drawn(Picker(menu), 40)
    assert narrow[1] == "›   1 The same title in the same words…", (
        "a name that can be read comes first"
    )


def test_what_a_server_calls_its_models_acts_on_nothing() -> None:
    text = "\n".join(drawn(Picker(menu_of("evil\x1b[2J\nname\u202e", detail="x\x07"))))
    assert "\x07" not in text
    assert "\x1b" not in text
    assert "evil␛[2J name<U+202E>" in text


def picking(*script: object, menu: Menu = MODELS) -> FakeSession:
    session = FakeSession(*script)  # type: ignore[arg-type] # cues
    session.replies["/model"] = Reply(text="the same as text", menu=menu)
    return session


async def opened(stage: Stage) -> None:
    stage.keys("/model\r")
    await stage.sees("Choose a model")


@pytest.mark.integration
async def test_enter_sends_the_line_of_the_item_as_if_it_were_typed() -> None:
    session = picking()
    async with staged(session) as stage:
        await opened(stage)
        assert "the same as text" not in stage.screen
        stage.keys(DOWN)
        await stage.sees("›   3 claude-haiku")
        stage.keys("qw")
        await stage.sees("›   1 qwen3:14b")
        stage.clock.now += 1
        stage.keys("\r")
        await stage.sees("answer to /model qwen3:14b")
        assert session.lines == ["/model", "/model qwen3:14b"]
        assert "› /model qwen3:14b" in stage.screen
        assert "Choose a model" not in stage.screen
        stage.keys("free again")
        await stage.sees("› free again")


@pytest.mark.integration
@pytest.mark.parametrize("key", ["\x1b", "\x03"])
async def test_a_menu_closes_without_a_trace(key: str) -> None:
    session = picking()
    async with staged(session) as stage:
        await opened(stage)
        stage.keys("zzz\r")  # nothing matches: Enter does nothing
        await stage.sees("no match")
        stage.keys(key)
        await stage.until(lambda: "Choose a model" not in stage.screen)
        await stage.settles()
        assert session.lines == ["/model"]
        assert stage.terminal.window.app.is_running
        assert stage.terminal.window.draft.text == ""


@pytest.mark.integration
async def test_who_was_typing_when_a_menu_came_keeps_the_words_and_chooses_nothing() -> None:
    session = picking()
    async with staged(session) as stage:
        stage.keys("next I wa")
        await stage.sees("next I wa")
        stage.terminal.work.submit("/model")
        await stage.sees("Choose a model")
        stage.keys("nt\r")
        await stage.settles()
        assert session.lines == ["/model"]
        assert stage.terminal.window.draft.text == "next I want"
        stage.clock.now += 1
        stage.keys("\r")
        await stage.sees("press the arrows and Enter")
        assert session.lines == ["/model"]
        stage.keys(f"{UP}{UP}{UP}{DOWN}")
        stage.clock.now += 1
        stage.keys("\r")
        await stage.sees("answer to /model mistral-small")
        await stage.sees("› next I want")


@pytest.mark.integration
async def test_an_enter_too_many_chooses_nothing() -> None:
    session = picking()
    async with staged(session) as stage:
        await opened(stage)
        stage.keys("\r")
        await stage.settles()
        assert session.lines == ["/model"]
        stage.clock.now += 1
        stage.keys("\r")
        await stage.sees("answer to /model mistral-small")


@pytest.mark.integration
async def test_a_question_comes_before_a_menu_and_the_menu_is_there_again() -> None:
    go = asyncio.Event()

    async def later(session: FakeSession) -> None:
        await go.wait()
        await asks(question_of())(session)

    session = picking(later)
    async with staged(session, prompt="go") as stage:
        await stage.until(lambda: session.is_busy)
        await opened(stage)
        go.set()
        await stage.sees("[y] yes")
        assert not stage.terminal.picking.is_open
        stage.clock.now += 1
        stage.keys("y")
        await stage.until(lambda: session.answers)
        await stage.until(lambda: stage.terminal.picking.is_open)
        await stage.sees("› • 2 mistral-small")


@pytest.mark.integration
async def test_a_menu_without_items_is_its_text_and_a_draft_goes_into_the_prompt() -> None:
    session = picking(says("x"), menu=Menu("Nothing", ()))
    session.replies["/rewind"] = Reply(
        text="Back there.", terminal=TerminalActions(draft="fix\nthe cart")
    )
    async with staged(session) as stage:
        stage.keys("/model\r")
        await stage.sees("the same as text")
        assert not stage.terminal.picking.is_open
        stage.keys("\x1b\x1b")
        await stage.sees("Back there.")
        assert session.lines == ["/model", "/rewind"]
        assert stage.terminal.window.draft.text == "fix\nthe cart"


@pytest.mark.integration
async def test_a_menu_of_prompts_that_is_closed_again_leaves_nothing_behind() -> None:
    session = FakeSession()
    items = (MenuItem("/rewind 1 of 1", "fix the cart"),)
    session.replies["/rewind"] = Reply(text="x", menu=Menu("Go back", items))
    ways = (MenuItem("/rewind 1 of 1 both", "conversation and files"),)
    session.replies["/rewind 1 of 1"] = Reply(text="y", menu=Menu("Back", ways))
    session.replies["/rewind 1 of 1 both"] = Reply(text="Went back.")
    async with staged(session) as stage:
        stage.keys("\x1b\x1b")
        await stage.sees("fix the cart")
        stage.keys("\x1b")
        await stage.until(lambda: not stage.terminal.picking.is_open)
        await stage.settles()
        assert "/rewind" not in stage.screen
        await stage.until(lambda: not stage.terminal.work.is_busy)
        stage.terminal.work.choose("/rewind 1 of 1")
        await stage.sees("conversation and files")
        assert "› /rewind" not in stage.screen
        await stage.until(lambda: not stage.terminal.work.is_busy)
        stage.terminal.work.choose("/rewind 1 of 1 both")
        await stage.sees("Went back.")
        assert "› /rewind 1 of 1 both" in stage.screen


@pytest.mark.integration
@pytest.mark.parametrize("size", [(40, 12), (20, 6), (80, 24)])
async def test_a_menu_fits_any_screen(size: tuple[int, int]) -> None:
    async with staged(picking(menu=MANY), columns=size[0], rows=size[1]) as stage:
        stage.keys("/model\r")
        await stage.until(lambda: stage.terminal.picking.is_open)
        stage.keys(DOWN + DOWN)
        await stage.sees("›     3 model-2")
        assert "too small" not in stage.screen


@pytest.mark.integration
async def test_keys_that_come_fast_choose_what_they_name() -> None:
    for keys in ("1\r", "qwen\r"):
        session = picking()
        async with staged(session) as stage:
            await opened(stage)
            stage.keys(keys)  # in one burst, and at once
            await stage.sees("answer to /model qwen")


@pytest.mark.integration
async def test_a_line_that_was_sent_before_the_menu_came_is_for_the_menu() -> None:
    for ahead in ("1", "qwen"):
        session = picking()
        async with staged(session) as stage:
            stage.terminal.work.submit("/model")
            stage.terminal.work.submit(ahead)
            await stage.sees("answer to /model qwen")
            assert ahead not in session.lines


@pytest.mark.integration
@pytest.mark.parametrize("keys", [f"/model\r{DOWN}\r", f"/mode\r{UP}{UP}qwen\r"])
async def test_a_command_its_menu_and_the_choice_are_typed_in_one_burst(keys: str) -> None:
    session = picking()
    session.replies["/mode"] = session.replies["/model"]
    async with staged(session) as stage:
        stage.keys(keys)
        await stage.until(lambda: len(session.lines) == 2)
        wanted = "claude-haiku" if DOWN in keys else "qwen3:14b"
        assert session.lines[1] == f"/model {wanted}"
        assert stage.terminal.window.draft.text == ""


@pytest.mark.integration
async def test_what_is_typed_behind_a_choice_is_for_the_prompt() -> None:
    session = picking()
    async with staged(session) as stage:
        stage.keys(f"/model\r{DOWN}\rfix the cart")
        await stage.sees("answer to /model claude-haiku")
        await stage.until(lambda: stage.terminal.window.draft.text == "fix the cart")


@pytest.mark.integration
async def test_arrows_for_a_menu_that_does_not_come_are_forgotten() -> None:
    session = picking(menu=Menu("Nothing", ()))
    async with staged(session, history=None) as stage:
        stage.keys("earlier\r")
        await stage.until(lambda: session.lines == ["earlier"] and not stage.terminal.work.is_busy)
        stage.keys(f"/model\r{UP}\r")
        await stage.sees("the same as text")
        await stage.until(lambda: not stage.terminal.work.is_busy)
        stage.keys("x")
        await stage.until(lambda: stage.terminal.window.draft.text == "x")
        assert session.lines == ["earlier", "/model"]


@pytest.mark.integration
async def test_the_menu_of_a_command_beside_a_turn_takes_fast_keys_too() -> None:
    session = picking(hangs)
    async with staged(session, prompt="go") as stage:
        await stage.until(lambda: session.is_busy)
        stage.keys(f"/model\r{DOWN}\r")
        await stage.until(lambda: stage.terminal.work.has_more)
        assert stage.terminal.live.queued == ["/model claude-haiku"]
        stage.keys("\x1b")


@pytest.mark.integration
async def test_the_first_offer_is_taken_for_the_beginning_of_a_name() -> None:
    session = picking()
    async with staged(session) as stage:
        stage.keys(f"/mod\r{DOWN}\r")
        await stage.sees("answer to /model claude-haiku")
        assert session.lines == ["/model", "/model claude-haiku"]


@pytest.mark.integration
async def test_what_was_typed_before_the_menu_came_and_names_an_item_filters_it() -> None:
    session = picking()
    async with staged(session) as stage:
        stage.keys("qwe")
        await stage.sees("› qwe")
        stage.terminal.work.submit("/model")
        await stage.sees("Choose a model: qwe")
        assert stage.terminal.window.draft.text == ""
        stage.keys("\r")
        await stage.settles()
        assert session.lines == ["/model"], "an Enter alone is not yet for it"
        stage.clock.now += 1
        stage.keys("\r")
        await stage.sees("answer to /model qwen")


async def test_a_prompt_that_was_sent_before_the_menu_came_stays_a_prompt() -> None:
    session = picking(says("here"))
    async with staged(session) as stage:
        stage.terminal.work.submit("/model")
        stage.terminal.work.submit("fix the cart")
        await stage.until(lambda: "fix the cart" in session.lines)


#: The menus that ask for consent: of a plan, of a port, of the sandbox. Of the last two the second answer is the yes.
CONSENTS = {
    "/plan": offer_plan(),
    "/ports 8123": Reply(
        menu=Menu(
            "Forward port 8123?",
            (MenuItem("/ports", "no"), MenuItem("/ports 8123 open", "yes, forward it")),
            is_numbered=False,
        )
    ),
    "/sandbox off": Reply(
        menu=Menu(
            "Turn the sandbox off?",
            (
                MenuItem("/sandbox", "no, keep it"),
                MenuItem("/sandbox off now", "yes, without the sandbox"),
            ),
            is_numbered=False,
        )
    ),
}


def consent(command: str) -> tuple[FakeSession, str]:
    session, reply = FakeSession(), CONSENTS[command]
    session.replies[command] = reply
    assert reply.menu is not None
    return session, reply.menu.title


@pytest.mark.integration
@pytest.mark.parametrize("command", CONSENTS)
@pytest.mark.parametrize("words", ["wait, also the docs", "\x1b[200~wait\x1b[201~", "x"])
async def test_an_enter_behind_words_is_no_consent_and_the_words_are_kept_whole(
    command: str, words: str
) -> None:
    session, title = consent(command)
    async with staged(session) as stage:
        stage.terminal.work.submit(command)
        await stage.sees(title)
        stage.clock.now += 1
        stage.keys(words)
        await stage.settles()
        stage.clock.now += 1
        stage.keys("\r")
        await stage.sees("the arrows and Enter")
        stage.clock.now += 1
        stage.keys("\r")
        await stage.settles()
        assert session.lines == [command], "the menu still stands"
        kept = stage.terminal.window.draft.text
        assert ("still in your prompt: wait" in stage.screen) is kept.startswith("wait")
        assert kept == {"x": "", "\x1b[200~wait\x1b[201~": "wait"}.get(words, words)
        stage.keys("\x1b[B\x1b[A")  # who marks an answer means it
        stage.clock.now += 1
        stage.keys("\r")
        await stage.until(lambda: len(session.lines) == 2)


@pytest.mark.integration
@pytest.mark.parametrize("command", CONSENTS)
@pytest.mark.parametrize("words", ["", DOWN, "no, wait: "])
async def test_an_enter_behind_what_came_before_the_question_was_read_is_no_consent(
    command: str, words: str
) -> None:
    session, title = consent(command)
    async with staged(session) as stage:
        stage.terminal.work.submit(command)
        await stage.sees(title)
        for key in [words] if words == DOWN else words:
            stage.keys(key)  # each alone, all before the moment is over
            await stage.settles()
        stage.clock.now += 0.45
        stage.keys("\r")
        await stage.sees("the arrows and Enter")
        stage.clock.now += 1
        stage.keys("4" * bool(words.strip() and words != DOWN))  # one more of the words
        await stage.settles()
        stage.clock.now += 1
        stage.keys("\r")
        await stage.settles()
        assert session.lines == [command]
        assert stage.terminal.picking.is_open
        assert stage.terminal.window.draft.text == (f"{words}4" if words[:1] == "n" else "")


@pytest.mark.integration
async def test_keys_for_a_list_that_does_not_come_answer_no_question() -> None:
    session = FakeSession()
    session.replies["/model"] = offer_plan()  # as when a plan ends before the list is there
    async with staged(session) as stage:
        stage.keys(f"/model\r{DOWN}\r")
        await stage.sees("Go ahead with this plan?")
        await stage.settles()
        assert session.lines == ["/model"]
        assert "› " not in stage.screen.partition("Go ahead with this plan?")[2]


@pytest.mark.integration
@pytest.mark.parametrize("command", CONSENTS)
@pytest.mark.parametrize("ahead", ["1", "2", "y", "yes", "yes, forward it", "n"])
async def test_what_was_typed_ahead_answers_no_menu_of_consent(command: str, ahead: str) -> None:
    session, title = consent(command)
    async with staged(session) as stage:
        stage.keys(ahead)  # it stands in the prompt when the menu comes
        await stage.sees(f"› {ahead}")
        stage.terminal.work.submit(command)
        await stage.sees(title)
        assert f"{title}: " not in stage.screen, "nor does it filter"
        stage.keys("\r")
        await stage.settles()
        assert session.lines == [command]
        assert stage.terminal.window.draft.text == ahead
    session, title = consent(command)
    async with staged(session) as stage:  # it was sent before the menu came
        stage.terminal.work.submit(command)
        stage.terminal.work.submit(ahead)
        await stage.sees(title)
        await stage.settles()
        assert [line for line in session.lines if line not in (command, ahead)] == []


@pytest.mark.integration
@pytest.mark.parametrize("command", CONSENTS)
@pytest.mark.parametrize("keys", [f"{DOWN}\r", "\r\r", f"{DOWN}{DOWN}\r\r"])
async def test_a_burst_behind_the_command_answers_no_menu_of_consent(
    command: str, keys: str
) -> None:
    session, title = consent(command)
    async with staged(session) as stage:
        stage.keys(f"{command}\r{keys}")
        await stage.sees(title)
        await stage.settles()
        assert session.lines == [command]
        stage.keys("2\r")  # the end of a line that was being typed
        await stage.settles()
        assert session.lines == [command]
