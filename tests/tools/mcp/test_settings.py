from typing import Any

import pytest

from rows import every_row
from ybs.tools.mcp.listed import full_name
from ybs.tools.mcp.replacing import wanted
from ybs.tools.mcp.settings import (
    BadServer,
    filled,
    missing_variables,
    server_of,
    servers_in,
)
from ybs.trust.wording import words_in

STDIO = {"command": "npx", "args": ["-y", "server"], "env": {"KEY": "1"}}


@every_row(
    "entry, transport, shown",
    [
        (STDIO, "stdio", "npx -y server"),
        ({"type": "stdio", **STDIO}, "stdio", "npx -y server"),
        ({"type": "local", "command": ["npx", "-y", "server"]}, "stdio", "npx -y server"),
        ({"command": "x", "environment": {"A": 1}}, "stdio", "x"),
        ({"url": "https://host/mcp"}, "http", "https://host/mcp"),
        ({"type": "http", "url": "https://host/mcp"}, "http", "https://host/mcp"),
        ({"type": "streamable-http", "url": "http://h/mcp"}, "http", "http://h/mcp"),
        ({"serverUrl": "https://host/mcp"}, "http", "https://host/mcp"),
        ({"httpUrl": "https://host/mcp"}, "http", "https://host/mcp"),
        ({"url": "${ADDRESS}"}, "http", "${ADDRESS}"),
    ],
)
def test_the_spellings_of_other_agents_are_understood(entry, transport, shown):
    server = server_of("demo", entry)
    assert (server.transport, server.shown, server.is_on) == (transport, shown, True)


@every_row(
    "name, entry, why",
    [
        ("", STDIO, "a name has"),
        ("a/b", STDIO, "a name has"),
        ("x" * 41, STDIO, "a name has"),
        ("demo", "npx", "not an object"),
        ("demo", {}, "either a command or a url"),
        ("demo", {**STDIO, "url": "https://host"}, "either a command or a url"),
        ("demo", {"url": "ftp://host"}, "does not begin with"),
        ("demo", {"type": "ws", "url": "https://host"}, "'ws'"),
        ("demo", {"type": "http", "command": "x"}, "does not go with"),
        ("demo", {"command": 3}, "Expected `str`"),
        ("demo", {"command": "x", "env": {"A": {"${KEY:-": 1}}}, "Expected `str`"),
        ("demo", {"command": "x", "project": "all"}, "Invalid enum value"),
        ("demo", {"command": "x", "sandbox": False, "from": "project"}, "switch the sandbox off"),
    ],
)
def test_what_cannot_be_a_server_is_said_and_why(name: str, entry: Any, why: str):
    with pytest.raises(BadServer, match=why):
        server_of(name, entry)
    servers, problems = servers_in({name: entry, "other": STDIO})
    assert [each.name for each in servers] == ["other"]
    assert len(problems) == 1
    assert "is not used" in problems[0]


@every_row("command", ["sh", ["sh"], ["sh", "a"], [["sh"]], {"sh": "a"}])
@every_row("args", [["run.py"], "run.py", {"run.py": "x"}, [["run.py"]], [{"run.py": 1}], None, 1])
def test_what_a_server_is_started_with_stands_in_what_the_trust_in_it_is_bound_to(
    command: Any, args: Any
):
    """Files that `args` name are found by its texts, and keys of an object are none."""
    entry = {"command": command, "args": args, "from": "project"}
    try:
        server = server_of("x", entry)
    except BadServer:
        return
    assert (server.command, *server.args) == (*words_in(command), *words_in(args))
    assert {server.command, *server.args} <= {*server.words}


def test_nobody_can_claim_to_be_the_person_or_to_have_another_name():
    server = server_of("demo", {**STDIO, "name": "other", "is_projects": False, "from": "project"})
    assert (server.name, server.is_projects) == ("demo", True)


def test_m03_a_projects_server_takes_no_name_that_a_rule_for_another_one_means():
    theirs = {**STDIO, "from": "project"}
    names = {"time.": theirs, "a.b": theirs, "time": STDIO, "a_b": STDIO, "time__x": theirs}
    servers, problems = servers_in(names)
    assert [each.name for each in servers] == ["time", "a_b", "time__x"]
    assert "its tools would have the names of those of time" in problems[0]
    assert "its tools would have the names of those of a_b" in problems[1]
    assert full_name("time__x", "now") == "mcp__time_x__now"


def test_a_projects_server_takes_no_name_of_one_that_cannot_be_used():
    theirs = {**STDIO, "from": "project"}
    bad = {"url": "https://db.example/mcp", "type": "ws"}
    names = {"corp.db": theirs, "corp_db": bad, "corp-db": {**bad, "from": "plugin"}}
    servers, problems = servers_in({**names, "corp..db": STDIO, "corp-db.": theirs})
    assert [each.name for each in servers] == ["corp..db"]  # of the person's own any may
    assert "its tools would have the names of those of corp_db" in str(problems)
    assert "its tools would have the names of those of corp-db" in str(problems)
    assert servers_in({"corp.db": theirs, "corp_db": {**bad, "from": "project"}})[0] != []


def test_names_in_any_letters_stay_apart():
    found = [full_name(name, "go") for name in ("地图", "时间", "é", "...", "My Server", "a-b_c")]
    assert len(set(found)) == len(found)
    assert found[-2:] == ["mcp__My_Server__go", "mcp__a-b_c__go"]


@every_row(
    "more, needs",
    [
        ({}, "the network"),
        ({"network": False}, ""),
        ({"network": False, "project": "write"}, "to change the project"),
        ({"network": False, "write": ["~/notes"]}, "to change ~/notes"),
        ({"network": False, "read": ["/srv"]}, "to read /srv"),
        ({"sandbox": False}, "no sandbox"),
        ({"command": "/usr/bin/docker", "args": ["run"]}, "a container"),
    ],
)
def test_what_it_is_given_is_said_in_a_few_words(more: dict[str, Any], needs: str):
    assert server_of("demo", {**STDIO, **more}).needs == needs


def test_another_key_in_the_same_place_and_another_time_limit_make_no_other_server_for_an_always():
    def identity(entry: dict[str, Any]) -> str:
        return server_of("demo", entry).identity

    assert identity({**STDIO, "env": {"KEY": "2"}, "timeout_seconds": 9}) == identity(STDIO)
    assert identity({**STDIO, "env": {"KEY": "${KEY}"}}) != identity(STDIO)
    two, swapped = {"A": "${X}", "B": "${Y}"}, {"A": "${Y}", "B": "${X}"}
    assert identity({**STDIO, "env": two}) != identity({**STDIO, "env": swapped})
    there = {"url": "https://host/mcp", "headers": {"X-Key": "${A}"}}
    assert identity(there) == identity({**there, "enabled": False})
    for more in (
        {"url": "https://other/mcp"},
        {"headers": {"X-Key": "${B}"}},
        {"headers": {"Y": "${A}"}},
    ):
        assert identity({**there, **more}) != identity(there)


@every_row(
    "command, is_container",
    [
        ("docker", True),
        ("/usr/bin/podman", True),
        ("~/bin/docker", True),
        ("./docker", False),
        ("bin/docker", False),
        ("${X:-/usr/bin}/docker", False),
    ],
)
def test_only_the_persons_own_settings_start_what_no_sandbox_holds(
    command: str, is_container: bool
):
    entry = {"command": command, "args": ["run", "-v", "/:/host", "x"]}
    for origin in ("project", "editor"):
        with pytest.raises(BadServer, match="cannot start containers"):
            server_of("demo", {**entry, "from": origin})
    assert server_of("demo", {**entry, "from": "plugin", "root": "/plugins/x"}).is_held
    assert server_of("demo", entry).is_held is not is_container


@every_row(
    "entry",
    [
        {"command": "npx", "args": ["-y", "x", "--api-key", "hunter22"]},
        {"command": "npx", "args": ["-y", "x", "--token=hunter22"]},
        {"command": "npx", "args": ["mcp-remote", "https://host/sse?key=hunter22"]},
    ],
)
def test_keys_are_not_shown(entry: dict[str, Any]):
    shown = server_of("demo", entry).shown
    assert "hunter22" not in shown
    assert "host" in shown or "npx" in shown


@every_row("more", [{"replace_default": "fs"}, {"elicitation": True}])
def test_a_projects_server_replaces_nothing_and_asks_nothing(more: dict[str, Any]):
    with pytest.raises(BadServer, match="cannot have a server replace tools or ask"):
        server_of("demo", {**STDIO, **more, "from": "project"})
    assert server_of("demo", {**STDIO, **more}).is_on


def test_a_call_in_which_the_person_may_be_asked_has_their_time():
    assert server_of("demo", STDIO).call_seconds == 60
    assert server_of("demo", {**STDIO, "elicitation": True}).call_seconds > 3_600


@every_row(
    "more, replaced",
    [
        ({"network": False}, 6),
        ({}, 4),
        ({"network": False, "sandbox": False}, 4),
        ({"network": False, "command": "docker"}, 4),
    ],
)
def test_a_server_that_could_send_them_on_gets_no_secrets_of_edited_files(more, replaced):
    tools, problems = wanted(server_of("demo", {**STDIO, "replace_default": "fs", **more}))
    assert len(tools) == replaced
    assert len(problems) == (replaced < 6)


def test_a_server_elsewhere_is_called_that():
    assert server_of("demo", {"url": "https://host/mcp"}).needs == "a server elsewhere"


def test_one_that_is_switched_off_stays_known():
    assert not server_of("demo", {**STDIO, "disabled": True}).is_on
    assert not server_of("demo", {**STDIO, "enabled": False}).is_on


def test_variables_are_filled_in_and_a_missing_one_is_named():
    server = server_of(
        "demo",
        {"command": "${HOME}/x", "args": ["${A:-one}", "$${B}"], "env": {"T": "${TOKEN}"}},
    )
    done = filled(server, {"HOME": "/h", "TOKEN": "t"})
    assert (done.command, done.args, done.env) == ("/h/x", ("one", "${B}"), {"T": "t"})
    assert "TOKEN" in missing_variables(server, {"HOME": "/h"})
    assert missing_variables(server, {"HOME": "/h", "TOKEN": ""}) == ""


def test_what_is_a_secret_by_its_name_is_known():
    key = "k3Y" + "-of-mine-9"
    entry = {
        "url": "https://h/mcp",
        "headers": {
            "Authorization": f"Bearer {key}1",
            "X-Api-Key": f"{key}2",
            "X-Team": "tooling-team",
        },
        "oauth": {"client_secret": "${KEY}3"},
    }
    assert set(filled(server_of("demo", entry), {"KEY": key}).secrets) == {
        f"{key}{n}" for n in (1, 2, 3)
    }
    env = {"DB_PASSWORD": f"{key}4", "HOST": "db.example.com"}
    assert server_of("demo", {**STDIO, "env": env}).secrets == [f"{key}4"]


@every_row(
    "url, shown",
    [
        ("https://h/mcp", "https://h/mcp"),
        ("https://h/mcp?key=1", "https://h/mcp?…"),
        ("https://me:pw@h:1/mcp", "https://h:1/mcp"),
        ("${HOST}/mcp", "${HOST}/mcp"),
    ],
)
def test_an_address_is_shown_without_keys(url: str, shown: str):
    assert server_of("demo", {"url": url}).shown == shown


@every_row(
    "url", ["https://evil.example#@h/mcp", "https://evil.example\\@h/mcp", "http://h /", "/h"]
)
def test_an_address_that_could_pass_for_another_is_of_no_server(url: str):
    with pytest.raises(BadServer, match="its url "):
        server_of("demo", {"url": url})
    with pytest.raises(BadServer, match="its url "):
        filled(server_of("demo", {"url": "${AT}"}), {"AT": url})


@every_row("name", ["Host", "content-length", "Transfer-Encoding", "Connection"])
def test_only_a_server_of_the_persons_own_has_a_header_that_says_where_a_call_goes(name: str):
    entry = {"url": "https://x.example/mcp", "headers": {name: "x", "X-Team": "y"}}
    assert server_of("demo", entry).headers[name] == "x"
    for by in ("project", "editor", "plugin"):
        with pytest.raises(BadServer, match="says where a call goes"):
            server_of("demo", {**entry, "from": by, "root": "/p"})


@every_row("by", [{"from": "project"}, {"from": "editor"}, {"from": "plugin", "root": "/p"}])
def test_only_a_server_of_the_persons_own_has_a_login_in_its_address(by: dict[str, str]):
    for url, environ in (("https://h:1@x.example/", {}), ("https://${A}x.example/", {"A": "h@"})):
        assert filled(server_of("demo", {"url": url}), environ).url.endswith("@x.example/")
        with pytest.raises(BadServer, match="has a login"):
            filled(server_of("demo", {"url": url, **by}), environ)


@every_row(
    ("url", "value", "is_right"),
    [
        ("http://evil.example${A:-@good.example/}/mcp", "/x", False),
        ("http://evil.example${A}.good.example/mcp", "/x", False),
        ("https://evil.example:${A}.good.example/mcp", "443/x", False),
        ("${A}.evil.example/mcp", "https://good.example", False),
        ("${A}://evil.example/mcp", "https", False),
        ("https://${A}.example/mcp", "good", True),
        ("https://good.example:${A}/mcp", "8443", True),
        ("https://good.example/${A}/mcp?key=${A}", "/x@y", True),
        ("https://good.example?key=${A}", "/x@y", True),
        ("${A:-https://good.example}/mcp", "https://other.example", True),
        ("${A}", "https://good.example/mcp", True),
    ],
)
def test_a_variable_in_anothers_address_is_no_more_than_a_part_of_a_name(
    url: str, value: str, *, is_right: bool
):
    server = server_of("demo", {"url": url, "from": "project"})
    if is_right:
        assert filled(server, {"A": value}).url
        return
    with pytest.raises(BadServer, match="a variable in its url"):
        filled(server, {"A": value})
    assert filled(server_of("demo", {"url": url}), {"A": value})
