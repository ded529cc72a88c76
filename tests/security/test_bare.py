"""Programs without a sandbox around them: what is said of that, and what they get."""

from pathlib import Path

from ybs.security.sandbox.attempts import Attempts
from ybs.security.sandbox.launch import Access, Starter


def test_nothing_is_held_back_and_nobody_says_so():
    bare = Starter()
    assert not bare.holds_reading()
    assert not bare.closes_network
    assert bare.may_show(Path("/anything"))
    assert bare.denial("x") == bare.remark("x") == ""
    assert bare.need(Attempts(bare.opened), 1, "x") is None
    assert Access() == Access(network=False, read_only=False, shown=(), declared={})


def test_a_program_gets_what_it_was_declared_to_need_and_no_other_secret():
    environ = {"PATH": "/bin", "MY_API_KEY": "k" * 20, "OTHER_API_KEY": "o" * 20}
    access = Access(declared={"MY_API_KEY": "k" * 20}, read_only=True, shown=(Path("/x"),))
    launch = Starter().start(("program", "word"), Path("/"), environ, access)
    assert launch.argv == ("program", "word")
    assert launch.environ["MY_API_KEY"] == "k" * 20
    assert "OTHER_API_KEY" not in launch.environ
