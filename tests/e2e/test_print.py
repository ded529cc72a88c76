"""The real command without a terminal, with a scripted server behind it."""

import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from random import Random
from string import ascii_letters, digits
from typing import Any

import msgspec
import pytest

from scripted import Interrupted, OpenAIServer
from serving import serving
from trusting import put
from ybs.testing import answer, call

pytestmark = pytest.mark.integration

Run = Callable[..., subprocess.CompletedProcess[str]]
YBS = str(Path(sys.executable).with_name("ybs"))
#: What somebody else wrote, with commands and files in all their forms.
ISSUE = (
    "crash: 'x; touch pwned' !`touch pwned` @~/notes.txt\n```!\ntouch pwned\n```\n$(touch pwned)"
)


@pytest.fixture
def servers() -> list[OpenAIServer]:
    return []


@pytest.fixture
def serve(project: Path, servers: list[OpenAIServer]) -> Iterator[Callable[..., list[str]]]:
    """Return a function that starts a server and gives the command that talks to it."""
    with ExitStack() as stack:

        def served(*script: Any) -> list[str]:
            server = stack.enter_context(serving(script))
            servers.append(server)
            return [YBS, "--endpoint", server.url, "-m", "scripted"]

        yield served


def run(command: Sequence[str], *, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=9, **given)


def test_the_answer_is_on_standard_output_alone(serve: Callable[..., list[str]]) -> None:
    done = run([*serve("It is **done**."), "--print", "go"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "It is **done**.\n", "")


def test_piped_text_reaches_the_model(serve, servers):
    done = run([*serve("ok"), "explain"], stdin="E  boom\n")
    assert done.returncode == 0
    ((request,),) = (server.requests for server in servers)
    assert "explain\n\n<stdin>\nE  boom\n</stdin>" in request.body["messages"][-1]["content"]


def test_a_command_of_the_persons_own_is_sent_from_a_script(serve, servers, home):
    put(home, ".config/ybs/commands/review.md", "---\nallowed-tools: Bash\n---\nReview $1.")
    ybs = serve("It is fine.")
    done = run([*ybs, "--print", "/review cart.py"], stdin="piped")
    assert (done.returncode, done.stdout) == (0, "It is fine.\n"), done.stderr
    said = str(servers[0].requests[-1].body["messages"][-1]["content"])
    assert "Review cart.py." in said
    refused = run([*ybs, "--print", "/reviews"])
    assert refused.returncode == 2
    assert "Unknown command: /reviews" in refused.stderr


def test_nothing_in_a_skill_or_its_words_is_a_command(serve, servers, home, project):
    put(home, "notes.txt", "my diary")
    text = "---\nname: vat\ndescription: Knows.\n---\n!`touch pwned` @~/notes.txt for $ARGUMENTS"
    put(home, ".config/ybs/skills/vat/SKILL.md", text)
    done = run([*serve("ok"), "--print", f"/skill vat {ISSUE} $ARGUMENTS"])
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    said = str(servers[0].requests[-1].body["messages"])
    assert "$(touch pwned) $ARGUMENTS" in said
    assert "diary" not in said
    assert not list(project.rglob("*pwned*"))


@pytest.mark.parametrize("options", ["", "--mode plan", "--mode deny", "--no-sandbox", "--mode bypass --no-sandbox"])  # fmt: skip
def test_arguments_from_a_script_are_data(
    serve: Callable[..., list[str]], servers: list[OpenAIServer], home: Path, project: Path, options: str
) -> None:  # fmt: skip
    put(home, "notes.txt", "my diary")
    put(home, ".config/ybs/commands/issue.md", "Fix this: $ARGUMENTS")
    put(home, ".config/ybs/commands/short.md", "Fix it.")
    ybs = serve("Done.", "Done.")
    for name in ("issue", "short"):
        words = [*options.split(), "--print", f"/{name} {ISSUE}"]
        done = run([*ybs, *words], stdin="!`touch pwned`\n@~/notes.txt\n")
        assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
        said = str(servers[0].requests[-1].body["messages"])
        assert "!`touch pwned` @~/notes.txt" in said
        assert "diary" not in said
    assert not [*project.rglob("*pwned*"), *home.glob("pwned")]


@pytest.mark.parametrize(("options", "code"), [("", 5), ("--mode plan", 5), ("--mode deny", 5), ("--no-sandbox", 5), ("--allow run_shell(touch*)", 0)])  # fmt: skip
def test_a_command_of_a_template_needs_the_same_leave_as_one_of_the_model(
    serve: Callable[..., list[str]], servers: list[OpenAIServer], home: Path, project: Path, options: str, code: int
) -> None:  # fmt: skip
    put(home, ".config/ybs/commands/make.md", "Made:\n```!\ntouch made\n```\n")
    done = run([*serve("Done."), *options.split(), "--print", "/make"])
    assert done.returncode == code, done.stderr
    assert (project / "made").exists() == (code == 0)
    assert len(servers[0].requests) == (code == 0)
    if code:
        assert "`touch made` of the template was not run" in done.stderr


def test_a_commit_message_attaches_nothing(serve, servers, home, project):
    put(home, "notes.txt", "my diary")
    put(home, ".config/ybs/commands/last.md", "Last: !`git log -1 --format=%B`")
    ybs = serve("Done.")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "See @~/notes.txt and !`touch pwned`")):  # fmt: skip
        subprocess.run([*git, *words], cwd=project, check=True, timeout=9)
    done = run([*ybs, "--allow", "run_shell(git log *)", "--print", "/last"])
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    said = str(servers[0].requests[-1].body["messages"])
    assert "See @~/notes.txt and !`touch pwned`" in said
    assert "diary" not in said
    assert not list(project.rglob("*pwned*"))


def test_a_skill_is_used_from_a_script(serve, servers, home):
    text = "---\nname: vat\ndescription: Knows the tax.\n---\nAdd 19 percent."
    put(home, ".config/ybs/skills/vat/SKILL.md", text)
    ybs = serve("It is 119.", "It is 119.")
    for way in ("/skill vat to 100", "/vat to 100"):
        done = run([*ybs, "--print", way])
        assert (done.returncode, done.stdout) == (0, "It is 119.\n"), done.stderr
        said = str(servers[0].requests[-1].body["messages"][-1]["content"])
        assert "Add 19 percent." in said
        assert "to 100" in said
    missing = run([*ybs, "--print", "/skill nosuch"])
    assert missing.returncode == 1
    assert "There is no skill 'nosuch'. There are: vat" in missing.stderr
    unknown = run([*ybs, "--print", "/mcp__demo__greet Bob"])
    assert unknown.returncode == 1
    assert "Unknown command: /mcp__demo__greet" in unknown.stderr


def test_binary_input_is_refused_before_anything_is_sent(serve: Callable[..., list[str]]) -> None:
    done = run([*serve(), "explain"], stdin="a\0b")
    assert done.returncode == 2
    assert "binary" in done.stderr


def test_an_answer_that_fits_its_schema_is_all_that_is_printed(serve, project):
    (project / "s.json").write_text('{"type": "object", "required": ["n"]}')
    wanted = ["-P", "--output-schema", "s.json", "go"]
    good = run([*serve('```json\n{"n": 3}\n```'), "--output-format", "json", *wanted])
    result = msgspec.json.decode(good.stdout)
    assert (good.returncode, result["result"]) == (0, '{"n": 3}')
    assert result["structured_output"] == {"n": 3}
    bad = run([*serve("one", "two", "three"), *wanted])
    assert (bad.returncode, bad.stdout) == (4, "")
    assert "does not fit the output schema after 3 tries: it is not JSON" in bad.stderr


@pytest.mark.slow
def test_an_allowed_call_runs(serve: Callable[..., list[str]], project: Path) -> None:
    command = serve(call("run_shell", command="touch made"), "did it")
    done = run([*command, "-P", "--allow", "run_shell(touch *)", "go"])
    assert (done.returncode, done.stderr) == (0, "")
    assert (project / "made").exists()


@pytest.mark.slow
def test_stream_json_is_valid_line_by_line(serve: Callable[..., list[str]]) -> None:
    done = run(
        [*serve(call("list_files", path="."), "ok"), "-P", "--output-format", "stream-json", "go"]
    )
    lines = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert lines[0]["type"] == "session_start"
    assert lines[-1]["type"] == "result"
    assert lines[-1]["result"] == "ok"
    assert all(line["v"] == 1 and line["timestamp"].endswith("Z") for line in lines)
    assert {"tool_call", "tool_result", "assistant", "turn_end"} <= {line["type"] for line in lines}


@pytest.mark.slow
def test_a_limit_is_six(serve: Callable[..., list[str]]) -> None:
    command = serve(call("list_files", path="."))
    done = run([*command, "-P", "--max-turns", "1", "go"])
    assert done.returncode == 6
    assert "Stopped after 1 step, the limit for one turn" in done.stderr


@pytest.mark.slow
def test_a_provider_that_is_down_is_seventy_five_without_a_traceback(project, monkeypatch):
    monkeypatch.setenv("YBS_AGENT__RETRY_ATTEMPTS", "0")
    done = run([YBS, "--endpoint", "http://127.0.0.1:9/v1", "-m", "x", "-P", "go"])
    assert done.returncode == 75
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_nothing_configured_is_four_with_one_clear_message(project: Path) -> None:
    done = run([YBS, "-P", "go"])
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert "ybs setup" in done.stderr


@pytest.mark.slow
def test_a_broken_configuration_named_by_the_person_is_three(project: Path) -> None:
    (project / "c.json").write_text("{broken")
    done = run([YBS, "-c", "c.json", "-P", "go"])
    assert done.returncode == 3
    assert "c.json" in done.stderr


@pytest.mark.slow
def test_a_closed_reader_is_quiet(serve: Callable[..., list[str]]) -> None:
    command = serve("word " * 2000)
    shell = " ".join([*command, "-P", "--output-format", "stream-json", "go", "| head -1"])
    done = run(["sh", "-c", shell])
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)],
)
def test_a_signal_ends_a_turn_with_its_code(serve, project, number, code):
    words = ["-P", "--allow", "run_shell", "--output-format", "stream-json", "go"]
    command = [*serve(call("run_shell", command="echo begun; sleep 60")), *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if msgspec.json.decode(line)["type"] == "tool_output":
                break
        child.send_signal(number)
        *_, last = child.stdout.readlines()
        assert child.wait(8) == code
    assert msgspec.json.decode(last)["reason"] == "interrupted"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("closed", "code", "said"),
    [(">/dev/full", 1, "ybs: cannot write: No space left on device\n"), (">&-", 0, "")],
)
@pytest.mark.parametrize("output_format", ["text", "stream-json"])
def test_an_output_that_takes_nothing_is_no_traceback(serve, output_format, closed, code, said):
    words = ["-P", "--output-format", output_format, "go", closed]
    done = run(["sh", "-c", " ".join([*serve("It is done."), *words])])
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.slow
def test_a_needed_confirmation_is_refused_and_five_and_following_its_advice_lets_the_call_run(
    serve: Callable[..., list[str]], project: Path
) -> None:
    (project / "it's").mkdir()
    deletes = call("run_shell", command='rm -r "it\'s"')
    refused = run([*serve(deletes, "could not"), "-P", "go"])
    assert refused.returncode == 5
    assert refused.stdout == "could not\n"
    assert (project / "it's").exists()
    line = next(line for line in refused.stderr.splitlines() if "--allow" in line)
    advice = shlex.split(line.partition("--allow ")[2])[0]
    assert run([*serve(deletes, "did it"), "-P", "--allow", advice, "go"]).returncode == 0
    assert not (project / "it's").exists()


@pytest.mark.parametrize(
    ("output", "mode"), [("text", "ask"), ("json", "auto"), ("stream-json", "deny")]
)
def test_a_secret_that_is_piped_in_goes_masked_and_a_warning_says_so(serve, servers, output, mode):
    secret = "ghp_" + "".join(Random(7).choices(ascii_letters + digits, k=36))
    command = [*serve("looks good"), "--output-format", output, "--mode", mode, "review"]
    done = run(command, stdin=f"+TOKEN={secret}\n")
    assert done.returncode == 0
    ((request,),) = (server.requests for server in servers)
    assert "+TOKEN=[ybs:secret:github-token#1]" in request.body["messages"][-1]["content"]
    assert secret not in done.stdout + done.stderr
    told = done.stdout if output == "stream-json" else done.stderr
    assert "placeholders were sent instead of secrets: github-token in your message" in told


@pytest.mark.parametrize(
    ("pattern", "context", "places"),
    [
        ("ghp_", 2, (20,)),
        ("ghp_", 2, (14, 27)),
        ("MIDDLE", 1, (14, 27)),
        ("LAST", 2, (20,)),
        ("^", 0, (20,)),
        ("^", 2, (14, 27)),
    ],
)
def test_a_token_over_two_lines_is_nowhere_in_what_a_search_shows(
    serve: Callable[..., list[str]],
    project: Path,
    home: Path,
    pattern: str,
    context: int,
    places: tuple[int, ...],
) -> None:
    token = "gh" + "p_" + "".join(Random(4).choices(ascii_letters + digits, k=36))
    ends = [0, *places, len(token)]
    parts = [token[a:b] for a, b in pairwise(ends)]
    pattern = {"MIDDLE": parts[1], "LAST": parts[-1]}.get(pattern, pattern)
    (project / "notes.txt").write_text("\n".join(["the key:", *parts, "is old", ""]))
    arguments = {"pattern": pattern, "context_lines": context}
    options = ["--output-format", "stream-json", "--mode", "bypass"]
    ybs = serve(call("search_files", **arguments), "Done.")
    done = run([*ybs, *options, "--print", "look"])
    assert done.returncode == 0, done.stderr
    assert "context_after" in done.stdout
    kept = [file for file in home.rglob("*.jsonl") if file.is_file()]
    assert kept, "no session was written"
    for text in (done.stdout, *(file.read_text() for file in kept)):
        found = [part for part in parts if part in text and part != pattern]
        assert not found, text


def test_a_token_over_two_lines_stays_hidden_once_its_first_line_was_seen_alone(
    serve: Callable[..., list[str]], servers: list[OpenAIServer], project: Path, home: Path
) -> None:
    token = "gh" + "p_" + "".join(Random(4).choices(ascii_letters + digits, k=36))
    (project / "notes.txt").write_text(f"deploy notes\n{token[:20]}\n{token[20:]}\nend\n")
    ybs = serve(
        call("run_shell", command="diff -u notes.txt /dev/null; true"),
        call("run_shell", command="grep -n ghp_ notes.txt"),
        call("delete_file", path="notes.txt"),
        call("read_file", path="notes.txt"),
        "Done.",
    )
    done = run([*ybs, "--output-format", "stream-json", "--print", "look"])
    assert done.returncode in {0, 5}, done.stderr
    results = [m for m in servers[0].requests[-1].body["messages"] if m["role"] == "tool"]
    assert "[ybs:secret:github-token#" in str(results[-1])
    kept = [file.read_text() for file in home.rglob("*.jsonl") if file.is_file()]
    assert kept, "no session was written"
    for text in (str(results), done.stdout, *kept):
        assert [part for part in (token[:20], token[20:]) if part in text] == []


def test_an_answer_that_breaks_off_is_taken_up_again_and_that_is_told(serve, servers):
    broken = Interrupted(how="break", answer=answer("half of it and the rest"), after_frames=3)
    done = run([*serve(broken, "the whole"), "--print", "go"])
    assert (done.returncode, done.stdout) == (0, "the whole\n")
    assert "the answer broke off" in done.stderr
    assert "; trying again in" in done.stderr
    assert len(servers[0].requests) == 2


def test_a_filtered_answer_is_told_and_is_no_success(serve: Callable[..., list[str]]) -> None:
    done = run([*serve(answer("I", stop_reason="refusal")), "--print", "go"])
    assert (done.returncode, done.stdout) == (4, "I\n")
    assert "refused by" in done.stderr
    assert "content_filter" in done.stderr


def test_where_no_file_may_grow_there_is_an_answer_and_no_traceback(serve):
    command = shlex.join([*serve("fine"), "--print", "go"])
    done = run(["bash", "-c", f"ulimit -f 0; {command}"])
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert "Traceback" not in done.stderr
