"""/status, /context, /cost and /diff: what a session says of itself."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Raw

from replies import shown
from scripted import OpenAIServer
from ybs.commands.figures import amount, money, number_in, time
from ybs.commands.open import SlashCommands
from ybs.commands.table import COMMANDS
from ybs.commands.usage import UsageShare, measure
from ybs.core.changes import FileChange
from ybs.core.cutting import first_words
from ybs.core.events import ToolFinished as Done
from ybs.core.events import TurnFinished, UserSaid
from ybs.core.messages import (
    AssistantMessage,
    Image,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from ybs.frontends.layout import bar
from ybs.frontends.terminal.signs import fit_encoding
from ybs.frontends.terminal.words import cells
from ybs.providers.tokens import OTHER, PICTURE_TOKENS
from ybs.session import tally as changes
from ybs.session.reply import Reply
from ybs.session.session import Session
from ybs.session.tally import TurnUse
from ybs.testing import RecordedEvents, answer, call

Open = Callable[..., tuple[Session, RecordedEvents]]


@pytest.fixture
def quiet(project: Path) -> Session:
    """A session that sends nothing."""
    return Session.open(
        project,
        commands=SlashCommands(),
        provider="openai",
        endpoint="http://127.0.0.1:9",
        model="m",
        sandbox=False,
    )


async def text_of(session: Session, line: str, *, columns: int = 80) -> str:
    reply = await session.handle(line)
    assert isinstance(reply, Reply)
    assert not reply.is_error, reply.text
    return shown(reply, columns=columns)


def used(words: str, cost: float | None, tokens: int = 1000, model: str = "m") -> TurnUse:
    usage = Usage(input_tokens=tokens, output_tokens=10, cached_tokens=500, cost_usd=cost)
    return TurnUse(words=words, model=model, usage=usage, seconds=3.2)


async def test_an_argument_that_is_none_is_an_error(quiet: Session):
    quiet.conversation.append(UserMessage.of("kept"))
    bare = [name for name, command in COMMANDS.items() if not command.arguments]
    assert {"clear", "tools", "new", "quit"} <= set(bare)
    for line in (*(f"/{name} {name}" for name in bare), "/diff some"):
        reply = await quiet.handle(line)
        assert isinstance(reply, Reply)
        assert (reply.is_error, reply.terminal.wants_quit) == (True, False), line
        assert shown(reply).startswith("Usage: /"), line
    assert len(quiet.conversation.messages) == 1
    assert await quiet.handle("/exit now") == Reply(text="Usage: /quit", is_error=True)


async def test_status_says_where_things_stand(project: Path, home: Path):
    (home / ".ybs.json").write_text('{"nonsense": 1}')
    session = Session.open(
        project,
        commands=SlashCommands(),
        provider="openai",
        endpoint="http://127.0.0.1:9",
        model="m",
        sandbox=False,
        incognito=True,
    )
    usage = Usage(input_tokens=1200, output_tokens=34, cached_tokens=800, cost_usd=0.01234)
    session.usage = usage
    for name in ("objects", "refs"):
        (project / ".git" / name).mkdir(parents=True)
    (project / ".git" / "config").touch()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/topic\n")
    lines = (await text_of(session, "/status")).splitlines()
    assert "  model    127.0.0.1:9 m" in lines
    assert "  window   32,768 tokens, assumed" in lines
    assert "  mode     ask, incognito" in lines
    assert "  sandbox  off (you turned it off)" in lines
    assert f"  folder   {project}" in lines
    assert "  branch   topic" in lines
    assert "  used     1,200 in (800 cached), 34 out, $0.0123" in lines
    assert "  turns    0" in lines
    assert any(line.startswith("  context  about ") for line in lines)
    assert any(line.startswith("  warning  ") and "nonsense" in line for line in lines)
    assert not any("jobs" in line for line in lines)


async def test_a_session_that_costs_nothing_says_nothing_of_money(quiet: Session):
    quiet.usage = Usage(input_tokens=5, cost_usd=0.0)
    assert "$" not in await text_of(quiet, "/status")


@pytest.mark.integration
async def test_the_context_is_what_the_provider_counted_and_its_shares_add_up_to_it(
    open_session: Open,
):
    opening = Usage(input_tokens=6000, output_tokens=20)
    first = answer(call("read_file", path="a.txt"), usage=opening)
    last = answer("fine", usage=Usage(input_tokens=8000, output_tokens=9, cached_tokens=3176))
    async with OpenAIServer([first, last]) as server:
        session, _ = open_session(server)
        async with session:
            (Path(session.status().folder) / "a.txt").write_text("word " * 900)
            await session.send("what is in a.txt?")
            use = measure(session)
            text = await text_of(session, "/context")
            session.conversation.append(UserMessage.of("and now?"))
            later = await text_of(session, "/context")
            more = measure(session)
    counts = (use.tokens, use.cached, use.fresh, use.is_counted)
    assert counts == (8009, 3176, 4824, True)
    assert sum(share.tokens for share in use.shares) == 8009
    shares = {share.name: share for share in use.shares}
    messages = {part.name: part.tokens for part in shares["messages"].parts}
    assert sum(messages.values()) == shares["messages"].tokens
    assert messages["results"] > messages["model"] > messages["yours"] > 0
    assert text.startswith("context 8,009 of 32,768 tokens (24%)\n")
    assert text.endswith(
        "\nlast request: 3.2k cached, 4.8k fresh\n~ estimated; the total is counted"
    )
    assert "documents" not in text
    assert 8009 < more.tokens < 8030, "only what is new is estimated"
    assert later.startswith("context ~8,0")
    assert later.endswith("\n~ estimated; corrected by 2 answers")


@pytest.mark.integration
async def test_an_empty_context_is_an_estimate_and_fits_narrow_terminals(quiet: Session):
    text = await text_of(quiet, "/context", columns=39)
    assert text.startswith("context ~")
    assert "messages" not in text
    for size in (1, 10_000, 4_000_000):
        quiet.conversation.append(UserMessage.of("x" * size))
        assert (
            max(len(line) for line in (await text_of(quiet, "/context", columns=39)).splitlines())
            <= 38
        )
    assert fit_encoding(text, "ascii").isascii()
    assert "unknown" not in fit_encoding(text, "ascii")


async def test_every_voice_and_picture_is_counted(quiet: Session):
    await quiet.prepare()
    picture = Image(media_type="image/png", data=b"x" * 1_000_000)
    prose = [f"word number {number} of the text " * 20 for number in range(5)]
    say = quiet.conversation.append
    say(UserMessage(content=(Text(text=prose[0]), Text(text=prose[1]), picture)))
    say(AssistantMessage(content=(Text(text="m"), ToolCall(id="c", name="read_file"))))
    say(ToolResult(call_id="c", name="read_file", output=prose[2], images=(picture,)))
    say(UserMessage.of(prose[3], origin="shell"))
    say(UserMessage.of(prose[4], origin="guard"))
    say(UserMessage(content=(Text(text="s"), Text(text="kept " * 40)), origin="summary"))
    use = measure(quiet)
    count = quiet.agent.window.counter.meter.count
    text = round(count(prose[0]))  # the others differ in a digit
    assert 100 < text < 160
    edge, result = round(OTHER.per_message), round(OTHER.per_result)
    kept = round(count("kept " * 40))
    expected = {
        "yours": text + edge + kept,
        "attached": text + PICTURE_TOKENS,
        "commands": text + edge,
        "model": 1 + round(count("read_file")) + 1 + 14 + edge,
        "results": text + PICTURE_TOKENS + result + edge,
        "reminders": text + edge,
        "summary": 1 + edge,
    }
    system, tools, documents, repo_map, messages = use.shares
    assert documents.tokens == repo_map.tokens == 0
    assert [part.name for part in messages.parts] == list(expected)
    for part in messages.parts:
        assert abs(part.tokens - expected[part.name]) <= 2, part
    assert system.tokens > 100 < tools.tokens
    assert messages == UsageShare(
        name="messages", tokens=sum(part.tokens for part in messages.parts), parts=messages.parts
    )
    assert system.tokens + tools.tokens + messages.tokens == use.tokens == quiet.estimated_tokens()


async def test_cost_has_a_row_for_each_turn_and_a_sum(quiet: Session):
    assert await text_of(quiet, "/cost") == "No tokens were used yet."
    quiet.turns = [used("one\x1b", 0.01), used("two " * 50, 0.04), used("three", None, model="n")]
    lines = (await text_of(quiet, "/cost")).splitlines()
    assert lines[1].strip() == "m"
    assert lines[2] == "  1 █▎    $0.0100  1.0k   500    10 3.2s  one␛"
    assert lines[3].startswith("  2 █████ $0.0400")
    assert lines[4].strip() == "n"
    assert lines[5].split()[:2] == ["3", "unknown"]
    assert lines[6].split()[:4] == ["$0.0500", "3.0k", "1.5k", "30"]
    assert lines[-1] == "Unknown costs are not in the sum."


async def test_a_long_session_shows_its_last_turns_and_sums_up_the_others(quiet: Session):
    quiet.turns = [used(f"turn {number}", 0.01) for number in range(1, 101)]
    lines = (await text_of(quiet, "/cost")).splitlines()
    assert len(lines) == 1 + 1 + 20 + 1
    assert lines[1].endswith("turns 1 to 80")
    assert lines[1].split()[0] == "$0.80"
    assert lines[2].startswith(" 81 ")
    assert lines[-1].split()[0] == "$1.00"


async def test_where_there_is_no_room_the_words_stand_above_the_numbers(quiet: Session):
    words = ("日本語" * 20, "two " * 50, "three")
    quiet.turns = [used(each, 12.34, 123_456, model="a/very-long-name:" * 9) for each in words] * 9
    lines = (await text_of(quiet, "/cost", columns=39)).splitlines()
    assert [line for line in lines if cells(line) > 38] == []
    assert lines[3].startswith("  8 two two")
    assert lines[4] == "█████  $12.34  123k   500    10 3.2s"


async def test_without_prices_cost_counts_tokens(quiet: Session):
    quiet.turns = [used("one", None), used("stopped", None, 0), used("two", None, 3000)]
    text = await text_of(quiet, "/cost")
    assert "$" not in text
    assert "unknown" not in text
    assert text.endswith("The price of this model is not known, so the bars show tokens.")
    quiet.turns = [used("one", 0.0)]
    assert (await text_of(quiet, "/cost")).endswith(
        "These models are free, so the bars show tokens."
    )


def test_figures_stay_short():
    counts = (0, 999, 1000, 99_949, 99_950, 999_499, 999_500, 12_345_678)
    assert [amount(count) for count in counts] == [
        *("0", "999", "1.0k", "100k", "100k", "999k", "1.0M", "12M")
    ]
    assert [money(usd) for usd in (0, 0.00001, 0.0123, 0.5, 12)] == [
        *("$0", "<$.0001", "$0.0123", "$0.50", "$12.00")
    ]
    times = [time(seconds) for seconds in (0, 9.94, 9.96, 99.4, 99.6, 7200, 360_000)]
    assert times == ["0.0s", "9.9s", "10s", "99s", "2m", "2h", "100h"]
    assert [bar(share, 2) for share in (0, 0.001, 0.5, 1, 7)] == ["", "▏", "█", "██", "██"]
    assert first_words("a\n b" + "c" * 50, 6) == "a…"
    assert [number_in(text) for text in ("7", "0", "-1", "²", "12345", "")] == [7, 0, 0, 0, 0, 0]


def changed(
    path: str = "a.py", before: str | None = "x\n", after: str | None = "y\n", added: int = 1
) -> Done:
    change = FileChange(path=path, before=before, after=after, added=added, removed=1)
    return Done(id="c", name="edit_file", success=True, output="", changes=(change,))


DIFF = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x\n+y"
GONE = "--- old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-z"
NEW = "--- /dev/null\n+++ b.py\n@@ -0,0 +1 @@\n+n"


async def test_diff_shows_the_last_turn_that_changed_files_or_all(quiet: Session):
    assert await text_of(quiet, "/diff") == "No file was changed in this session."
    end = TurnFinished(reason="done")
    for event in (changed("b.py", None, "n\n"), end):
        quiet.emit(event)
    for event in (changed(added=2), changed(), changed("old.py", "z\n", None)):
        quiet.emit(event)
    quiet.emit(end)
    quiet.emit(
        Done(id="c", name="read_file", success=True, output="", display=Raw(b'{"diff":"x"}'))
    )
    quiet.emit(end)
    reply = await quiet.handle("/diff")
    assert isinstance(reply, Reply)
    assert reply.diff == f"{DIFF}\n{DIFF}\n{GONE}"
    assert shown(reply).splitlines()[1:] == ["  a.py  +3 -2, 2 changes", "  old.py  deleted"]
    whole = await quiet.handle("/diff ALL")
    assert isinstance(whole, Reply)
    assert whole.diff == f"{NEW}\n{DIFF}\n{DIFF}\n{GONE}"
    assert "  b.py  +1 -1" in whole.text
    quiet.history.clear()
    assert (await quiet.handle("/diff")) == reply, "files stay changed when words are forgotten"


async def test_diff_says_that_commands_may_have_changed_more(quiet: Session):
    quiet.emit(Done(id="c", name="run_shell", success=False, is_refused=True, output=""))
    assert "git diff" not in await text_of(quiet, "/diff")
    quiet.emit(Done(id="c", name="run_shell", success=False, output=""))
    assert "git diff" in await text_of(quiet, "/diff")
    quiet.emit(changed())
    quiet.emit(TurnFinished(reason="done"))
    quiet.emit(UserSaid(content="", origin="shell"))
    quiet.emit(TurnFinished(reason="done"))
    text = await text_of(quiet, "/diff")
    assert "a.py" in text
    assert "git diff" in text


async def test_what_is_remembered_of_changes_is_bounded(
    quiet: Session, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(changes, "MOST_CHARS", 2 * len("x\ny\n"))
    for number in range(5):
        quiet.emit(changed(f"{number}.py"))
    reply = await quiet.handle("/diff")
    assert isinstance(reply, Reply)
    assert reply.diff.count("+++") == 2
    assert "  0.py  +1 -1" in shown(reply)
    assert "0.py: the difference is no longer stored" in reply.diff


async def test_files_without_lines_to_show_are_named(quiet: Session):
    quiet.emit(Done(id="c", name="x", success=True, output="", display=Raw(b'["diff"]')))
    assert await text_of(quiet, "/diff") == "No file was changed in this session."
    binary = FileChange(path="b.bin", before="", after="", omitted="binary file, 1 -> 2 bytes")
    quiet.emit(Done(id="c", name="x", success=True, output="", changes=(binary,)))
    assert "  b.bin  +0 -0" in await text_of(quiet, "/diff")
    assert (await quiet.handle("/diff")).diff == "b.bin: binary file, 1 -> 2 bytes"


@pytest.mark.integration
async def test_a_real_turn_leaves_its_changes(project: Path, open_session: Open):
    (project / "a.py").write_text("x = 1\n")
    script = [
        call("read_file", path="a.py"),
        call("edit_file", path="a.py", old_text="x = 1", new_text="x = 2"),
        call("delete_file", path="a.py"),
        "Done.",
    ]
    async with OpenAIServer(script) as server:
        session, _ = open_session(server, mode="bypass")
        async with session:
            await session.send("change it")
            reply = await session.handle("/diff")
    assert isinstance(reply, Reply)
    assert "-x = 1" in reply.diff
    assert shown(reply).splitlines() == ["The last turn that changed files:", "  deleted a.py"]
