"""What is asked about in an hour of ordinary work: played through a session's tools in the real sandboxes.

Commands that change nothing run unasked, in `ask` and in `plan`; of those that change something none does so unasked.
"""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from session.test_unasked import both, bubblewrap, landlock, open_session
from ybs.core.ports import Answer

__all__ = ["open_session"]
pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]
READING = """\
git status
git status --short --branch
git log --oneline -5
git log -p -1 -- main.py
git diff
git diff --stat HEAD
git show --stat
git branch
git branch -a
git blame main.py
git rev-parse --abbrev-ref HEAD
git ls-files | head -20
git grep -n kept
git stash list
git remote -v
git config --list
git branch --contains HEAD
git tag -l && git describe --always
git worktree list; git remote get-url origin; git submodule status
git clean -nd
ls -la
cat main.py
sed -n 1,5p main.py
sed 's/kept/x/' main.py
awk '{print $1}' main.py
awk 'NR==1' main.py | tr a-z A-Z
head -1 main.py; tail -1 main.py
find . -name '*.py' | xargs grep -n kept
find . -name '*.py' -exec wc -l {} +
grep -rn kept . || true
for f in *.py; do wc -l "$f"; done
for f in $(git ls-files); do echo "$f"; done
if [ -f main.py ]; then echo yes; fi
test -f main.py && echo yes
[ -d src ] || echo none
while read -r line; do echo "$line"; done < main.py
cd sub && pwd
(cd sub; ls)
python3 --version
python3 -c 'print(1 + 1)'
python3 -c "import json; print(json.dumps({'a': 1}))"
python3 - <<'E'⏎print(open('main.py').read())⏎E
python3 script.py
echo 'print(2)' | python3 -
python3 -m unittest test_it
python3 -m py_compile script.py
gzip -c main.py | gunzip -c
dd if=main.py count=1 2>/dev/null
tmp=$(mktemp); sort main.py > "$tmp"; diff main.py "$tmp"; rm "$tmp"
curl --version | head -1
python3 -m json.tool data.json
perl -ne 'print if /k/' main.py
date
date +%F
env | sort | head -3
uname -a; whoami; id -u
which python3 git
type ls
echo $HOME $(pwd)
x=$(cat main.py); echo "${x%t}"
printf '%s\\n' a b | sort -r | uniq -c
diff main.py script.py || true
stat main.py
wc -l *.py
sort main.py | uniq -c | sort -rn
tar cf - main.py | wc -c
xxd main.py | head -1
base64 main.py | base64 -d
echo x > /dev/null
sleep 0.1 && echo done
"""
CHANGING = """\
touch new
mkdir made
echo x > main.py
echo x >> main.py
cp main.py copy.py
mv main.py other.py
rm main.py
ln -s main.py link
sed -i s/kept/x/ main.py
perl -i -pe s/kept/x/ main.py
python3 -c "open('main.py', 'w').write('x')"
python3 -c "import os; os.remove('main.py')"
python3 -c "import pathlib; pathlib.Path('new').touch()" 2>/dev/null || true
python3 writer.py
sh writer.sh 2>/dev/null; true
echo "open('main.py', 'w')" | python3 2>/dev/null; true
find . -name main.py -delete
find . -name main.py -exec truncate -s 0 {} +
ls | tee main.py
sort -o main.py main.py
awk 'BEGIN {print "x" > "main.py"}'
dd if=/dev/zero of=main.py count=1
tar xf data.tar
git add -A
git commit -qm x --allow-empty
git checkout -q -b other
git stash
git tag made
for f in *.py; do echo x > "$f"; done
cat main.py | xargs -I{} touch {}
chmod +x main.py
f=main.py; : > $f
for f in *.py; do rm $f; done
git branch made
git worktree add ../made
"""


def lines_of(text: str) -> list[str]:
    return [line.replace("⏎", "\n") for line in text.splitlines()]


def digest_of(folder: Path) -> str:
    """Return what stands for all files of a folder, their modes included."""
    found = sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return sha256(
        repr([(str(p), p.lstat().st_mode, p.is_file() and p.read_bytes()) for p in found]).encode()
    ).hexdigest()


@pytest.fixture
def work(project: Path) -> Path:
    (project / "main.py").write_text("kept\n")
    (project / "script.py").write_text("print('script')\n")
    (project / "writer.py").write_text("open('main.py', 'w').write('x')\n")
    (project / "writer.sh").write_text("echo x > main.py\n")
    (project / "data.json").write_text('{"a": 1}\n')
    (project / "test_it.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertTrue(True)\n"
    )
    (project / "sub").mkdir()
    (project / "sub" / "x.txt").write_text("x\n")
    subprocess.run(["tar", "cf", "data.tar", "script.py"], cwd=project, check=True)
    who = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=project, check=True, env={**os.environ, **who})
    return project


@pytest.mark.parametrize(("make", "mode"), [(bubblewrap, "ask"), (landlock, "plan")])
async def test_what_changes_nothing_is_not_asked_about(open_session, make, mode: str, work: Path):
    session = open_session(make, mode)
    (work / "main.py").write_text("kept\n")
    before, stopped = digest_of(work), []
    session.answer = Answer(is_allowed=False, reason="no")
    for command in lines_of(READING):
        asked = len(session.questions)
        result = await session.run(command)
        if len(session.questions) > asked or result.is_refused:
            stopped.append((command, result.output[-300:]))
    assert stopped == []
    assert digest_of(work) == before


@both
async def test_nothing_that_changes_something_does_so_unasked(open_session, make, work: Path):
    session = open_session(make)
    (work / "main.py").write_text("kept\n")
    before, unasked = digest_of(work), []
    session.answer = Answer(is_allowed=False, reason="no")
    for command in lines_of(CHANGING):
        asked = len(session.questions)
        await session.run(command)
        if len(session.questions) == asked:
            unasked.append(command)
        assert digest_of(work) == before, command
    assert unasked == []


@both
async def test_plan_looks_at_anything_and_changes_nothing(open_session, make, work: Path):
    session = open_session(make, "plan")
    (work / "main.py").write_text("kept\n")
    before = digest_of(work)
    for command in lines_of(CHANGING):
        result = await session.run(command)
        assert result.is_refused, (command, result.output)
        assert digest_of(work) == before, command
    assert session.questions == []
