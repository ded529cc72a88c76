"""Programs are found, asked once, and asked again where the person wants it."""

import json
import os
import sys
from pathlib import Path

import pytest

from hosts import this_host
from tools.external.programs import FOLDER, install, playing, script
from trusting import give_trust, put, trusted
from ybs.cli import main
from ybs.config.review import Review
from ybs.core.ports import Answer
from ybs.tools.external.catalogue import Saying, SchemaCache, key_of
from ybs.trust.decision import give
from ybs.trust.settings import load
from ybs.trust.wording import lines_of

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]


def _review(folder: Path) -> Review:
    review = load(this_host(), folder=folder).review
    assert review is not None
    return review


async def test_the_tools_of_the_persons_folders_are_offered(project: Path, home: Path):
    install(home, "say-hello", "echo hello", {"description": "Say hello."})
    put(home, ".ybs/tools/other", "#!/bin/sh\necho argument: $1\n", 0o755)
    put(home, ".ybs/tools/other.tool.json", json.dumps({"name": "beside", "description": "It."}))
    put(home, f"{FOLDER}/notes.txt", "no program")
    put(home, f"{FOLDER}/helper.py", "print('no tool')")
    async with playing(project) as played:
        assert played.names == ["say_hello", "beside"]
        assert (await played.run("say_hello")).output == "hello"
        assert (await played.run("beside", x=1)).output == 'argument: {"x":1}'


@pytest.mark.parametrize("sidecar", ["deploy.tool.json", "deploy.sh.tool.json"])
async def test_a_program_with_an_ending_has_its_description_beside_it_and_is_not_asked(
    sidecar: str, project: Path, home: Path
):
    body = '#!/bin/sh\n[ "$1" = --schema ] && exit 7\necho "ran $1"\n'
    put(home, f"{FOLDER}/deploy.sh", body, 0o755)
    put(home, f"{FOLDER}/{sidecar}", json.dumps({"description": "Deploys."}))
    async with playing(project) as played:
        assert played.names == ["deploy"]
        assert not played.notices
        assert (await played.run("deploy", to="x")).output == 'ran {"to":"x"}'
    cache = home / ".cache/ybs/tools.json"
    assert not cache.exists() or "exit code 7" not in cache.read_text()


async def test_a_description_that_is_broken_does_not_have_the_program_asked(project: Path, home: Path):  # fmt: skip
    put(home, f"{FOLDER}/deploy.sh", '#!/bin/sh\necho \'{"description": "By itself."}\'', 0o755)
    put(home, f"{FOLDER}/deploy.tool.json", "{")
    async with playing(project) as played:
        assert played.names == []
        assert "deploy.sh cannot be used: its description is not a JSON object" in str(played.notices)  # fmt: skip


async def test_the_description_of_a_program_is_not_that_of_its_neighbour(project: Path, home: Path):
    put(home, f"{FOLDER}/deploy", "#!/bin/sh\necho mine", 0o755)
    put(home, f"{FOLDER}/deploy.tool.json", json.dumps({"description": "Mine."}))
    install(home, "deploy.sh", "echo theirs", {"name": "theirs", "description": "Theirs."})
    async with playing(project) as played:
        assert played.names == ["deploy", "theirs"]


async def test_a_project_describes_its_programs_so_too(project: Path, home: Path):
    put(project, "tools/deploy.sh", "#!/bin/sh\necho ran", 0o755)
    put(project, "tools/deploy.tool.json", json.dumps({"description": "Deploys."}))
    give_trust(project)
    async with playing(project) as played:
        assert played.names == ["deploy"]


async def test_a_program_is_asked_once_as_long_as_it_is_the_same(project: Path, home: Path):
    body = "date +%N"
    tool = install(home, "now", body, {"description": "The first."})
    async with playing(project) as played:
        assert played.names == ["now"]
    cache = home / ".cache/ybs/tools.json"
    cache.write_text(cache.read_text().replace("now", "now"))
    kept = cache.stat().st_mtime_ns
    async with playing(project) as played:
        assert played.names == ["now"]
        assert cache.stat().st_mtime_ns == kept
    tool.write_text(script(body, {"name": "then", "description": "Another."}))
    async with playing(project) as played:
        assert played.names == ["then"]
    assert cache.stat().st_mtime_ns > kept


async def test_what_is_broken_is_named_and_does_not_keep_the_others_away(project: Path, home: Path):
    for name, text in {
        "slow": "#!/bin/sh\nsleep 60",
        "dies": "#!/bin/sh\necho no such option >&2; kill -9 $$",
        "bytes": "#!/bin/sh\nprintf '\\377\\000'",
        "text": "#!/bin/sh\necho usage",
        "foreign": "#!/usr/bin/env no-such-interpreter\n",
        "long": "#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x",
    }.items():
        put(home, f"{FOLDER}/{name}", text, 0o755)
    install(home, "good", "echo yes")
    install(home, "read_file", "echo mine")
    async with playing(project, seconds=2) as played:
        assert played.names == ["good"]
        said = "\n".join(played.notices)
        for words in (
            "tools/slow cannot be used: it did not answer --schema within 2 s",
            "tools/dies cannot be used: it answers --schema with exit code 137: no such option",
            "tools/bytes cannot be used: its description is not a JSON object",
            "tools/text cannot be used: its description is not a JSON object",
            "tools/foreign cannot be used: no-such-interpreter, which runs it, is not on your PATH",
            "tools/long cannot be used: it answers --schema with more than 64,000 bytes",
            "The tool 'read_file' cannot be used: ybs has one of this name",
        ):
            assert words in said


async def test_a_project_offers_tools_only_once_it_is_trusted(project: Path):
    put(project, "tools/build.sh", "#!/bin/sh\ntouch built\necho done", 0o755)
    put(project, "tools/check", script("echo checked"), 0o755)
    put(project, ".ybs/tools/own", script("echo own"), 0o755)
    async with playing(project) as played:
        assert played.names == []
    give_trust(project)
    async with playing(project) as played:
        assert sorted(played.names) == ["check", "own"]
        assert not (project / "built").exists()  # it was asked with the project read-only
        assert played.notices == []
        assert (await played.run("check")).output == "checked"
        put(project, "tools/check", script("echo changed"), 0o755)
        result = await played.run("check")
        assert result.is_refused
        assert "tools/check is not the program that the person trusts" in result.output
    async with playing(project) as played:
        assert played.names == []


@pytest.mark.parametrize("is_trusted", [False, True])
async def test_a_folder_of_tools_that_leads_out_of_the_project_is_not_the_persons(
    project: Path, home: Path, is_trusted: bool
):
    app, hidden = project / "packages/app", project / "hidden"
    (project / ".git").mkdir()
    put(hidden, "evil", script("echo evil"), 0o755)
    put(app, "other/x", "")
    (app / "tools").symlink_to("../../hidden")
    (app / "way").symlink_to("../../..")
    (app / ".ybs/tools").mkdir(parents=True)
    if not is_trusted:  # with this it cannot be
        (app / ".ybs/tools/evil").symlink_to("../../../../hidden/evil")
    (home / ".ybs/tools").mkdir(parents=True)
    (home / ".ybs/tools/linked").symlink_to(hidden / "evil")
    install(home, "mine", "echo mine", {"name": "mine", "description": "Mine."})
    paths = ["tools", ".ybs/tools", "../../hidden", str(hidden), "way/project/hidden"]
    paths += ["tools/../hidden", f"{app}/way/home/.config/ybs/tools", "~/.ybs/tools"]
    entry = {"name": "named", "path": "tools/evil", "description": "x", "parameters": {"a": {}}}
    if is_trusted:
        trusted(app, {"llm": {"model": "m"}})
    own = {"tools.external": [entry], "tools.search_paths": [*paths, "~/.config/ybs/tools"]}
    async with playing(app, **own) as played:
        assert played.names == ["mine"]
        assert "not among the programs that you trust" in str(played.notices)


SAYS = 'echo "[$GRANTED] $OTHER"'
NEEDS = {"needs": {"environment": ["GRANTED"], "network": True}}


async def test_a_projects_tool_has_a_variable_of_the_persons_only_by_a_grant(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("GRANTED", "OTHER"):
        monkeypatch.setenv(name, "a-value")
    put(project, "tools/beside", script(SAYS), 0o755)
    put(project, "tools/beside.tool.json", json.dumps({"description": "x", **NEEDS}))
    put(project, "tools/big.tool.json", "{")
    put(project, "tools/big.py", "from ybs import tool\n")
    put(project, ".ybs/tools/asked", script(SAYS, {"description": "x", **NEEDS}), 0o755)
    review = give_trust(project).review
    assert review is not None
    said = "Your variable GRANTED goes to tools/beside (a tool): not granted"
    assert [line for line in lines_of(review) if "GRANTED goes" in line] == [said]
    async with playing(project) as played:
        assert played.names == []
        assert str(played.notices).count("it reads GRANTED, which you have not granted to it") == 2
    give(this_host(), review, review.grantable)
    async with playing(project) as played:
        assert played.names == ["beside"]
        assert (await played.run("beside")).output == "[a-value]"
        (notice,) = (each for each in played.notices if "asked" in each)
        assert "name it in a .tool.json" in notice


async def test_a_projects_tool_takes_the_name_of_no_tool_of_the_persons_or_a_servers(
    project: Path, home: Path
):
    install(home, "search", "echo mine")
    put(project, ".ybs/tools/theirs", script("echo theirs", {"name": "search"}), 0o755)
    for name in ("mcp__time__now", "fine"):
        put(project, f".ybs/tools/{name}", script("echo 1"), 0o755)
    give_trust(project)
    async with playing(project) as played:
        assert played.names == ["search", "fine"]
        assert (await played.run("search")).output == "mine"
        assert "a name that begins with mcp__ is one of a server's tool" in str(played.notices)


async def test_a_name_of_the_persons_is_theirs_also_where_their_tool_cannot_be_used(
    project: Path, home: Path
):
    put(home, f"{FOLDER}/web-search", "#!/usr/bin/env no-such-program\n", 0o755)
    put(home, f"{FOLDER}/named.py", 'from ybs import tool\nNAME = "inner"\nraise SystemExit\n')
    put(home, f"{FOLDER}/not-executable", "x")
    (home / FOLDER / "gone").symlink_to(home / "nowhere")
    off = {"name": "off", "path": "/bin/true", "enabled": False}
    put(home, ".config/ybs/config.json", json.dumps({"tools": {"external": [off]}}))
    install(home, "used", "echo mine", {"description": "x", "parameters": {"fine": {}}})
    taken = ["web_search", "inner", "not_executable", "gone"]
    for name in [*taken, "off", "used", "fine"]:
        put(project, f".ybs/tools/x-{name}", script("echo 1", {"name": name}), 0o755)
    give_trust(project)
    async with playing(project) as played:
        assert played.names == ["used", "fine"]
        assert (await played.run("used")).output == "mine"
        for name in [*taken, "off", "used"]:
            assert f"{name!r} is the name of a tool of your own" in str(played.notices)


async def test_a_name_is_the_persons_then_a_plugins_and_then_the_projects(
    project: Path, home: Path, tmp_path: Path
):
    """Whether or not the first one can be used: a rule for the name is about no other one."""
    plugin = tmp_path / "plugin"
    put(plugin, ".claude-plugin/plugin.json", '{"name": "helper"}')
    for name in ("used", "broken", "fine", "check"):
        put(plugin, f"tools/x-{name}", script("echo plugin"), 0o755)
        put(plugin, f"tools/x-{name}.tool.json", json.dumps({"name": name}))
    put(plugin, "tools/check", script("echo plugin"), 0o755)
    put(plugin, "tools/lint", script("echo plugin"), 0o755)
    put(plugin, "tools/lint.tool.json", "not json")
    assert main(["plugin", "add", str(plugin), "--yes"]) == 0
    install(home, "used", "echo mine")
    put(home, f"{FOLDER}/broken", "#!/usr/bin/env no-such-program\n", 0o755)
    put(home, ".config/ybs/config.json", json.dumps({"safety": {"allow": ["broken", "lint"]}}))
    for name in ("used", "broken", "fine", "lint", "free"):
        put(project, f".ybs/tools/y-{name}", script("echo project", {"name": name}), 0o755)
    give_trust(project)
    async with playing(project) as played:
        ran = {name: (await played.run(name)).output for name in played.names}
        assert ran == {"used": "mine", "fine": "plugin", "check": "plugin", "free": "project"}
        said = "\n".join(played.notices)
        assert all(f"{n!r} is the name of a tool of your own" in said for n in ("used", "broken"))
        assert all(f"{n!r} is the name of a tool of a plugin" in said for n in ("fine", "lint"))


async def test_no_tool_has_a_name_by_which_hooks_or_models_know_one_of_ybs(
    project: Path, home: Path
):
    taken = ["Read", "bash", "EDIT", "multiedit", "WebFetch", "view_file", "Run_Shell", "agent"]
    for number, name in enumerate(taken):
        put(project, f".ybs/tools/{number}", script("echo 1", {"name": name}), 0o755)
    put(project, ".ybs/tools/fetch", script("echo 1", {"name": "web_fetch"}), 0o755)
    install(home, "shell", "echo 1")
    install(home, "web_search", "echo mine")
    give_trust(project)
    async with playing(project) as played:
        assert played.names == ["web_search"]
        said = "\n".join(played.notices)
        assert "'Read' cannot be used: hooks and models know read_file by this name" in said
        assert "'web_fetch' is the name of a tool of your own" in said
        assert all(repr(name) in said for name in (*taken, "shell"))


async def test_no_rule_of_a_project_answers_what_its_tool_needs(project: Path, home: Path):
    put(project, ".ybs/tools/lint", script("echo 1"), 0o755)
    needs = {"description": "x", "needs": {"network": True}}
    put(project, ".ybs/tools/lint.tool.json", json.dumps(needs))
    trusted(project, {"safety": {"allow": ["lint"]}})
    for own, asked in (({}, 1), ({"safety": {"allow": ["lint"]}}, 0)):
        put(home, ".config/ybs/config.json", json.dumps(own))
        async with playing(project) as played:
            await played.run("lint")
            assert len(played.questions) == asked


async def test_a_rule_of_the_persons_settings_counts_for_what_the_question_about_trust_showed(
    project: Path, home: Path
):
    """A program that says itself what it needs says so once it is trusted."""
    described = {"name": "lint", "description": "x", "needs": {"network": True}}
    put(project, ".ybs/tools/shown", script("echo 1"), 0o755)
    put(project, ".ybs/tools/shown.tool.json", json.dumps({**described, "name": "check"}))
    put(project, ".ybs/tools/lint", script("echo 1", described), 0o755)
    put(home, ".config/ybs/config.json", json.dumps({"safety": {"allow": ["lint", "check"]}}))
    review = give_trust(project).review
    assert review is not None
    assert "; it is called check; it needs the network" in str(lines_of(review))
    async with playing(project) as played:
        for name, asked in (("check", 0), ("lint", 1), ("lint", 2)):
            assert not (await played.run(name)).is_error
            assert len(played.questions) == asked
        played.answer = Answer(is_allowed=True, is_for_session=True)
        for _ in range(2):
            await played.run("lint")
        assert len(played.questions) == 3


ODD: dict[str, bytes] = {
    "plain": b'{"needs": {"network": true}}',
    "a list": b'[{"needs": {"network": true}}]',
    "a list of two": b'[{}, {"name": "more", "needs": {"network": true}}]',
    "a key twice": b'{"needs": {}, "name": "other", "needs": {"network": true}, "name": "lint"}',
    "a byte order mark": b'\xef\xbb\xbf{"needs": {"network": true}}',
    "UTF-16": '{"needs": {"network": true}}'.encode("utf-16"),
    "other types": b'{"needs": {"network": "true", "read": "~/data"}}',
    "other case": b'{"Needs": {"network": true}, "NAME": "other"}',
    "null": b'{"needs": null}',
    "too large": b'{"needs": {"network": true}}' + b" " * 16_000,
    "nested deeply": b'{"needs": {"network": true}, "parameters": {"a": ' + b"[" * 5_000 + b"]" * 5_000 + b"}}",
    "odd parameters": b'{"needs": {"network": true}, "parameters": {"a": 1}}',
    "nothing": b"",
}  # fmt: skip


@pytest.mark.parametrize("form", ODD)
@pytest.mark.parametrize("folder", ["tools", ".ybs/tools"])
async def test_the_question_about_trust_reads_a_description_as_the_session_does(
    folder: str, form: str, project: Path, home: Path
):
    """Whatever its form: what is not shown is no tool, and a rule for its name covers what was shown alone."""
    put(project, f"{folder}/lint", script("echo 1"), 0o755)
    put(project, f"{folder}/lint.tool.json", "").write_bytes(ODD[form])
    put(home, ".config/ybs/config.json", json.dumps({"safety": {"allow": ["lint", "other"]}}))
    review = give_trust(project).review
    assert review is not None
    (line,) = (each for each in lines_of(review) if each.startswith(f"{folder}/lint: "))
    is_shown = "; it needs the network" in line
    is_unfit = "; it is not used: in " in line
    async with playing(project) as played:
        assert bool(played.names) is not is_unfit
        assert ("lint cannot be used: " in str(played.notices)) is is_unfit
        for name in played.names:
            await played.run(name)
            tool = played.environment.external_tools.usable[0].definition
            assert (tool.needs.words == "the network") is is_shown
        assert not played.questions
    assert is_shown is (form in ("plain", "a key twice"))


async def test_a_description_that_came_after_the_trust_makes_no_tool(project: Path, home: Path):
    put(project, "lint/it", "#!/bin/sh\n", 0o755)
    own = {"safety": {"allow": ["it"]}, "tools": {"search_paths": ["lint"]}}
    put(home, ".config/ybs/config.json", json.dumps(own))
    trusted(project, {"mcpServers": {"s": {"command": "lint/it"}}})
    put(project, "lint/it.tool.json", json.dumps({"needs": {"network": True}}))
    async with playing(project) as played:
        assert played.names == []
        assert "lint/it cannot be used: the file that describes it is not among those" in str(played.notices)  # fmt: skip


async def test_the_persons_own_settings_give_a_tool_of_the_project_a_variable_and_no_key(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GRANTED", "a-value")
    put(project, ".ybs/tools/lint", script(SAYS), 0o755)
    give_trust(project)
    entry = {"name": "lint", "path": ".ybs/tools/lint", "description": "x", **NEEDS}
    for api_key_env, names in (("OTHER", ["lint"]), ("GRANTED", [])):
        work = {"endpoint": "https://models.example/v1", "api_key_env": api_key_env}
        put(home, ".config/ybs/config.json", json.dumps({"providers": {"work": work}}))
        async with playing(project, **{"tools.external": [entry], "tools.search_paths": []}) as it:
            assert it.names == names
            assert not names or (await it.run("lint")).output == "[a-value]"


async def test_a_program_of_the_project_never_gets_the_key_of_a_provider(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    """Of one that ybs knows, of a preset, or of the person's own, whatever they call the variable."""
    keys = ["OPENAI_API_KEY", "GROQ_API_KEY", "WORK_LOGIN"]
    for name in keys:
        monkeypatch.setenv(name, "the-key")
    own = {"endpoint": "https://models.example/v1", "api_key_env": "WORK_LOGIN"}
    put(home, ".config/ybs/config.json", json.dumps({"providers": {"work": own}}))
    for name in keys:
        described = {"description": "A tool.", "needs": {"environment": [name]}}
        put(project, f".ybs/tools/{name}", script("env"), 0o755)
        put(project, f".ybs/tools/{name}.tool.json", json.dumps(described))
    review = give_trust(project).review
    assert review is not None
    assert (len(review.variables), review.grantable) == (3, ())
    async with playing(project, "auto") as played:
        assert (played.names, len(played.notices)) == ([], 3)


async def test_a_reload_finds_what_is_new_and_forgets_what_is_gone(project: Path, home: Path):
    gone = install(home, "gone", "echo 1")
    install(home, "stays", "echo 1")
    async with playing(project) as played:
        assert played.names == ["gone", "stays"]
        gone.unlink()
        install(home, "new", "echo 1")
        await played.environment.external_tools.reload()
        assert played.names == ["new", "stays"]


async def test_python_code_needs_no_more_than_a_function(project: Path, home: Path):
    code = (
        'from ybs import tool\n\n\n@tool(cwd="project")\ndef lines(path: str) -> int:\n'
        '    """Count lines."""\n    print("noise")\n    return len(open(path).readlines())\n\n\n'
        '@tool\ndef fail() -> None:\n    """Fail."""\n    raise LookupError("nothing there")\n'
    )
    put(home, f"{FOLDER}/counting.py", code)
    (project / "a.txt").write_text("1\n2\n")
    async with playing(project) as played:
        assert played.names == ["lines", "fail"]
        assert (await played.run("lines", path="a.txt")).output == "2"
        failed = await played.run("fail")
        assert failed.is_error
        assert "LookupError: nothing there" in failed.output


def test_a_file_that_has_changed_is_another_program_whatever_time_it_claims(tmp_path: Path):
    program = tmp_path / "it"
    program.write_bytes(b"one")
    key, stamp = key_of(program), program.stat()
    kept = SchemaCache(tmp_path / "cache.json")
    kept.put(key, Saying(answer=b"{}"))
    kept.save()
    assert SchemaCache(tmp_path / "cache.json").get(key_of(program)) == Saying(answer=b"{}")
    program.write_bytes(b"other")
    os.utime(program, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert key_of(program) != key


@pytest.mark.parametrize("text", [b"", b"[]", b'{"sayings": {}, "version": 1}', b"\xff"])
def test_a_cache_of_no_use_is_an_empty_one(text: bytes, tmp_path: Path):
    file = tmp_path / "cache.json"
    file.write_bytes(text)
    file.chmod(0o600)
    assert SchemaCache(file).get("x") is None
