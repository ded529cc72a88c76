"""What a star covers: how a program does its work, never another program, and never another goal."""

from rows import every_row
from ybs.config.schema import SafetySettings
from ybs.core.messages import ToolCall
from ybs.core.ports import Preview
from ybs.security.policy.case import Subject
from ybs.security.policy.policy import Allow, Ask, Policy

COVERED = [
    ("tox *", "tox -q"),
    ("tox *", "tox run -e py311"),
    ("ctest *", "ctest -R name --output-on-failure"),
    ("mvn test *", "mvn test -q"),
    ("mvn *", "mvn test deploy"),
    ("mvn -q *", "mvn -q test deploy"),
    ("make *", "make lint test"),
    ("gradle test *", "gradle test --info"),
    ("just *", "just lint test"),
    ("npm run lint *", "npm run lint -- src"),
    ("npm exec *", "npm exec eslint"),
    ("uv run *", "uv run pytest -q"),
    ("find *", "find . -name x"),
    ("cargo test *", "cargo test name -- --nocapture"),
    ("go test *", "go test ./... -run X"),
    ("pytest *", "pytest -q tests -k name"),
    ("sort *", "sort a b"),
    ("rg *", "rg foo -- *"),
]
NOT_COVERED = [
    ("tox *", "tox exec -- sh"),
    ("tox *", "tox e -- sh -c 'x'"),
    ("ctest *", "ctest --build-and-test . /tmp/b --build-generator x --test-command sh"),
    ("tox *", "tox -x testenv.commands=sh"),
    ("ctest *", "ctest -S run.cmake"),
    ("mvn test *", "mvn test deploy"),
    ("mvn test *", "mvn test exec:exec"),
    ("./mvnw test *", "./mvnw test deploy"),
    ("gradle test *", "gradle test publish"),
    ("./gradlew build *", "./gradlew build -I init.gradle"),
    ("make test *", "make test deploy"),
    ("make test *", "make test SHELL=./x"),
    ("make *", "make --eval=x:;touch\\ y"),
    ("ninja test *", "ninja test install"),
    ("rake test *", "rake test release"),
    ("just test *", "just test deploy"),
    ("just *", "just --command sh"),
    ("bazel test *", "bazel test //a --run_under=sh"),
    ("bazel build *", "bazel build run //x"),
    ("npm *", "npm exec sh"),
    ("npm *", "npm x sh"),
    ("npm test *", "npm test --script-shell=./x"),
    ("pnpm *", "pnpm dlx evil"),
    ("yarn *", "yarn dlx evil"),
    ("uv *", "uv run sh"),
    ("poetry *", "poetry run sh"),
    ("docker *", "docker run -v /:/x img sh"),
    ("docker *", "docker exec c sh"),
    ("find *", "find . -exec touch x ';'"),
    ("go test *", "go test -exec ./x ./..."),
    ("go vet *", "go vet -vettool=./x"),
    ("cargo *", "cargo test --config x"),
    ("pytest *", "pytest -p evil"),
    ("make a *", "make a b"),
]
#: What "always" for the first command must not cover.
NOT_ALWAYS = [
    ("tox", "tox exec -- sh"),
    ("tox", "tox -e deploy"),
    ("nox", "nox -s release"),
    ("ctest", "ctest --build-and-test a b --test-command sh"),
    ("mvn test", "mvn test deploy"),
    ("mvn test", "mvn test -f other.xml"),
    ("gradle build", "gradle build publish"),
    ("./gradlew test", "./gradlew test publishToMavenCentral"),
    ("ninja", "ninja install"),
    ("dotnet build", "dotnet build -t:Deploy"),
    ("dotnet test", "dotnet test -target:Publish"),
    ("go build", "go build -ldflags=-extld=./x"),
    ("go test", "go test -ldflags -extld=./x"),
    ("cargo test", "cargo test --config x"),
    ("pytest", "pytest --pdbcls=evil:Cls"),
    ("npm run lint", "npm run lint --node-options=x"),
    ("mix test", "mix test cmd sh"),
]


def run(policy: Policy, command: str) -> object:
    call = ToolCall(id="1", name="run_shell")
    return policy.decide(call, "execute", Preview(title="x"), Subject(command=command))


@every_row(("pattern", "command"), COVERED)
def test_a_star_covers_how_it_is_done(pattern: str, command: str):
    policy = Policy(SafetySettings(allow=(f"run_shell({pattern})",)))
    assert run(policy, command) == Allow("grant")


@every_row(("pattern", "command"), NOT_COVERED)
def test_a_star_covers_no_other_program_and_no_other_goal(pattern: str, command: str):
    policy = Policy(SafetySettings(allow=(f"run_shell({pattern})",)))
    assert isinstance(run(policy, command), Ask)


@every_row(("given", "command"), NOT_ALWAYS)
def test_always_covers_no_other_program_and_no_other_goal(given: str, command: str):
    policy = Policy(SafetySettings())
    asked = run(policy, given)
    assert isinstance(asked, Ask)
    assert asked.question.grant
    policy.grant(asked.question.grant)
    assert isinstance(run(policy, given), Allow)
    assert isinstance(run(policy, command), Ask)
