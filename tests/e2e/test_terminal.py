"""The real command on a real terminal, with a scripted server behind it."""

import re
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from screen import Screen
from scripted import Interrupted, OllamaServer
from serving import serving
from trusting import put
from ybs.testing import answer, call

pytestmark = pytest.mark.integration

Start = Callable[..., Screen]
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|38|4[0-7]|48|9[0-7])(?:;\d+)*m")


def test_a_whole_dialogue(start: Start, project: Path) -> None:
    (project / "cart.py").write_text("total -= coupon\n")
    edit = call("edit_file", path="cart.py", old_text="coupon", new_text="coupon.discount(total)")
    screen = start([call("read_file", path="cart.py"), edit, "It is **done**:\n\n- one edit\n"])
    screen.sees(r"› *\n")
    screen.keys("fix the cart\r")
    text = screen.sees("1 edit|one edit")
    screen.sees(r"\d+ in · \d+ out")
    assert re.search(r"127\.0\.0\.1:\d+ scripted · ask · (no |reduced )?sandbox", text)
    assert "› fix the cart" in text
    assert re.search(r"• read +cart\.py", text)
    assert re.search(r"• edit +cart\.py", text)
    assert "    1 -total -= coupon\n    1 +total -= coupon.discount(total)" in text
    assert "  It is done:\n\n  - one edit" in text
    assert (project / "cart.py").read_text() == "total -= coupon.discount(total)\n"
    screen.keys("/quit\r")
    assert screen.ends() == 0
    assert "Traceback" not in screen.raw, screen.raw[-3000:]


def test_thinking_that_nothing_opened_is_not_drawn_as_the_answer(start: Start) -> None:
    thought = "They greet.\n\nI greet back.\n</think>\n\n"
    screen = start([f"{thought}Hello.", f"{thought}Hello again."])
    screen.sees(r"› *\n")
    screen.keys("hi\r")
    assert "that was thinking" in screen.sees(r"  Hello\.\n")
    screen.keys("hi again\r")
    text = screen.sees(r"  Hello again\.\n")
    assert "  thought: They greet. I greet back." in text
    assert "</think>" not in screen.raw


@pytest.mark.slow
def test_a_question_is_answered_with_each_key(start: Start, project: Path) -> None:
    script = [
        call("run_shell", command="echo one > one"),
        call("run_shell", command="echo two > two"),
        call("run_shell", command="echo three > three"),
        call("run_shell", command="echo three > three"),
        "finished",
    ]
    screen = start(script, "go")
    screen.sees(r"    echo one > one\n\n  .+\n\n  \[y\] yes")
    screen.stays()
    screen.keys("y")
    screen.sees(r"    echo two > two\n\n  .+\n\n  \[y\] yes")
    assert (project / "one").exists()
    screen.stays()
    screen.keys("r")
    screen.sees("because:")
    screen.keys("use make\r")
    screen.sees(r"    echo three > three\n\n  .+\n\n  \[y\] yes")
    assert "[r] no, because: use make" in screen.text
    assert not (project / "two").exists()
    screen.stays()
    screen.keys("a")
    text = screen.sees("finished")
    assert text.count("\n    echo three > three\n") == 1
    assert "[a] always this session: run_shell(echo three > three)" in text


@pytest.mark.slow
def test_what_was_typed_ahead_is_no_consent(start: Start, project: Path) -> None:
    script = [
        call("run_shell", command="sleep 1"),
        call("run_shell", command="touch made"),
        "finished",
    ]
    screen = start(script, "--allow", "run_shell(sleep *)", "go")
    screen.sees(r"shell +sleep 1")
    screen.keys("yyy")
    screen.sees(r"\[y\] yes")
    screen.stays(0.6)
    assert not (project / "made").exists()
    assert "[y] yes   [n] no" in screen.text
    screen.keys("n")
    screen.sees("finished")
    screen.sees(r"› yyy")
    assert not (project / "made").exists()


def test_ctrl_c_stops_a_running_command_and_twice_leaves(start: Start) -> None:
    screen = start(
        [call("run_shell", command="echo begun; sleep 60")], "--allow", "run_shell", "go"
    )
    screen.sees("begun")
    screen.keys("\x03")
    screen.sees("interrupted")
    screen.keys("\x03")  # the press that stopped it is not the first of two
    screen.sees("press Ctrl-C again to leave ybs")
    screen.keys("\x03")
    assert screen.ends() == 0
    assert "Traceback" not in screen.raw, screen.raw[-3000:]


@pytest.mark.slow
def test_a_provider_that_is_down_is_two_lines_and_the_prompt_comes_back(project: Path) -> None:
    environ = {"YBS_AGENT__RETRY_ATTEMPTS": "0"}
    with Screen(
        "--endpoint", "http://127.0.0.1:9/v1", "-m", "x", "hello", environ=environ
    ) as screen:
        screen.sees("✗ .*")
        screen.sees(r"› *\n")
        assert "Traceback" not in screen.raw, screen.raw[-3000:]
        screen.keys("\x04")
        assert screen.ends() == 0


@pytest.mark.parametrize(("columns", "rows"), [(20, 24), (20, 6), (40, 12)])
@pytest.mark.slow
def test_a_small_terminal_works(start: Start, project: Path, columns: int, rows: int) -> None:
    script = [
        call("run_shell", command="echo a-rather-long-word > made"),
        "# Done\n\nAll is well now, really.",
    ]
    screen = start(script, "go", columns=columns, rows=rows)
    screen.sees(r"\[y\] yes")
    screen.stays()
    screen.keys("y")
    screen.sees("well")
    assert (project / "made").exists()
    screen.keys("\x04")
    assert screen.ends() == 0
    assert "Traceback" not in screen.raw, screen.raw[-3000:]


@pytest.mark.slow
def test_a_resize_during_a_turn_is_survived(start: Start) -> None:
    screen = start(
        [call("run_shell", command="echo begun; sleep 60"), "never"], "--allow", "run_shell", "go"
    )
    screen.sees("begun")
    screen.resize(30, 12)
    screen.stays()
    screen.resize(100, 40)
    screen.stays()
    screen.keys("\x1b")
    screen.sees("interrupted")
    screen.keys("\x04")
    assert screen.ends() == 0


@pytest.mark.slow
def test_no_color_is_honoured(start: Start) -> None:
    screen = start(["see `code`\n\n```python\nimport os\n```\n"], "go", environ={"NO_COLOR": "1"})
    screen.sees("import os")
    screen.sees(r"\d+ in · \d+ out")
    assert not COLOUR.search(screen.raw)


@pytest.mark.slow
def test_a_dumb_terminal_gets_whole_sentences(start: Start, project: Path) -> None:
    script = [call("run_shell", command="touch made"), "It is done."]
    screen = start(script, environ={"TERM": "dumb"})
    screen.sees("/help for more")
    screen.keys("go\n")
    screen.sees(r"no because \.\.\.:")
    screen.stays()
    screen.keys("yes\n")
    screen.sees("It is done.")
    assert (project / "made").exists()
    assert "\x1b" not in screen.raw
    screen.keys("/quit\n")
    assert screen.ends() == 0


@pytest.mark.slow
def test_a_signal_ends_it_cleanly(start: Start) -> None:
    screen = start(["x"])
    screen.sees(r"› *\n")
    screen.child.kill(signal.SIGTERM)
    assert screen.ends() == 143
    assert "Traceback" not in screen.raw, screen.raw[-3000:]


@pytest.mark.slow
def test_a_hangup_with_the_terminal_there_finds_new_tools(start: Start, home: Path) -> None:
    screen = start(["x"])
    screen.sees(r"› *\n")
    tool = put(home, ".config/ybs/tools/greet", "#!/bin/sh\ncat", 0o755)
    put(home, ".config/ybs/tools/greet.tool.json", '{"description": "Greet somebody."}')
    assert tool.exists()
    screen.child.kill(signal.SIGHUP)
    screen.sees("Greet somebody")
    screen.keys("/quit\r")
    assert screen.ends() == 0
    assert "Traceback" not in screen.raw, screen.raw[-3000:]


@pytest.mark.slow
def test_a_first_run_is_one_question_and_then_the_prompt(project: Path, home: Path) -> None:
    with serving(["hello"], OllamaServer) as server:
        with Screen(environ={"OLLAMA_HOST": server.url}) as screen:
            screen.sees(r"  1  scripted +ollama, running here, 1\.0 MB")
            screen.sees(r"q to quit\):")
            screen.stays()  # what comes at once was typed ahead
            screen.keys("\r")
            screen.sees(r"scripted, ollama\. Saved in ~/.config/ybs/config\.json")
            screen.sees(r"› *\n")
            screen.keys("\x04")
            assert screen.ends() == 0
            assert "Traceback" not in screen.raw, screen.raw[-3000:]
        assert not server.requests
    llm = msgspec.json.decode((home / ".config" / "ybs" / "config.json").read_bytes())["llm"]
    assert llm == {"provider": "ollama", "model": "scripted", "endpoint": server.url}


@pytest.mark.slow
def test_a_first_run_that_is_left_writes_nothing(project: Path, home: Path) -> None:
    for keys in ("q\r", "\x04", "\x03"):
        with Screen(environ={"TERM": "dumb", "OLLAMA_HOST": "127.0.0.1:9"}) as screen:
            screen.sees(r"q to quit\):")
            screen.keys_until_it_ends(keys)  # what comes too soon is not an answer
            assert screen.ends() == 4
            assert "Traceback" not in screen.raw, screen.raw[-3000:]
    assert list(home.iterdir()) == []


def test_a_broken_answer_is_marked_and_taken_up_again(start: Start) -> None:
    broken = Interrupted(how="break", answer=answer("half of it\n\nand the rest"), after_frames=3)
    screen = start([broken, "the whole of it"])
    screen.sees(r"› *\n")
    screen.keys("go\r")
    text = screen.sees("the whole of it")
    assert re.search(
        r"half of it(.|\n)*was closed\), trying\s+again in(.|\n)*the whole of it", text
    )
    screen.keys("/quit\r")
    assert screen.ends() == 0
