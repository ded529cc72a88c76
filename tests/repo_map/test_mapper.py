"""The process that makes the map, and what becomes of a session when that goes wrong. Its part is played by a shell."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

import ybs
from processes import comes, ends, is_alive, open_descriptors
from rows import every_row
from ybs.core.errors import ToolError
from ybs.repo_map.mapper import Mapper
from ybs.repo_map.protocol import MapAnswer, MapQuery, MapRequest
from ybs.repo_map.worker import environment

READY = """read -r job; echo '{"sources":5}'; read -r question; """
ANSWER = """echo '{"text":"app.py","files":["app.py"],"tokens":3,"sources":5}'; """
MAP = MapAnswer(text="app.py", files=("app.py",), tokens=3, sources=5)


@asynccontextmanager
async def mapping(script: str = "", command: Sequence[str] = ()) -> AsyncGenerator[Mapper, None]:
    """Yield a mapper whose process is a shell, or another command, and end it."""
    program = command or ("/bin/sh", "-c", script)
    mapper = Mapper(MapRequest.of(Path("/")), 100, environ=os.environ, command=program)
    try:
        yield mapper
    finally:
        await mapper.aclose()


#: What goes wrong: the script, and what is said of it.
WRONG = {
    "it crashes at once": ("exit 3", "ended without an answer"),
    "it is killed over the question": (READY + "kill -9 $$", "ended without an answer"),
    "it says nothing": (READY, "ended without an answer"),
    "it prints rubbish": ("echo rubbish; echo rubbish; cat", "said something else"),
    "it answers with rubbish": (READY + "echo '[1]'", "said something else"),
    "its answer is not text": (READY + "printf '\\377\\n'", "said something else"),
    "it takes no question": ("exec <&-; echo '{\"sources\":5}'", "ended without an answer"),
    "it prints without end": ("exec cat /dev/zero", "said more than"),
    "it hangs": (READY + "exec sleep 1000", "took longer than 0.05 s"),
    "it hangs before it is ready": ("exec sleep 1000", "took longer than 0.05 s"),
}


@pytest.mark.integration
@every_row("name", WRONG)
async def test_whatever_goes_wrong_gives_no_map_and_a_reason_and_leaves_nothing(name: str) -> None:
    script, reason = WRONG[name]
    before = open_descriptors()
    async with mapping(script) as mapper:
        mapper.prepare()
        (pid,) = mapper.pids
        assert await mapper.ask("words", wait_seconds=0.05 if "hangs" in name else 9) is None
        assert reason in mapper.problem
    assert not is_alive(pid)
    assert open_descriptors() == before


@pytest.mark.integration
async def test_a_process_that_a_parser_has_ended_is_followed_by_one_that_parses_nothing() -> None:
    parses_nothing = 'read job; case "$job" in *\'"parses":false\'*) ;; *) kill -9 $$;; esac; '
    script = parses_nothing + "echo '{\"sources\":5}'; read question; " + ANSWER
    async with mapping(script) as mapper:
        assert await mapper.ask("words") == MAP
        assert await mapper.ask("others") == MAP
        assert mapper.problem == ""


@pytest.mark.integration
async def test_what_cannot_be_started_is_a_reason_that_the_tool_tells() -> None:
    async with mapping(command=("/nowhere/python",)) as mapper:
        mapper.prepare()
        assert not mapper.is_ready
        with pytest.raises(ToolError, match=r"no map: its process cannot be started.*list_files"):
            await mapper.text_for("words")


async def test_without_an_interpreter_there_is_no_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    mapper = Mapper(MapRequest.of(Path("/")), 100, environ=os.environ)
    assert await mapper.ask("words") is None
    assert mapper.problem == "there is no Python to start"


@pytest.mark.integration
async def test_the_question_arrives_as_it_was_asked(home: Path) -> None:
    script = f'printf "%s" "$job" > ~/job; printf "%s" "$question" > ~/question; {ANSWER}'
    async with mapping(READY + script) as mapper:
        assert await mapper.ask('a "quote" \ud800 \n' + "x" * 9_000, 77) == MAP
    asked = msgspec.json.decode((home / "question").read_bytes(), type=MapQuery)
    assert asked.tokens == 77
    assert asked.query.startswith('a "quote" ? \nxxx')
    assert len(asked.query) == 8_000
    assert msgspec.json.decode((home / "job").read_bytes(), type=MapRequest).folder == b"/"


@pytest.mark.integration
async def test_a_prepared_process_is_asked_once_and_the_next_question_starts_another() -> None:
    async with mapping(READY + ANSWER) as mapper:
        mapper.prepare()
        mapper.prepare()
        (pid,) = mapper.pids
        assert await comes(lambda: mapper.is_ready)
        assert os.getpgid(pid) == pid != os.getpgid(0), "Ctrl-C in the terminal would reach it"
        assert os.getpriority(os.PRIO_PROCESS, pid) >= 10
        assert await mapper.text_for("words") == "app.py"
        assert not mapper.is_ready
        assert await comes(lambda: not mapper.pids), "after an answer nothing runs"
        assert await mapper.ask("others") == MAP
        assert pid not in mapper.pids


@pytest.mark.integration
async def test_a_process_that_has_answered_may_put_its_index_away(home: Path) -> None:
    async with mapping(READY + ANSWER + ": > ~/begun; sleep 0.03; : > ~/done") as mapper:
        assert await mapper.ask("words") == MAP
        assert await comes(lambda: (home / "done").exists())


@pytest.mark.integration
async def test_the_end_of_the_session_ends_what_waits_what_works_and_what_begins() -> None:
    async with mapping(READY + "exec sleep 1000") as mapper:
        mapper.prepare()
        asked = mapper.begin("words")
        await asyncio.sleep(0)
        waits = mapper.begin("others")
        mapper.prepare()
        (pid,) = mapper.pids
    assert not is_alive(pid)
    assert asked.cancelled()
    assert waits.cancelled()
    assert await mapper.ask("words") is None
    assert not mapper.pids
    await mapper.aclose()


@pytest.mark.integration
async def test_a_question_that_is_cancelled_leaves_no_process() -> None:
    async with mapping(READY + "exec sleep 1000") as mapper:
        asking = asyncio.ensure_future(mapper.ask("words"))
        await asyncio.sleep(0)
        (pid,) = mapper.pids
        asking.cancel()
        assert await comes(lambda: not is_alive(pid))


def test_no_key_and_no_code_of_the_project_is_handed_on() -> None:
    own = str(Path(ybs.__file__).parents[1])
    given = {
        "HOME": "/h",
        "PATH": ".::/bin:bin",
        "YBS_HOME": "/y",
        "LANG": "C",
        "OPENAI_API_KEY": "k",
    }
    given |= {
        "LD_PRELOAD": "/p/x.so",
        "PYTHONSTARTUP": "/p/x.py",
        "PYTHONHOME": "/p",
        "YBS_LLM__MODEL": "m",
    }
    kept = {"HOME": "/h", "PATH": "/bin", "YBS_HOME": "/y", "LANG": "C"}
    for path in ("/p:", f":.:/p:/p/lib:{own}:/q"):
        assert environment({**given, "PYTHONPATH": path}) == kept


@pytest.mark.integration
@pytest.mark.timeout(60)
async def test_code_in_the_projects_folder_is_not_run_by_the_process(project, home):
    """The one real process of the quick tests: also the whole way from a question to its map."""
    trap = "import pathlib; pathlib.Path('~/sprung').expanduser().touch(); raise SystemExit(1)"
    for name in ("ybs", "msgspec", "json", "sitecustomize", "usercustomize", "site", "app"):
        (project / f"{name}.py").write_text(trap)
    mapper = Mapper(MapRequest.of(project), 300, environ=os.environ)
    answer = await mapper.ask("sitecustomize", wait_seconds=50)
    await mapper.aclose()
    assert answer is not None, mapper.problem
    assert answer.sources == 7
    assert not (home / "sprung").exists()
    assert not (home / ".cache").exists()
    assert answer.files[0] == "sitecustomize.py"


PARENT = """
import asyncio
import sys
import os
import time
from pathlib import Path
from ybs.repo_map.protocol import MapRequest
from ybs.repo_map.mapper import Mapper

async def main():
    mapper = Mapper(MapRequest.of(Path(sys.argv[1])), 300, environ=os.environ)
    mapper.prepare()
    while sys.argv[2] == "ready" and not mapper.is_ready:
        time.sleep(0.01)
    print(*mapper.pids, flush=True)
    sys.stdin.read()

asyncio.run(main())
"""


def bounds_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return {line[:25].strip(): line.split()[-3] for line in lines}


@pytest.mark.slow  # it starts two interpreters, four times
@every_row("moment", ["at once", "ready"])
async def test_the_process_dies_with_a_session_that_is_killed(moment: str, project: Path) -> None:
    for number in range(300):
        (project / f"part_{number}.py").write_text(f"def part_{number}(): pass\n" * 30)
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, str(project), moment),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert is_alive(pid)
    if moment == "ready":
        bounds = bounds_of(pid)
        assert bounds["Max address space"] == "1000000000"
        assert bounds["Max core file size"] in ("0", "1")
    parent.kill()
    await parent.wait()
    assert await ends(pid)


@pytest.mark.slow  # it starts two interpreters, twice
@pytest.mark.parametrize("is_killed", [False, True])
async def test_git_that_waits_for_ever_dies_with_the_process(is_killed, project):
    for name in ("objects/11", "refs/heads"):
        (project / ".git" / name).mkdir(parents=True)
    (project / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (project / ".git/config").write_text("")
    (project / ".git/refs/heads/main").write_text("1" * 40 + "\n")
    os.mkfifo(project / ".git/objects/11" / ("1" * 38))
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, str(project), "at once"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert await comes(
        lambda: any(b"\0log\0" in words_of(each) for each in children_of(pid)), seconds=50
    )
    git = int(children_of(pid)[0])
    if is_killed:
        os.killpg(pid, signal.SIGKILL)
    parent.kill()
    await parent.wait()
    assert await ends(pid)
    assert await ends(git)


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def words_of(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
