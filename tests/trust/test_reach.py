"""Every file of a project that a command reaches is bound to the trust, however it is spelled."""

import json
from pathlib import Path
from typing import Any

import pytest

from rows import every_row
from trusting import give_trust, is_trusted, put, trusted, wanting
from ybs.core.errors import ConfigError
from ybs.trust.reach import CommandReach, reach
from ybs.trust.wording import lines_of

FILES = {
    "h": "#!/bin/sh\nexit 0\n",
    "x/h": "#!/bin/sh\nexit 1\n",
    "x/y/deep.sh": "exit 2\n",
    "my hook.sh": "exit 3\n",
    "server.js": "1\n",
    "lib/pre.js": "2\n",
    "pkg/__init__.py": "",
    "pkg/mod.py": "3\n",
    "pkg/tool/__init__.py": "",
    "pkg/tool/__main__.py": "4\n",
    "src/inner/__init__.py": "",
    "src/inner/run.py": "5\n",
    "hooks/a.sh": "exit 5\n",
    "hooks/b.sh": "exit 6\n",
    "data.json": "{}\n",
    "ünï.sh": "exit 7\n",
}


@pytest.fixture
def tree(project: Path) -> Path:
    for name, text in FILES.items():
        put(project, name, text, 0o755 if text.startswith("#!") else 0o644)
    (project / "link").symlink_to("x/h")
    (project / "away").symlink_to("x")
    (project / "chain").symlink_to("link")
    (project / "absolute").symlink_to(project / "x/y")
    (project / "shell").symlink_to("/bin/sh")
    (project / "up").symlink_to("x/y")
    return project.resolve()


def found(folder: Path, *words: str) -> CommandReach:
    return reach([word.replace("TOP", str(folder)) for word in words], folder, folder.parent)


@every_row(
    "words, files",
    [
        ("./h", "h"),
        ("h", "h"),
        ("TOP/h", "h"),
        ("../project/h", "h"),
        ("~/project/h", "h"),
        ("$HOME/project/h", "h"),
        (".//x/../h", "h"),
        ("$CLAUDE_PROJECT_DIR/h", "h"),
        ('"${YBS_PROJECT_DIR}"/h --now', "h"),
        ("${CLAUDE_PROJECT_DIR:-.}/h", "h"),
        ('"$PWD"/h', "h"),
        ('"$(pwd)/h"', "h"),
        ("`pwd`/h", "h"),
        ('"$(git rev-parse --show-toplevel)/h"', "h"),
        (r"\./h;true", "h"),
        ("'./h'", "h"),
        ('"./"h', "h"),
        ("true&&./h||false", "h"),
        ("(./h)", "h"),
        ("{ ./h; }", "h"),
        ("env X=y ./h", "h"),
        ("X=y exec ./h", "h"),
        ("sh ./h", "h"),
        ("sh<h", "h"),
        (". ./h", "h"),
        ("source h", "h"),
        ("cd x && ./h", "h x/h"),
        ("cd x;cd y;. ./deep.sh", "x/y/deep.sh"),
        ("cd x\n./y/deep.sh", "x/y/deep.sh"),
        ("cd .. && project/h", "h"),
        ("cd / && sh .TOP/h", "h"),
        ("env -C x ./y/deep.sh", "x/y/deep.sh"),
        ("PATH=x/y:$PATH deep.sh", "x/y/deep.sh"),
        ("bash -c 'cd x && ./y/deep.sh'", "x/y/deep.sh"),
        ("""bash -c "sh -c './x/y/deep.sh'" """, "x/y/deep.sh"),
        ("sh 'my hook.sh'", "my hook.sh"),
        (r"sh my\ hook.sh", "my hook.sh"),
        ('''bash -c "sh 'my hook.sh'"''', "my hook.sh"),
        ("""sh -c 'sh "my hook.sh"'""", "my hook.sh"),
        ('sh -c "${X:-./h}"', "h"),
        ("D=x; $D/y/deep.sh", "away x/y/deep.sh"),
        ("for f in hooks/*.sh; do sh $f; done", "hooks/a.sh hooks/b.sh"),
        ("sh hooks/[a].sh", "hooks/a.sh"),
        ("sh hooks/{a,b}.sh", "hooks/a.sh hooks/b.sh"),
        ("hooks/?.sh", "hooks/a.sh hooks/b.sh"),
        ("sh ünï.sh", "ünï.sh"),
        ("node --require ./lib/pre.js server.js", "lib/pre.js server.js"),
        ("node --require=./lib/pre ./server", "lib/pre.js server.js"),
        ("prog --config=data.json", "data.json"),
        ("prog -cdata.json", "data.json"),
        ("prog @data.json", "data.json"),
        ("prog a,data.json:b", "data.json"),
        ("python -m pkg.mod", "pkg/__init__.py pkg/mod.py"),
        ("python3 -Bmpkg.mod", "pkg/__init__.py pkg/mod.py"),
        ('python -m "pkg.tool"', "pkg/__init__.py pkg/tool/__init__.py pkg/tool/__main__.py"),
        ("python -m pkg", "pkg/__init__.py"),
        ("python pkg/tool", "pkg/tool/__init__.py pkg/tool/__main__.py"),
        ('python -c "import pkg.mod"', "pkg/__init__.py pkg/mod.py"),
        ("PYTHONPATH=src python -m inner.run", "src/inner/__init__.py src/inner/run.py"),
        ("flask --app pkg.mod:app", "pkg/__init__.py pkg/mod.py"),
        ("./link", "link x/h"),
        ("./chain", "chain link x/h"),
        ("away/h", "away x/h"),
        ("absolute/deep.sh", "absolute x/y/deep.sh"),
        ("cd away && ./y/deep.sh", "away x/y/deep.sh"),
        ("bash <(cat h)", "h"),
        ("./up/../h", "h x/h"),
        ("./shell h", "h shell"),
        ("ruff format hooks/*.sh", ""),
        ("date > h", ""),
        ("date >>'my.log' 2>&1", ""),
        ("date | tee -a h", ""),
        ("echo 'a' >\"$CLAUDE_PROJECT_DIR\"/h", ""),
        ("cat <h >x/h", "h"),
        ("node -e 'a=>x/h'", "x/h"),
        ("echo done", ""),
        ("jq -r .tool_input.file_path | xargs ruff format", ""),
        ("/usr/bin/true /etc/passwd", ""),
    ],
)
def test_a_file_is_reached_however_it_is_spelled(tree: Path, words: str, files: str) -> None:
    names = {*found(tree, words).files}
    expected = {*files.split()} if files != "my hook.sh" else {files}
    if words.startswith("python pkg"):
        expected -= {"pkg/tool/__init__.py"}
    assert names == expected


@pytest.mark.integration
@every_row(
    "words, unknown",
    [
        ("make", "`make`"),
        ("cd x && /usr/bin/make -s check", "`make`"),
        ("bash -c 'npm run lint'", "`npm`"),
        ("env CI=1 just", "`just`"),
        ('eval "$X"', "`eval`"),
        ("python3 -m pkg.mod", "`python3`"),
        ("python3 .ybs/hooks/own.py -c", "`python3`"),
        ("curl -s localhost | sh", "`sh`, given what another program prints"),
        ("$RUN x", "a program that something else names"),
        ("for f in hooks/*.sh; do . $f; done", "a program that something else names"),
        ("find hooks -exec {} ;", "a program that something else names"),
        ("find . -name h -exec sh {} ;", "a program that something else names"),
        ("ls hooks | xargs -n1 sh", "a program that something else names"),
        ('while read f; do sh "$f"; done', "a program that something else names"),
        ("sh $(ls hooks | head -1)", "a program that something else names"),
        ("perl -Ilib -MFoo -e 1", "`perl`"),
        ("git -c core.hooksPath=hooks commit", "a program that something else names"),
        ("for f in *; do . ./$f; done", "what may be any file"),
        ("sh *", "what may be any file"),
        ("./loads", "loads"),
        ("./makes", "makes"),
        ("./opens", "opens"),
        ("sh ./odd.txt", "odd.txt"),
        ("./interpreted", "interpreted"),
        ("node server.js", "server.js"),
        ("x/snake", "x/snake"),
        ("python3 .ybs/hooks/paths.py", ".ybs/hooks/paths.py"),
        ("python3 .ybs/hooks/starts.py", ".ybs/hooks/starts.py"),
        ("python3 .ybs/hooks/makes.py", ".ybs/hooks/makes.py"),
        ("node .ybs/hooks/needs.js", ".ybs/hooks/needs.js"),
        ("""perl -e 'system("sh ".join(".","x","sh"))'""", "`perl`"),
        ("""awk 'BEGIN { system("sh x" ".sh") }'""", "`awk`"),
        ("sed -n '1e sh x.sh' data.json", "`sed`"),
        ("cp -r . /tmp/z; sh /tmp/z/h", "a program that something else names"),
        ('ln -s "$PWD" /tmp/z; cd /tmp/z/x; sh y/deep.sh', "a program that something else names"),
        ("tar c . | tar x -C $TMPDIR; sh $TMPDIR/h", "a program that something else names"),
        ("HOME=. bash -lc true", "a program that something else names"),
        ("flake8 src", "`flake8`"),
        ("node .", "`node`"),
        ("node ./lib", "`node`"),
        ("node --test", "`node`"),
        ("perl -e 1 -Mx", "`perl`"),
        ("tar cf /dev/null *", "`tar`"),
        ("rg --files *", "a program that something else names"),
        ("git difftool -y", "a program that something else names"),
        ("cd /usr && bin/h", "a program that something else names"),
        ("sh -c flake8", "`sh`"),
        ("echo x | node", "`node`, given what another program prints"),
        ("sh <<E\nflake8\nE", "`flake8`"),
        ("if (true) then flake8; fi", "`flake8`"),
        ("f() { flake8; }; f", "`flake8`"),
        ("case x in x) flake8;; esac", "`flake8`"),
        ("echo in x\nflake8)", "`flake8`"),
        (">/dev/null flake8", "`>/dev/null`"),
        ("true 2>&1 & flake8", "`flake8`"),
        ("true >&2\nflake8", "`flake8`"),
        ("true &>out; flake8", "`flake8`"),
        ("true 2>&1flake8", "`1flake8`"),
        ('x="$(flake8)"', "`flake8`"),
        ('x="$(: "a b"; flake8)"', "`flake8`"),
        ('echo "it`flake8`"', "`…`"),
        ("x=$(flake8 true)", "`flake8`"),
        ("env -u$(flake8) true", "a program that something else names"),
        ("export $(git log -1 --format=%s); date", "a program that something else names"),
        ("git log -1 --format=%s | xargs env", "a program that something else names"),
        ("git log | xargs -n 1 /usr/bin/time", "a program that something else names"),
        ("git ls-files | xargs sed -i 's/ *$//'", "a program that something else names"),
        ('awk "BEGIN{print \\"$(git log -1)\\"}"', "a program that something else names"),
        ("git grep $(git log -1 --format=%s)", "a program that something else names"),
        ('g"i"t diff "$1"', "a program that something else names"),
        ("if true; then sed -i x `ls`; fi", "a program that something else names"),
        ("case $(flake8) in a) true;; esac", "a program that something else names"),
        ("case x in a) true;; b ) flake8;; esac", "`flake8`"),
        ("fla'ke'8", "`flake8`"),
        ("fla\\ke8", "`fla\x02e8`".replace("\x02", "…")),
        ("fla\\\nke8", "`flake8`"),
        ("true # don't\nflake8\n# it's", "`flake8`"),
        ("true 'a", "`…`"),
        ("$'flake8'", "a program that something else names"),
        (f"true {'x' * 1_000}", "a command too long to be read"),
        ("./waits", "waits"),
        ("./picks", "picks"),
        ("python3 .ybs/hooks/own.py", "`python3`"),
        ("node .ybs/hooks/needs.js", "`node`"),
        ("perl hooks/a.pl", "`perl`"),
        ("PERL5OPT='-I. -Mmm' true", "a program that something else names"),
        ("PYTHONPATH=src .ybs/hooks/own.py", "a program that something else names"),
        ("env PYTHONHOME=x true", "a program that something else names"),
        ("export PYTHONUSERBASE=x", "a program that something else names"),
        ("git --git-dir=fx status", "a program that something else names"),
        ("GIT_COMMON_DIR=fx git status", "a program that something else names"),
        ("GIT_COMMON_DIR=fx; git status", "a program that something else names"),
        ("git log --format=%s | sed 's/a/b/e'", "`sed`"),
        ("git ls-files | awk '{print}'", "`awk`"),
        ("rustfmt x.rs", "`rustfmt`"),
        ("PATH=./bin:$PATH; date", "a program that something else names"),
        ("HOME=/tmp ./h", "a program that something else names"),
        ("HOME=$PWD/x bash -lc true", "a program that something else names"),
        ("HOME=TOP/x bash -lc true", "a program that something else names"),
    ],
)
def test_what_runs_files_that_cannot_be_known_is_named(tree, words, unknown):
    put(tree, ".ybs/hooks/own.py", "import json\n")
    put(tree, "loads", "#!/bin/sh\n. ./hooks/a.sh\n", 0o755)
    put(tree, "makes", "#!/usr/bin/env bash\nif make check; then exit 0; fi\n", 0o755)
    put(tree, "opens", '#!/bin/sh\n"$1" now\n', 0o755)
    put(tree, "waits", "#!/bin/sh\ntimeout -k 1 5 flake8\n", 0o755)
    put(tree, "picks", "#!/bin/sh\ncase x in x) nice -n 1 flake8;; esac\n", 0o755)
    put(tree, "odd.txt", "./h\n")
    put(tree, "interpreted", "#!./h\n", 0o755)
    put(tree, "x/snake", "#!/usr/bin/env python3\nimport json\n", 0o755)
    put(tree, ".ybs/hooks/paths.py", "import sys\nsys.path.insert(0, '.')\nimport zz\n")
    put(tree, ".ybs/hooks/starts.py", "import os\nos.system('./h')\n")
    put(tree, ".ybs/hooks/makes.py", "import subprocess\nsubprocess.run(['make'])\n")
    put(tree, ".ybs/hooks/needs.js", "require('../../lib/pre')\n")
    assert unknown in found(tree, words).unknown


def test_what_runs_nothing_but_what_it_names_is_not_open(tree: Path) -> None:
    put(tree, "plain", "#!/bin/sh\n# make sure\ncat >/dev/null; exit 2\n", 0o755)
    for words in (
        "cp data.json /tmp/copy",
        "./plain",
        "sh ./h",
        "jq -r .tool_input.file_path | xargs ruff format",
        "jq . data.json",
        "git status --short",
        "timeout 5 ruff format; echo 'done; (ok)' \"it's\" # don't",
        'f=$(jq -r .x); if [[ $f == *.py && -f $f ]]; then ruff check "$f"; fi',
        "case x in a.py|'a b') ruff format x;; b.md) exit $((1+1));; esac",
        'say() { echo "$(date +%T) $1"; }; say "now"',
        'bash "$CLAUDE_PROJECT_DIR/h"',
        "echo ran >&2; ruff format . 2>&1 || exit 2",
        "ls &> /dev/null; ls >&-",
        "git diff --name-only | xargs ruff format",
        'git -C "$CLAUDE_PROJECT_DIR" status; sort data.json',
        'LC_ALL=C sort data.json; FILE=$(jq -r .x) && ruff format "$FILE"; export LANG=C',
    ):
        assert found(tree, words).unknown == (), words
    assert found(tree, "tool", "${X}", "a b").unknown == ()


@pytest.mark.integration
def test_a_command_too_long_to_be_read_says_so(tree: Path) -> None:
    assert found(tree, " ".join(f"word{n}" for n in range(3_000))).unknown == (
        "a command too long to be read",
    )
    for number in range(40):
        put(tree, f"many/d{number}/f", "")
    assert "a command too long to be read" in found(tree, "sh many/*; sh many/*/f").unknown


def group(command: str, **more: Any) -> dict[str, Any]:
    return {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command, **more}]}]}}


@pytest.mark.integration
@every_row(
    "command, changed",
    [
        ("TOP/h", "h"),
        ("cd x && ./h", "x/h"),
        ("python3 -m pkg.mod", "pkg/__init__.py"),
        (". ./h", "h"),
        ("away/h", "x/h"),
        ("./link", "x/h"),
        ("for f in hooks/*; do sh $f; done", "hooks/new"),
    ],
)
def test_a_changed_file_asks_again_and_shows_the_difference(tree, command, changed):
    file = tree / changed
    was = file.read_text() if file.exists() else None
    trusted(tree, group(command.replace("TOP", str(tree))))
    assert is_trusted(tree)
    file.write_text("evil\n")
    review = wanting(tree, group(command.replace("TOP", str(tree))))
    assert not review.is_trusted
    assert [change.path for change in review.changes] == [changed]
    file.unlink() if was is None else file.write_text(was)
    assert is_trusted(tree)


def test_a_link_that_leads_elsewhere_asks_again(tree: Path) -> None:
    for name, old, new in (
        ("link", "x/h", "h"),
        ("away", "x", "hooks"),
        ("shell", "/bin/sh", "/bin/cat"),
    ):
        trusted(tree, group(f"{name} link/../away/h"))
        (tree / name).unlink()
        (tree / name).symlink_to(new)
        assert not is_trusted(tree), name
        (tree / name).unlink()
        (tree / name).symlink_to(old)
        assert is_trusted(tree), name


def test_outputs_and_other_files_change_without_a_question(tree: Path) -> None:
    trusted(tree, group("./h >> log.txt | tee -a other.log; ruff format src/*.py"))
    put(tree, "log.txt", "1")
    put(tree, "other.log", "2")
    put(tree, "src/new.py", "3")
    put(tree, "pkg/mod.py", "4")
    assert is_trusted(tree)


def test_consent_names_what_cannot_be_known(tree: Path) -> None:
    hooks = lines_of(wanting(tree, group("make check")))
    assert any(
        'the hook "make check" at Stop runs `make`, which may run files of the project that change later; it only reads the project'
        in line
        for line in hooks
    )
    hooks = lines_of(wanting(tree, group("make check", project="write")))
    assert any(line.endswith("it may change the project") for line in hooks)
    assert not any("may run files" in line for line in lines_of(wanting(tree, group("./h"))))
    servers = {"mcpServers": {"s": {"command": "npx", "args": ["-y", "thing"]}}}
    assert any("the MCP server s runs `npx`" in line for line in lines_of(wanting(tree, servers)))
    entry: dict[str, Any] = {"command": "npx", "env": {"A": "${TOKEN}"}, "args": ["${TOKEN}"]}
    for network, end in (
        (True, "the network, your variable TOKEN"),
        (False, "your variable TOKEN"),
    ):
        given = lines_of(wanting(tree, {"mcpServers": {"s": {**entry, "network": network}}}))
        assert any(line.endswith(f"it only reads the project and has {end}") for line in given)
    bare = {"mcpServers": {"s": {"command": "npx", "network": False}}}
    assert any(line.endswith("it only reads the project") for line in lines_of(wanting(tree, bare)))
    servers["mcpServers"]["s"]["project"] = "none"
    assert not any("may run" in line for line in lines_of(wanting(tree, servers)))
    profiles = {"profiles": {"p": group("make")}}
    assert any("runs `make`" in line for line in lines_of(wanting(tree, profiles)))
    put(tree, ".claude/settings.json", json.dumps(group("tox")))
    assert any("runs `tox`" in line for line in lines_of(wanting(tree, {})))


def test_an_mcp_server_and_an_external_tool_are_bound_in_any_spelling(tree: Path) -> None:
    servers = {"s": {"command": "node", "args": ["--require=./lib/pre.js", f"{tree}/server.js"]}}
    put(tree, ".mcp.json", json.dumps({"mcpServers": servers}))
    tools = {"external": [{"name": "x", "path": f"{tree}/away/h"}]}
    review = wanting(tree, {"tools": tools})
    assert {"lib/pre.js", "server.js", "x/h", "away"} <= review.files.keys()
    assert give_trust(tree).review is not None
    put(tree, "lib/pre.js", "evil")
    assert not is_trusted(tree)


def test_a_file_too_large_to_be_bound_is_not_trusted(tree: Path) -> None:
    put(tree, "big.sh", "x" * 1_000_001)
    review = wanting(tree, group(f"sh {tree}/big.sh"))
    assert "too large" in review.problem
    with pytest.raises(ConfigError):
        trusted(tree, group("cd x; sh ../big.sh"))
