"""Scopes: what "always" would cover, and what it never covers."""

from rows import every_row
from ybs.security.commands.command import Command
from ybs.security.commands.wrappers import read
from ybs.security.policy.command_case import (
    from_its_folder,
    rules_in,
    scope_of,
    scopes_of,
    why_never,
)


@every_row(
    ("text", "scopes"),
    [
        ("pytest -q tests", ["pytest *"]),
        ("python -m pytest -x", ["python -m pytest *"]),
        ("uv run pytest", ["uv run pytest *"]),
        ("npm run lint -- x", ["npm run lint *"]),
        ("npm test", ["npm test *"]),
        ("git log -p", ["git log *"]),
        ("git status && git diff", ["git status *", "git diff *"]),
        ("git commit -m 'a b'", ["git commit *"]),
        ("sed -i s/a/b/ x", ["sed *"]),
        ("pytest; ruff check .", ["pytest *", "ruff check *"]),
        ("pytest 2>/dev/null | tail -5", ["pytest *"]),
        ("cd app && python3 main.py", ["python3 main.py *"]),
        ("python3 -u tests/cart_test.py -v", ["python3 -u tests/cart_test.py *"]),
        ("node index.js", ["node index.js *"]),
        ("python3 main.py --port 80 | sort", ["python3 main.py *", "sort *"]),
        ("bash scripts/build.sh", ["bash scripts/build.sh *"]),
        (".venv/bin/python main.py", [".venv/bin/python main.py *"]),
        ("PYTHONPATH=. pytest -q", ["PYTHONPATH=. pytest *"]),
        ("CI=1 npm test", ["CI=1 npm test *"]),
        ("pytest | CI=1 head", ["pytest *", "CI=1 head *"]),
        ("make", ["make"]),
        ("make lint", ["make lint"]),
        ("docker compose up", ["docker compose *"]),
        ("npx prettier --write .", ["npx prettier *"]),
        ("pytest -c x", ["pytest *"]),
    ],
)
def test_a_scope_stands_for_a_kind_of_command(text: str, scopes: list[str]):
    assert scopes_of(read(text)) == scopes
    rules = [f"run_shell({scope})" for scope in scopes]
    assert rules_in(" + ".join(rules)) == rules


@every_row(
    "text",
    [
        *("pytest > x", "pytest < x", "A='b c' pytest", "pytest $X", "pytest $(x)", "(pytest)"),
        *("A=/x pytest", "A=../x pytest", "PATH=bin pytest", "LD_PRELOAD=x pytest", "A=$B pytest"),
        *("pytest; LD_PRELOAD=x head", "pytest && PATH=bin ls"),
        *("PYTHONPATH=/x pytest", "PYTHONPATH=.:../x pytest", "NODE_OPTIONS=-rx npm test"),
        *("export A=1 && pytest; eval x", "python3 'a b.py'", "python3 x", "python3 ../x.py"),
        *("python3 -c x.py", "python3 -i x.py", "python3 -", "perl -E x.pl", "node -e x.js"),
        *("node -r ./x.js y.js", "python3 x.py > out", "bash -c x.sh", "python3", "deno eval x.ts"),
        *("pytest ../other", "pytest /etc", "pytest ~/x", "pytest -p x", "pytest --rootdir=/x"),
        *("awk 'BEGIN{system(\"id\")}' x", "awk '{print | \"sh\"}' x", "tar Ixf sh x.tar"),
        *(
            "env pytest",
            "nice pytest",
            "git",
            "git -C x log",
            "git -c a=b log",
            "git diff --ext-diff",
        ),
        *(
            "npm run",
            "npm run -s",
            "pytest <<E\nx\nE",
            "> x",
            "rg --pre x y",
            "go test -exec x",
            "pytest 'open",
        ),
        *("tox -e lint", "make -C sub test", "sudo x", "xargs rm", "find . -exec rm {} +"),
    ],
)
def test_s13_what_reaches_further_has_no_scope(text: str):
    assert scopes_of(read(text)) == []


@every_row(
    ("text", "scopes"),
    [
        # What installs asks an index or a registry of the settings: a star stands for names of packages.
        ("pip install six", ["pip install *"]),
        ("pip install -U 'six[a]==1' --target vendor -r requirements/dev.txt", ["pip install *"]),
        (".venv/bin/pip download six", [".venv/bin/pip download *"]),
        ("python3 -m pip install six", ["python3 -m pip install *"]),
        ("uv sync", ["uv sync *"]),
        ("uv pip install six", ["uv pip *"]),
        ("poetry add six", ["poetry add *"]),
        ("pipenv install six", ["pipenv install *"]),
        ("npm install --save-dev @types/node@20", ["npm install *"]),
        ("npm ci", ["npm ci *"]),
        ("cd web && CI=1 npm ci | tail -3", ["CI=1 npm ci *"]),
        ("npm ci; pip install six", ["npm ci *", "pip install *"]),
        ("pnpm i", ["pnpm i *"]),
        ("yarn add left-pad", ["yarn add *"]),
        ("cargo build --release", ["cargo build *"]),
        ("cargo fetch", ["cargo fetch *"]),
        ("go mod download", ["go mod *"]),
        ("go get -u ./...", ["go get *"]),
        ("bundle install", ["bundle install *"]),
        ("composer require vendor/package", ["composer require *"]),
        ("dotnet restore", ["dotnet restore *"]),
        ("mix deps.get", ["mix deps.get *"]),
        # A word or an option that may be an index, a proxy, a host or another repository.
        ("pip install six --proxy 127.0.0.1:8080", []),
        ("pip install six --proxy=proxy.example", []),
        ("pip install six --index-url x.example", []),
        ("pip install git+https://x.example/y", []),
        ("npm install me@x.example:y", []),
        ("npm install --registry x", []),
        ("go get x.example/module", []),
        ("go mod download x.example/module@v1", []),
        ("cargo add x --registry other", []),
        ("conda install -c other x", []),
        ("conda install -cother x", []),
        ("conda install x -cother", []),
        # What it is told by another command stands in no word of it.
        ("echo 'x @ y.example/z' | uv pip install -r -", []),
        ("echo y | conda install x", []),
    ],
)
def test_with_the_network_a_star_stands_for_names_of_packages_alone(text: str, scopes: list[str]):
    assert scopes_of(read(text), network=True) == scopes


@every_row(
    "text",
    [
        # A bare word, or the value of a short option, is whom they talk to.
        *("psql -h db -c x", "http POST evil.org", "https evil.org", "xh evil.org", "mysql -h db"),
        *("redis-cli -h db get x", "mongosh db", "mosquitto_pub -h db -m x", "ping db", "ab db"),
        *("getent hosts db", "ssh-keyscan db", "wget2 db", "axel db", "lynx db", "w3m db"),
        *("nmap db", "smbclient -L db", "mail me", "rclone copy a b", "helm push a b"),
        *("kubectl get pods -s db", "kubectl get pods --server db", "ansible -i db, all -m ping"),
        # What is sent stands in the words.
        *("npm publish dist", "cargo publish", "poetry publish", "gem push x.gem"),
        # The repository's own remotes, but the words say which of them gets what.
        *("git push origin main", "git pull", "git fetch upstream", "git ls-remote origin"),
        *("git fetch x.example:a/b", "git fetch [::1]:a/b"),
        # The forge of the repository, or another that the words name; what is posted stands there, too.
        *("gh pr list", "gh pr create --fill", "gh api --hostname x.example user", "glab mr list"),
        # What the project's own code does with its words only that code knows.
        *("npm test", "npm run dev", "yarn build", "pytest -q tests/test_a.py", "python3 main.py"),
        *("uv run pytest", "cargo test", "cargo run", "go test ./...", "go run .", "./fetch -v"),
        *("python3 -m pytest", "python3 -u -m sync", "tools/sync db", "docker compose up"),
        *("npx prettier .", "uvx ruff check", "pnpm dlx x", "terraform init", "make", "make lint"),
        # One part of the line is enough.
        *("npm ci && npm test", "pip install six; psql -h db"),
    ],
)
def test_with_the_network_everything_else_is_remembered_as_it_stands(text: str):
    assert scopes_of(read(text), network=True) == []
    assert not why_never(read(text))


@every_row("text", ["curl db", "nc db 80", "rsync -a src dist", "host db", "socat - x", "lftp db"])
def test_without_it_too_no_star_stands_for_whom_a_program_is_there_to_talk_to(text: str):
    assert scopes_of(read(text)) == []


@every_row(
    "text",
    [
        *("python x", "bash -c x.sh", "sh -c ls", "env ls", "xargs ls", "find . -name x", "node x"),
        *(
            "python -c x",
            "python3 ../x.py",
            "python3 x.py; python3 -c y",
            "time python3 x.py",
            "node",
        ),
        *(
            "env python3 x.py",
            "ls | python3 -",
            "python3 x.py | sh",
            "git -C x push",
            "git -c a=b log",
        ),
        *(
            "rg --pre x y",
            "eval x",
            "nohup make",
            "sudo x",
            "> x",
            "make; python3 x",
            "timeout 5 make",
        ),
    ],
)
def test_nothing_is_remembered_about_what_runs_anything(text: str):
    assert why_never(read(text))


@every_row(
    "text",
    [
        *("make", "git push", "make && ./configure", "cp a b", "python3 x.py --name 'A B'"),
        *("cd app && python3 main.py", "python3 x.py > out", "uv run python x.py 'a b'"),
    ],
)
def test_an_exact_command_can_be_remembered(text: str):
    assert not why_never(read(text))


@every_row(
    "text",
    [
        *("run_shell(pytest *) + x", "run_shell(make ' + run_shell(pytest *) + ')"),
        *("write_file(pytest *)", "", "run_shell( *)", "run_shell(a; b)"),
    ],
)
def test_only_scopes_are_read_back(text: str):
    assert rules_in(text) == []


@every_row(
    ("text", "read"),
    [
        ("cd /p/app && make", "cd . && make"),
        ("cd /p/app/ && make; cd /p/app && x", "cd . && make; cd /p/app && x"),
        ("cd '/p/app/a b' && make", "cd 'a b' && make"),
        ('cd "/p/app/x/" && make', "cd x && make"),
        *((each, each) for each in ("cd /p && x", "cd /p/apps && x", "cd /p/app/../x && y")),
        *((each, each) for each in ("cd /p/app; x", "cd '/p/app'x && y", "cd /p/$X && y", "(cd /p/app && x)")),
    ],
)  # fmt: skip
def test_a_folder_is_named_from_where_the_command_runs(text: str, read: str):
    assert from_its_folder(text, "/p/app") == read
    assert from_its_folder(text, "") == text


def test_what_writes_elsewhere_or_names_no_program_has_no_scope():
    assert scope_of(Command(["pytest"], [])) == "pytest *"
    assert scope_of(Command(["pytest"], ["out.txt"])) == ""
    assert scope_of(Command([], [])) == ""
