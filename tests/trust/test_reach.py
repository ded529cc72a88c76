"""Every file of a project that a command reaches is bound to the trust, however it is spelled."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from hosts import this_host
from rows import every_row
from trusting import give_trust, is_trusted, put, trusted, wanting
from ybs.core.errors import ConfigError, ToolError
from ybs.trust import files as trust_files
from ybs.trust.decision import give, is_unchanged, reach_unchanged
from ybs.trust.reach import CommandReach, reach
from ybs.trust.settings import load
from ybs.trust.wording import lines_of

FILES = {
    "h": "#!/bin/sh\nexit 0\n",
    "x/a>b": "{}\n",
    "x/a| tee h": "{}\n",
    "x/h": "#!/bin/sh\nexit 1\n",
    "x/y/deep.sh": "exit 2\n",
    "my hook.sh": "exit 3\n",
    "server.js": "1\n",
    "lib/pre.js": "2\n",
    "lib/The/Checks.pm": "1;",
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


#: How a command is called that is not understood as a whole, and one that may run whatever there is.
MORE, ANY_FILE = "more than plain commands", "what may be any file"


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
    """Return what a shell's text reaches, or several words of a program."""
    text, *more = (word.replace("TOP", str(folder)) for word in words)
    return reach((text, *more) if more else text, folder, folder.parent)


@pytest.mark.integration
@every_row(
    "words, files",
    [
        ("./h", "h"),
        ('"${CLAUDE_PROJECT_DIR:?}/h"', "h"),
        ('"${CLAUDE_PROJECT_DIR%/}/x/h"', "x/h"),
        ('D="$CLAUDE_PROJECT_DIR"; "$D/h"', "away h x/h"),
        ('D="$CLAUDE_PROJECT_DIR"; "$D"/x/h', "x/h"),
        ('"$(realpath .)/h"', "away h x/h"),
        ("python3 -c 'import json, pkg.mod as m, os'", "pkg/__init__.py pkg/mod.py"),
        ("python3 -c '__import__(\"pkg.mod\")'", "pkg/__init__.py pkg/mod.py"),
        ("perl -Ilib -MThe::Checks -e 1", "lib/The/Checks.pm"),
        ("perl -e 'use lib \"lib\"; use The::Checks;'", "lib/The/Checks.pm"),
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
        ("cat 'x/a>b' >h", "x/a>b"),
        ('cat "$PWD/x/a>b" | tee h', "x/a>b"),
        ("cat 'x>h' x/'a| tee h'", "x/a| tee h"),
        ("/usr/bin/true /etc/passwd", ""),
    ],
)
def test_a_file_is_reached_however_it_is_spelled(tree: Path, words: str, files: str) -> None:
    names = {*found(tree, words).files}
    expected = {*files.split()} if files not in ("my hook.sh", "x/a| tee h") else {files}
    if words.startswith("python pkg"):
        expected -= {"pkg/tool/__init__.py"}
    assert names == expected


@pytest.mark.integration
@every_row(
    "words, unknown",
    [
        ("make", "`make`"),
        ("cd x && /usr/bin/make -s check", "`/usr/bin/make`"),
        ("bash -c 'npm run lint'", "`bash`"),
        ("env CI=1 just", "`env`"),
        ('eval "$X"', MORE),
        ("python3 -m pkg.mod", "`python3`"),
        ("python3 .ybs/hooks/own.py -c", ".ybs/hooks/own.py"),
        ("curl -s localhost | sh", "`sh`"),
        ("$RUN x", ANY_FILE),
        ("for f in hooks/*.sh; do . $f; done", ANY_FILE),
        ("find hooks -exec {} ;", ANY_FILE),
        ("find . -name h -exec sh {} ;", ANY_FILE),
        ("ls hooks | xargs -n1 sh", "`xargs`"),
        ('while read f; do sh "$f"; done', ANY_FILE),
        ("sh $(ls hooks | head -1)", ANY_FILE),
        ("perl -Ilib -MFoo -e 1", "`perl`"),
        ("git -c core.hooksPath=hooks commit", "`git`"),
        ("for f in *; do . ./$f; done", ANY_FILE),
        ("sh *", ANY_FILE),
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
        ("cp -r . /tmp/z; sh /tmp/z/h", "`sh`"),
        ('ln -s "$PWD" /tmp/z; cd /tmp/z/x; sh y/deep.sh', "`sh`"),
        ("tar c . | tar x -C $TMPDIR; sh $TMPDIR/h", ANY_FILE),
        ("HOME=. bash -lc true", MORE),
        ("flake8 src", "`flake8`"),
        ("node .", "`node`"),
        ("node ./lib", "`node`"),
        ("node --test", "`node`"),
        ("perl -e 1 -Mx", "`perl`"),
        ("tar cf /dev/null *", MORE),
        ("rg --files *", MORE),
        ("git difftool -y", "`git`"),
        ("cd /usr && bin/h", "`bin/h`"),
        ("sh -c flake8", "`sh`"),
        ("echo x | node", "`node`"),
        ("sh <<E\nflake8\nE", MORE),
        ("if (true) then flake8; fi", MORE),
        ("f() { flake8; }; f", MORE),
        ("case x in x) flake8;; esac", MORE),
        ("echo in x\nflake8)", MORE),
        (">/dev/null flake8", "`flake8`"),
        ("true 2>&1 & flake8", MORE),
        ("true >&2\nflake8", "`flake8`"),
        ("true &>out; flake8", "`flake8`"),
        ("true 2>&1flake8", MORE),
        ('x="$(flake8)"', MORE),
        ('x="$(: "a b"; flake8)"', MORE),
        ('echo "it`flake8`"', MORE),
        ("x=$(flake8 true)", MORE),
        ("env -u$(flake8) true", MORE),
        ("export $(git log -1 --format=%s); date", MORE),
        ("git log -1 --format=%s | xargs env", "`xargs`"),
        ("git log | xargs -n 1 /usr/bin/time", "`xargs`"),
        ("git ls-files | xargs sed -i 's/ *$//'", MORE),
        ('awk "BEGIN{print \\"$(git log -1)\\"}"', MORE),
        ("git grep $(git log -1 --format=%s)", MORE),
        ('g"i"t diff "$1"', MORE),
        ("if true; then sed -i x `ls`; fi", MORE),
        ("case $(flake8) in a) true;; esac", MORE),
        ("case x in a) true;; b ) flake8;; esac", MORE),
        ("fla'ke'8", "`flake8`"),
        ("fla\\ke8", MORE),
        ("fla\\\nke8", MORE),
        ("true # don't\nflake8\n# it's", MORE),
        ("true 'a", MORE),
        ("$'flake8'", MORE),
        (f"true {'x' * 1_000}", "a command too long to be read"),
        ("./waits", "waits"),
        ("./picks", "picks"),
        ("python3 .ybs/hooks/own.py", ".ybs/hooks/own.py"),
        ("node .ybs/hooks/needs.js", ".ybs/hooks/needs.js"),
        ("perl hooks/a.pl", "`perl`"),
        ("PERL5OPT='-I. -Mmm' true", MORE),
        ("PYTHONPATH=src .ybs/hooks/own.py", MORE),
        ("env PYTHONHOME=x true", "`env`"),
        ("export PYTHONUSERBASE=x", "`export`"),
        ("git --git-dir=fx status", "`git`"),
        ("GIT_COMMON_DIR=fx git status", MORE),
        ("GIT_COMMON_DIR=fx; git status", MORE),
        ("git log --format=%s | sed 's/a/b/e'", "`sed`"),
        ("git ls-files | awk '{print}'", "`awk`"),
        ("rustfmt x.rs", "`rustfmt`"),
        ("PATH=./bin:$PATH; date", MORE),
        ("HOME=/tmp ./h", MORE),
        ("HOME=$PWD/x bash -lc true", MORE),
        ("HOME=TOP/x bash -lc true", MORE),
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


#: Ways of a shell to run or set what no word of the command says plainly, by the name of a file, or to begin another command.
NOT_PLAIN = [
    *("[[ $1 -gt 1 ]]", "[[ a -eq 1 ]]", "[[ -v x ]]", "for f in *; do [[ $f -gt 1 ]]; done", "echo $((f))", "((f))", "$[f]"),
    *("for PATH in bin; do ls; done", "select PATH in bin; do ls; done", "printf -v PATH bin; ls", "printf '-v' PATH bin", "printf \\-v PATH bin"),
    *("printf %n x", "printf %d 'a[x]'", "printf '%(x)T'", "echo bin | read PATH; ls", "read -r PATH <h", "declare -i x=h", "typeset -i x", "local x"),
    *("echo ${!x}", "echo ${a[$f]}", "echo ${f@P}", "echo ${f#h}", "test -v x", "[ -v x ]", "test 'a[0]' -eq 1", "[ h -nt x ]", "[ -f h -a -v x ]"),
    *("mapfile -C make -c 1 x <h", "readarray x", "trap make EXIT", "wait -n", "alias ls=make; ls", "ls() { make; }; ls", "function ls { make; }"),
    *("coproc make", "true & make", "ls &", "true &>out make", "&>out make", "true & >out make", "echo a |& make", "true >&h", "true <&3", "true 3<>h"),
    *("tru\\\ne", "true \\\n-x", "true\r", "true\r\nmake", "true\0make", "true\vmake", "true\fmake", "true\u00a0make", "true\u2003x", "tru\u00e9", "true\u0085x"),
    *("true # x", "#", "", " ", ";", "true;;", "true ;; make", "; true", "| true", "true |", "true &&", "true ||| true", "true && && true", "true;| cat"),
    *("true 'a", 'true "a', "true `", "true $", 'true "$x"', "true '$(make)'", 'true "`make`"', "true $'x'", 'true $"x"', "true \\x", 'true "\\\\"'),
    *("true {a,b}", "true ~root/x", "true ~+/x", "true a~/x", "true x*", "true ?", "true [ab]", "true a[ b", "true !!", "! true", "true ^a^b", "(true)", "{ true; }"),
    *("true <<E\nE", "true <<<x", "cat <(make)", "true > >(make)", "true >|h", "true {x}>h", "true 12>h", "cd 12>h", "x=1 true", "LC_ALL=C sort h", "x+=1", "a[0]=1 true"),
    *("'true", "true 'a\nb'", 'true "a\nb"', "if true; then true; fi", "while true; do true; done", "case x in x) true;; esac", "time true", "true 2>&1true"),
]  # fmt: skip
#: Words that have a known program run another one, work elsewhere, or that are not known of it.
NOT_KNOWN = [
    *("git status --short", "git log -1 > x", "git commit", "git -C x status", "git --exec-path=x status", "git diff --ext-diff", "git diff '' --ext-diff", "git show --textconv", "git diff -Oh", "git diff --output=h"),
    *("git grep -Omake x", "git", "git stash", "git checkout x", "git diff --no-index h x", "git -p log", "git diff --no-ext-diff -O h", "g=x git status"),
    *("jq -L x -n 'include \"m\"; a'", "jq 'import \"m\" as m; m::a'", "jq -rf h", "jq --from-file h", "jq --library-path x .", "jq -n '1\ninclude'"),
    *("sort --compress-program=./h x", "sort --comp=./h", "sort '' --comp=h", "isort -q src", "black .", "rustfmt x"),
    *("cd", "cd -", "cd ..", "cd x/../..", "cd /usr", "cd ~/x", "cd +1", "cd x y", 'cd "${PWD}x"', 'cd "$PWD"x', 'cd "$PWD"/..', "exit x", "exit 1 2", "exit 'a[0]'"),
    *("curl -K h x", "wget x", "find . -name x", "rg x", "xargs rm", "env true", "exec true", "command true", "nice true", "timeout 5 true", "sudo true", "eval true"),
    *(". h", "source h", "sh h", "bash h", "./h", "x/h", "h", "sed -i x h", "awk x", "python3 h", "set h", "shift", "unset x", "export x", "hash -p h ls", "enable -f h x"),
    *("builtin true", "type x", "ulimit 1", "umask 1", "kill 1", "jobs", "bind x", "complete x", "let x", "getopts x y", "test -f x ]", "[ -f h", "[", "]", "test", "/bin/true"),
]  # fmt: skip


@pytest.mark.integration
@every_row("words", [*NOT_PLAIN, *NOT_KNOWN])
def test_what_is_not_plain_or_not_known_is_unknown(tree: Path, words: str) -> None:
    assert found(tree, words).unknown


@every_row(
    "words",
    [
        "cp data.json /tmp/copy",
        "jq . data.json",
        "jq -r .tool_input.file_path",
        "jq -r --arg f x '.a | .b' data.json",
        "ruff check --fix .; ruff format . 2>&1 || exit 2",
        "ruff format src tests\ngofmt -w x.go;",
        "shfmt -w x/h | tee -a out.log",
        "echo ran >&2; echo \"it's done!\" >>'my log'",
        'echo \'done; (ok)\' "it\'s" a\\ b \'é\' "say \\"x\\"\\n" c:d,e=f%g@h+i',
        "ls &> /dev/null; ls >&-; ls 2>/dev/null",
        "ls &>>out && cat <h >x/out",
        'cd "$CLAUDE_PROJECT_DIR" && ruff format .',
        'cd "${YBS_PROJECT_DIR}/x" && mkdir -p y && touch "$PWD/z" ~/z',
        "cd x\n\ncd 'y'; cat deep.sh | sort -u | head -1",
        'date "+%F %T" >> "$CLAUDE_PROJECT_DIR"/log',
        "[ -f h ] && test x = y || printf '%s\\n' no || exit",
        "say done; notify-send 'ybs' \"all done\"",
        "  true  ",
    ],
)
def test_plain_commands_of_known_programs_are_known(tree: Path, words: str) -> None:
    assert found(tree, words).unknown == ()


def test_a_program_that_is_started_without_a_shell_is_never_known(tree: Path) -> None:
    for words, unknown in (
        (("tool", "${X}", "a b"), "`tool`"),
        (("cat", "h"), "`cat`"),
        (("sh", "-e", "x/y/deep.sh"), "x/y/deep.sh"),
        (("./h", "y"), "h"),
        (("node", "-r", "./lib/pre", "TOP/server.js"), "server.js"),
    ):
        assert found(tree, *words).unknown == (unknown,)


@pytest.mark.integration
@every_row("name", ["cat docs/server", "a>b/server", "serv[e]r", "x*/server", "$HOME/s", "~x/s"])
def test_a_programs_only_word_is_a_path_and_no_shells_text(tree: Path, name: str) -> None:
    put(tree, name, "#!/bin/sh\n", 0o755)
    put(tree, "docs/server", "words")
    reached = reach((f"./{name}",), tree, tree.parent)
    assert name in reached.files
    assert name in reached.unknown
    trusted(tree, {"mcpServers": {"s": {"command": name}}})
    put(tree, name, "#!/bin/sh\nevil\n")
    assert not is_trusted(tree)


def test_all_that_is_not_known_is_named_once(tree: Path) -> None:
    words = "make; true; cd x; ./h\nmake x | sh -e 'my hook.sh' 1"
    assert found(tree, words).unknown == ("`make`", "h", "x/h", "my hook.sh")


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


@pytest.mark.integration
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


def _gone(file: Path) -> None:
    file.unlink()


def _dangles(file: Path) -> None:
    file.unlink()
    file.symlink_to("/tmp/nothing-there.sh")


def _fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _folder_dangles(file: Path) -> None:
    shutil.rmtree(file.parent)
    file.parent.symlink_to("/tmp/nothing-there")


def _folder_gone(file: Path) -> None:
    shutil.rmtree(file.parent)


def _new_module(file: Path) -> None:
    (file.parent / "deep").mkdir()
    (file.parent / "deep/__init__.py").symlink_to("/tmp/nothing-there.py")


def _new_library(file: Path) -> None:
    put(file.parent, "deep.cpython-311-x86_64-linux-gnu.so", "x")


@pytest.mark.parametrize(
    ("command", "change"),
    [
        (command, change)
        for command in ("sh x/y/deep.sh", "cd x/y && sh deep.sh", "./absolute/deep.sh")
        for change in (_gone, _dangles, _fifo, _folder, _folder_dangles, _folder_gone)
    ]
    + [("cd x/y; python3 -m deep", change) for change in (_gone, _new_module, _new_library)],
)
def test_all_that_a_command_reached_has_to_be_there_as_it_was(tree: Path, command, change):
    put(tree, "x/y/deep.py", "")
    review = trusted(tree, group(command)).review
    assert review is not None
    reach_unchanged(review, command, tree, tree.parent)
    change(tree / ("x/y/deep.py" if "python3" in command else "x/y/deep.sh"))
    with pytest.raises(ToolError, match="is not the program that you trust"):
        reach_unchanged(review, command, tree, tree.parent)


def test_a_link_that_leads_to_nothing_is_bound_and_a_pipe_is_not_trusted(tree: Path) -> None:
    (tree / "none.sh").symlink_to("/tmp/nothing-there.sh")
    assert found(tree, "sh none.sh").files == ("none.sh",)
    os.mkfifo(tree / "pipe.sh")
    assert "not a regular file" in wanting(tree, group("sh pipe.sh")).problem


def test_outputs_and_other_files_change_without_a_question(tree: Path) -> None:
    trusted(tree, group("./h >> log.txt | tee -a other.log; ruff format src/*.py"))
    put(tree, "log.txt", "1")
    put(tree, "other.log", "2")
    put(tree, "src/new.py", "3")
    put(tree, "pkg/mod.py", "4")
    assert is_trusted(tree)


@pytest.mark.integration
def test_consent_names_what_cannot_be_known(tree: Path) -> None:
    hooks = lines_of(wanting(tree, group("make check")))
    assert any(
        'the hook "make check" at Stop runs `make`, which may run files of the project that change later; it only reads the project'
        in line
        for line in hooks
    )
    hooks = lines_of(wanting(tree, group("make check", project="write")))
    assert any(line.endswith("it may change the project") for line in hooks)
    (said,) = (line for line in lines_of(wanting(tree, group("./h"))) if "may run files" in line)
    assert "runs h, which may run files of the project" in said
    plain = lines_of(wanting(tree, group("ruff format . && cp data.json x")))
    assert not any("may run files" in line for line in plain)
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
    for elsewhere in ({"url": "https://h/mcp"}, {"type": "http", "url": "https://h/mcp"}):
        lines = lines_of(wanting(tree, {"mcpServers": {"s": elsewhere}}))
        assert not any("may run" in line for line in lines)
    typed: dict[str, Any] = {"type": "stdio", "env": {"PATH": "x"}, "command": "cat"}
    assert any(
        "s runs `cat`" in line for line in lines_of(wanting(tree, {"mcpServers": {"s": typed}}))
    )
    servers["mcpServers"]["s"]["project"] = "none"
    assert not any("may run" in line for line in lines_of(wanting(tree, servers)))
    unseen = {"command": "./h", "args": ["big"], "project": "none", "network": False}
    assert any(
        line.endswith("s runs h, which may run files of the project that change later; it sees only h of it")
        for line in lines_of(wanting(tree, {"mcpServers": {"s": unseen}}))
    )  # fmt: skip
    put(tree, ".claude/settings.json", json.dumps(group("tox")))
    assert any("runs `tox`" in line for line in lines_of(wanting(tree, {})))


@every_row(
    "rules, named",
    [
        (["run_shell(make test)"], "`make`"),
        (["run_shell(npm run *)", "run_shell:make", "run_shell(make *)"], "`npm`, `make`"),
        (["run_shell(ls * && ./h)"], "`./h`"),
        (["run_shell(sh -c 'ls x')"], "`sh`"),
        (["run_shell(X=1 make)"], "more than plain commands"),
        (["run_shell(ls*)"], "`ls*`"),
        (["run_shell"], "`*`"),
        (["run_shell(ls *)", "run_shell(cat a | sort)", "write_file(**)", "make(", "run_*"], ""),
        ([], ""),
    ],
)
def test_the_question_names_what_rules_let_run_that_may_change_later(rules, named, tree: Path):
    review = wanting(tree, {"safety": {"allow": rules}, "llm": {"model": "m"}})
    said = [line for line in lines_of(review) if "may run files" in line]
    end = "which may run files of the project that change later; it may change the project"
    assert said == ([f".ybs.json: safety.allow lets the model run {named}, {end}"] if named else [])


def test_the_question_names_a_known_program_that_path_finds_in_the_project(tree, monkeypatch):
    (tree / "loop").symlink_to("loop")
    monkeypatch.setenv("PATH", f"{tree}/loop:{tree}/venv/bin:{os.environ['PATH']}")
    settings = {**group("ls && ruff check ."), "safety": {"allow": ["run_shell(ruff check *)"]}}
    assert not any("may run files" in line for line in lines_of(wanting(tree, settings)))
    put(tree, "venv/bin/ruff", "", 0o755)
    said = [line for line in lines_of(wanting(tree, settings)) if "may run files" in line]
    assert ["runs `ruff`" in said[0], "the model run `ruff`" in said[1]] == [True, True]


@pytest.mark.integration
def test_an_mcp_server_is_bound_in_any_spelling(tree: Path) -> None:
    servers = {"s": {"command": "node", "args": ["--require=./lib/pre.js", f"{tree}/server.js"]}}
    put(tree, ".mcp.json", json.dumps({"mcpServers": servers}))
    review = wanting(tree, {"mcpServers": {"x": {"command": f"{tree}/away/h"}}})
    assert {"lib/pre.js", "server.js", "x/h", "away"} <= review.files.keys()
    assert give_trust(tree).review is not None
    put(tree, "lib/pre.js", "evil")
    assert not is_trusted(tree)


def test_a_file_too_large_to_be_bound_is_not_trusted(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust_files, "MOST_BYTES_OF_PROGRAMS", 2_000_001)
    put(tree, "big.sh", "x" * 1_000_001)
    put(tree, "bigger.sh", "x" * 1_000_001)
    review = wanting(tree, group(f"sh {tree}/big.sh {tree}/bigger.sh"))
    assert "too large" in review.problem
    said = lines_of(review)
    assert said[-1].startswith("This project cannot be trusted: bigger.sh is too large"), said
    assert not any("asks for nothing" in line for line in said)
    with pytest.raises(ConfigError):
        trusted(tree, group("cd x; sh ../big.sh ../bigger.sh"))


def test_a_large_program_is_bound_by_its_digest(tree: Path) -> None:
    (tree / ".venv/bin").mkdir(parents=True)
    tool = tree / ".venv/bin/lint"
    tool.write_bytes(b"\0" + b"x" * 30_000_000)
    tool.chmod(0o755)
    put(tree, ".claude/settings.json", json.dumps(group(".venv/bin/lint check .")))
    review = wanting(tree, {})
    assert not review.problem
    assert any(
        line.startswith(".venv/bin/lint: is too large, or not text") for line in lines_of(review)
    )
    assert review.files[".venv/bin/lint"].data == b""
    give(this_host(), review)
    assert is_trusted(tree)
    found = load(this_host(), folder=tree).review
    assert found is not None
    assert is_unchanged(found, ".venv/bin/lint")
    with tool.open("r+b") as file:
        file.seek(20_000_000)
        file.write(b"y")
    assert not is_unchanged(found, ".venv/bin/lint")
    assert not is_trusted(tree)
    assert "30,000,001 bytes now" in "\n".join(lines_of(wanting(tree, {})))
    tool.write_bytes(b"\0" + b"x" * 30_000_000)
    assert is_trusted(tree)
    tool.chmod(0o644)
    assert not is_trusted(tree)


def test_a_description_of_a_tool_that_is_too_large_to_be_read_is_not_trusted(tree: Path) -> None:
    put(tree, "x.tool.json", " " * 1_000_001)
    assert "too large" in wanting(tree, group(f"cat {tree}/x.tool.json")).problem
