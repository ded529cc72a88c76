"""CLI agents as models: what they are given, what is made of what they print, and what goes wrong with them."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import cli_lines as lines
import msgspec
import pytest
from cli_stand_in import HAS_MEMORY, StandIn, collect

from rows import every_row
from ybs.config.host import Host, is_in_memory
from ybs.config.schema import Config, IncognitoSettings, LlmSettings
from ybs.config.sections import CliAgent, CliOutput, Endpoint
from ybs.core.errors import AuthError, ModelError, ProviderDown, RateLimited
from ybs.core.events import AssistantSaid, Noticed, TextStreamed
from ybs.core.messages import AssistantMessage, Image, Text, ToolResult, Usage, UserMessage
from ybs.core.ports import Request, ToolSpec
from ybs.providers.cli.model import CliModel
from ybs.providers.http.failures import NotServed, Unavailable
from ybs.providers.registry import create_model, find_provider

pytestmark = pytest.mark.integration

LOOK = ToolSpec(
    name="look",
    description="Look at something.",
    parameters=msgspec.Raw(b'{"type":"object","properties":{"at":{"type":"string"}}}'),
)
CALL = 'I look.\n\n```json\n{"name": "look", "arguments": {"at": "x"}}\n```'
PRINTED = {
    "claude": lines.claude,
    "codex": lines.codex,
    "gemini": lines.gemini,
    "pi": lines.pi,
}


def message_in(events: list[Any]) -> AssistantMessage:
    assert isinstance(events[-1], AssistantSaid)
    return events[-1].message


@pytest.mark.parametrize("output", ["claude", "codex", "gemini", "pi", "text"])
async def test_each_format_is_read_to_the_same_answer(output: CliOutput, stand_in: Any, asked: Any):
    words = "Grüße 🦀, wie\ngeht es?"
    script = [words.encode().decode("latin-1")] if output == "text" else PRINTED[output](words)
    stand_in.plays(script)
    events = await asked(stand_in.model(output))
    message = message_in(events)
    assert message.text == words
    assert "".join(each.text for each in events if isinstance(each, TextStreamed)) == words
    assert message.model == "m"
    assert message.stop_reason == "end"
    expected = {
        "claude": Usage(input_tokens=15, output_tokens=5, cached_tokens=3, cache_write_tokens=2, cost_usd=0.000105),
        "codex": Usage(input_tokens=30, output_tokens=7, cached_tokens=10),
        "gemini": Usage(input_tokens=30, output_tokens=7, cached_tokens=10),
        "pi": Usage(input_tokens=30, output_tokens=7, cached_tokens=10, cache_write_tokens=5, cost_usd=0.002),
        "text": Usage(),
    }  # fmt: skip
    assert message.usage == expected[output]


async def test_the_program_gets_an_empty_folder_few_variables_and_no_tools(stand_in, asked):
    stand_in.plays(lines.claude("hello"))
    model = stand_in.model()
    events = await asked(model)
    (told,) = [each.text for each in events if isinstance(each, Noticed)]
    assert "outside the sandbox, in an empty folder of its own" in told
    (run,) = stand_in.runs
    assert run["listing"] == []
    folder = Path(run["cwd"])
    assert (await asyncio.to_thread(folder.stat)).st_mode & 0o777 == 0o700
    assert run["env"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9"
    assert run["env"]["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"  # no title is asked for
    assert run["env"]["CLAUDE_CODE_DISABLE_ATTACHMENTS"] == "1"  # an `@path` in data is no file
    assert not {"OPENAI_API_KEY", "CLAUDECODE", "SOME_TOKEN"} & set(run["env"])
    argv = run["argv"]
    assert argv[argv.index("--tools") + 1] == ""
    assert argv[argv.index("--model") + 1] == "m"
    assert run["system"] == "Be brief."
    assert run["mode"] == 0o600
    file = Path(argv[argv.index("--system-prompt-file") + 1])
    assert not await asyncio.to_thread(file.exists)
    assert "Be brief." not in argv
    sent = msgspec.json.decode(run["stdin"])
    assert sent["message"]["content"] == [{"type": "text", "text": "hi"}]
    await model.aclose()
    assert not await asyncio.to_thread(folder.exists)
    await asked(model)  # it may be used again
    assert stand_in.runs[1]["listing"] == []


async def test_tools_are_told_and_called_as_text_and_the_session_goes_on(stand_in: Any, asked: Any):
    stand_in.plays(
        lines.claude(*CALL), lines.claude("It is red."), lines.claude("Bye.", session="s-2")
    )
    model = stand_in.model()
    first = Request("Be brief.", [UserMessage.of("look at x")], [LOOK])
    events = await asked(model, first)
    message = message_in(events)
    (call,) = message.calls
    assert (call.name, bytes(call.arguments)) == ("look", b'{"at":"x"}')
    shown = "".join(each.text for each in events if isinstance(each, TextStreamed))
    assert shown.strip() == "I look."
    result = ToolResult(call_id=call.id, name="look", output="red")
    said = [*first.messages, message, result]
    await asked(model, Request("Be brief.", said, [LOOK]))
    begun, resumed = stand_in.runs
    assert "- look(at?)" in begun["system"]
    assert "--resume" not in begun["argv"]
    assert resumed["argv"][resumed["argv"].index("--resume") + 1] == "s-1"
    assert "Result of look:\\nred" in resumed["stdin"]
    assert "look at x" not in resumed["stdin"]
    other = [UserMessage.of("something else")]  # the conversation was cut, so it does not go on
    await asked(model, Request("Be brief.", other, [LOOK]))
    assert "--resume" not in stand_in.runs[2]["argv"]


async def test_a_session_that_is_gone_is_begun_anew_with_all_that_was_said(stand_in, asked):
    gone = lines.claude_failing("No conversation found with session ID: s-1", "")[2:]
    stand_in.plays(lines.claude("one"), [*gone, {"exit": 1}], lines.claude("two"))
    model = stand_in.model()
    message = message_in(await asked(model))
    messages = [UserMessage.of("hi"), message, UserMessage.of("and now?")]
    assert message_in(await asked(model, Request("Be brief.", messages))).text == "two"
    whole = msgspec.json.decode(stand_in.runs[2]["stdin"])["message"]["content"][0]["text"]
    order = [whole.index(each) for each in ("## user\n\nhi", "## assistant\n\none", "and now?")]
    assert order == sorted(order)


async def test_incognito_keeps_no_session(stand_in: Any, asked: Any):
    stand_in.plays(lines.claude("one"))
    model = stand_in.model(
        config=Config(llm=LlmSettings(timeout_seconds=8), incognito=IncognitoSettings(enabled=True))
    )
    message = message_in(await asked(model))
    await asked(
        model, Request("Be brief.", [UserMessage.of("hi"), message, UserMessage.of("more")])
    )
    for run in stand_in.runs:
        assert "--no-session-persistence" in run["argv"]
        assert "--resume" not in run["argv"]
        file = Path(run["argv"][run["argv"].index("--system-prompt-file") + 1])
        assert is_in_memory(str(file)) is HAS_MEMORY
        assert (run["system"], run["mode"]) == ("Be brief.", 0o600)
    await model.aclose()
    assert not file.parent.exists()


async def test_pictures_go_to_those_that_see_them(stand_in: Any, asked: Any):
    picture = Image(media_type="image/png", data=b"\x89PNG")
    request = Request("", [UserMessage.of("what is it?", picture)])
    stand_in.plays(lines.claude("a picture"))
    await asked(stand_in.model(), request)
    sent = msgspec.json.decode(stand_in.runs[0]["stdin"])["message"]["content"]
    assert [each["type"] for each in sent] == ["text", "image"]
    stand_in.plays(["text"])
    await asked(stand_in.model("text"), request)
    assert "[A picture (image/png) was left out" in stand_in.runs[1]["stdin"]


async def test_who_pays_with_a_subscription_is_told_no_price(stand_in: Any, asked: Any):
    stand_in.plays(lines.claude("hello", key="none"))
    assert message_in(await asked(stand_in.model())).usage.cost_usd is None


FAILURES: list[tuple[CliOutput, list[Any], type[ModelError], str]] = [
    ("claude", lines.claude_failing("Not logged in · Please run /login", "authentication_failed"), AuthError, "is not logged in"),
    ("claude", lines.claude_failing("Overloaded", "server_error", 529), Unavailable, "cannot answer now (529): Overloaded"),
    ("claude", lines.claude_failing("Claude usage limit reached", "rate_limit"), RateLimited, "usage limit"),
    ("claude", lines.claude_failing("Credit balance is too low", "billing_error"), NotServed, "no credit left"),
    ("claude", [{"stderr": "error: unknown option '--tools'\n"}, {"exit": 1}], ProviderDown, "unknown option"),
    ("claude", [*lines.claude("half", "an answer")[:5], {"exit": 137}], ProviderDown, "exit code 137"),
    ("claude", [*lines.claude("half", "an answer")[:5], '{"type":"stream_e'], ProviderDown, "not whole"),
    ("claude", [*lines.claude("whole", result="another text")], ProviderDown, "pieces of its answer are missing"),
    ("claude", [], ProviderDown, "gave no whole answer"),
    ("codex", [*lines.codex()[:2], lines.as_line({"type": "error", "message": "stream disconnected"}),
               lines.as_line({"type": "turn.failed", "error": {"message": "no such model"}})], ProviderDown, "no such model"),
    ("codex", [lines.as_line({"type": "error", "message": "Reconnecting... 5/5"}), {"exit": 1}], ProviderDown, "Reconnecting"),
    ("gemini", [lines.as_line({"type": "result", "status": "error", "error": {"type": "x", "message": "Quota exceeded"}})], RateLimited, "Quota exceeded"),
    ("pi", [lines.as_line({"type": "message_end", "message": {"role": "assistant", "stopReason": "error", "errorMessage": "401 not logged in"}}),
            lines.as_line({"type": "agent_end"})], AuthError, "not logged in"),
    ("pi", [*lines.pi("one ", "two")[:5], *lines.pi("one ", "two")[6:]], ProviderDown, "pieces of its answer are missing"),
    ("text", ["half an answer", {"stderr": "boom\x1b[31m\n"}, {"exit": 3}], ProviderDown, "(exit code 3): boom [31m"),
    ("text", ["x" * 10, {"huge": 17}], ProviderDown, "longer than 16 MB"),
]  # fmt: skip


@every_row("output, script, kind, said", FAILURES)
@pytest.mark.timeout(60)  # it starts 16 programs
async def test_what_goes_wrong_is_one_clear_error(output, script, kind, said, tmp_path):
    stand_in = StandIn(Path(mkdtemp(dir=tmp_path)))
    stand_in.plays(script)
    model = stand_in.model(output)
    with pytest.raises(kind) as caught:
        await collect(model)
    assert said in str(caught.value)
    assert str(caught.value).isprintable()
    await model.aclose()


async def test_noise_and_half_characters_are_no_reason_to_give_up(stand_in: Any, asked: Any):
    script = lines.claude("Grü", "ße")
    script[3:3] = [
        "\n",
        "npm warn old\n",
        "\x1b[?1004l" + lines.as_line({"type": "unknown"}),
        "[1]\n",
        "\xff\xfe\n",
    ]
    script = [
        each.replace("\xc3\x9f", "\xff") for each in script
    ]  # half of a character, in all that is said
    stand_in.plays(script)
    assert message_in(await asked(stand_in.model())).text == "Grü\ufffde"


async def test_bytes_may_be_cut_anywhere(stand_in: Any, asked: Any):
    whole = "".join(lines.claude("Grüße 🦀"))
    stand_in.plays([whole[at : at + 7] for at in range(0, len(whole), 7)])
    assert message_in(await asked(stand_in.model())).text == "Grüße 🦀"


def is_gone(pid: int) -> bool:
    """Return whether a process has ended, its zombie not counted."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for another process, which nobody tells about."""
    while not is_so():  # noqa: ASYNC110 - it is another process
        await asyncio.sleep(0.005)


async def test_cancelling_kills_the_program_and_what_it_started(stand_in: Any):
    stand_in.plays([*lines.claude("half", "more")[:6], {"child": 1}, {"sleep": 1000}])
    model = stand_in.model()
    begun = asyncio.Event()

    async def ask() -> None:
        async with aclosing(model.stream(Request("", [UserMessage.of("hi")]))) as events:
            async for event in events:
                if isinstance(event, TextStreamed):
                    begun.set()

    task = asyncio.create_task(ask())
    await begun.wait()
    note = stand_in.folder / "child"
    await until(lambda: note.exists() and bool(note.read_text()))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: is_gone(int(note.read_text())))
    stand_in.plays(lines.claude("back"))
    assert message_in(await collect(model)).text == "back"


async def test_what_lives_on_with_the_pipes_of_a_program_holds_up_nobody(stand_in, asked):
    stand_in.plays([*lines.claude("whole"), {"stray": 1}], [{"stray": 1}, {"sleep": 1000}])
    model = stand_in.model(config=Config(llm=LlmSettings(timeout_seconds=1)))
    note = stand_in.folder / "child"
    try:
        assert message_in(await asyncio.wait_for(asked(model), 8)).text == "whole"
        os.kill(int(note.read_text()), signal.SIGKILL)
        with pytest.raises(ProviderDown, match="nothing came for 1 s"):
            await asyncio.wait_for(asked(model), 8)
    finally:
        os.kill(int(note.read_text()), signal.SIGKILL)


async def test_a_program_that_falls_silent_is_ended_with_an_error(stand_in: Any, asked: Any):
    stand_in.plays([*lines.claude("half")[:4], {"sleep": 1000}])
    model = stand_in.model(config=Config(llm=LlmSettings(timeout_seconds=0.3)))
    with pytest.raises(ProviderDown, match=r"nothing came for 0\.3 s, so it was ended"):
        await asked(model)


async def test_an_answer_counts_although_its_program_does_not_end(stand_in, asked, monkeypatch):
    monkeypatch.setattr("ybs.providers.cli.model._ENDING_SECONDS", 0.05)
    stand_in.plays([*lines.claude("whole"), {"sleep": 1000}])
    assert message_in(await asked(stand_in.model())).text == "whole"


async def test_a_program_that_is_not_installed_says_how_it_is(asked: Any, tmp_path: Path):
    host = Host.of({"HOME": str(tmp_path), "PATH": str(tmp_path)})
    model = create_model(host, Config(llm=LlmSettings(provider="claude-cli")))
    with pytest.raises(NotServed, match="claude of claude-cli is not installed") as caught:
        await asked(model)
    assert "npm install -g @anthropic-ai/claude-code" in caught.value.remedies[0].value
    assert (model.name, model.window) == ("sonnet", 200_000)
    assert await model.list_models() == ["haiku", "sonnet", "opus"]
    await model.aclose()


async def test_a_program_is_a_provider_by_configuration_alone(stand_in: Any, asked: Any):
    stand_in.plays(["It ", "works."])
    agent = CliAgent(command=(str(stand_in.program), "{model}", "--quiet"), window=9_000)
    config = Config(llm=LlmSettings(provider="mine", model="m1"), cli_agents={"mine": agent})
    host = Host.of(dict(os.environ))
    model = create_model(host, config)
    assert (model.name, model.window, model.max_tokens) == ("m1", 9_000, 2_250)
    message = message_in(await asked(model, Request("Be brief.", [UserMessage.of("hi")])))
    await model.aclose()
    assert message.content == (Text(text="It works."),)
    (run,) = stand_in.runs
    assert run["argv"] == ["m1", "--quiet"]
    assert run["stdin"] == "Be brief.\n\nhi"
    taken = Config(cli_agents={"mine": agent}, providers={"mine": Endpoint(endpoint="http://h")})
    found = find_provider("mine", taken)  # a server of that name does not take its place
    assert found.is_installed
    assert found.is_installed(host)
    missing = CliAgent(command=("/nowhere/agent",))
    found = find_provider("mine", Config(cli_agents={"mine": missing}))
    assert found.is_installed
    assert not found.is_installed(host)


async def test_the_line_of_the_docs_for_codex_works_with_a_launcher_that_passes_no_descriptor_on(
    tmp_path: Path,
):
    """As npm's does: it starts the program itself as a child, with the three usual streams and no others."""
    page = (Path(__file__).parents[3] / "docs" / "providers.md").read_text(encoding="utf-8")
    line = page.partition('"codex": {\n')[2].partition('"command": ')[2].partition("],")[0]
    command = tuple(msgspec.json.decode(f"{line}]".encode()))
    (tmp_path / "answer").write_text("".join(lines.codex("hello")))
    (tmp_path / "real").write_text(
        "#!/bin/sh\nfor word; do case $word in model_instructions_file=*) file=${word#*=};; esac; done\n"
        f'file=${{file#\\"}}; cat "${{file%\\"}}" > "{tmp_path}/system"; cat "{tmp_path}/answer"\n'
    )
    (tmp_path / "codex").write_text(
        "#!/bin/sh\n"
        + "".join(f"exec {number}>&- {number}<&-\n" for number in range(3, 10))
        + f'"{tmp_path}/real" "$@" &\nwait $!\n'
    )
    for name in ("real", "codex"):
        (tmp_path / name).chmod(0o755)
    host = Host.of({"HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    agent = CliAgent(command=command, output="codex")
    model = CliModel(host, Config(llm=LlmSettings(timeout_seconds=8)), "codex", agent, "m", "")
    events = await collect(model)
    await model.aclose()
    (said,) = [each.message for each in events if isinstance(each, AssistantSaid)]
    assert said.text == "hello"
    assert (tmp_path / "system").read_text() == "Be brief."
