"""The grammar of rules and what they cover."""

import pytest

from rows import every_row
from ybs.core.errors import ConfigError
from ybs.security.commands.wrappers import read
from ybs.security.policy.command_case import scopes_of
from ybs.security.policy.rules import Rule, rule_of


@every_row(
    ("text", "rule"),
    [
        ("run_shell", Rule("run_shell")),
        ("run_shell(git log *)", Rule("run_shell", "git log *")),
        ("run_shell:git log *", Rule("run_shell", "git log *")),
        ("run_shell(echo (a))", Rule("run_shell", "echo (a)")),
        ("run_shell(echo [z-a])", Rule("run_shell", "echo [z-a]")),
        (" edit_file(src/**) ", Rule("edit_file", "src/**")),
        ("mcp__*", Rule("mcp__*")),
    ],
)
def test_both_spellings_are_read(text: str, rule: Rule):
    assert rule_of(text) == rule


@every_row(
    "text", ["", "()", "run_shell()", "run_shell(", "run_shell: ", "a b", "edit_file([z-a])"]
)
def test_what_is_no_rule_is_a_configuration_error(text: str):
    with pytest.raises(ConfigError):
        rule_of(text)


def test_a_star_in_a_name_stands_for_any_text():
    assert rule_of("mcp__*").names("mcp__x__y")
    assert not rule_of("mcp__*").names("xmcp__y")
    assert not rule_of("read").names("read_file")


def allows(rule: str, command: str) -> bool:
    return rule_of(rule).allows_command(command, read(command))


@every_row(
    ("rule", "command"),
    [
        ("run_shell(git log *)", "git log -3 --oneline"),
        ("run_shell(git log *)", "git log"),
        ("run_shell(npm test)", " npm test "),
        ("run_shell(ls; pwd)", "ls; pwd"),
        ("run_shell(ls *)", "ls ./*.py src/[a-z]*"),
        ("run_shell", "ls | wc"),
    ],
)
def test_an_allow_covers(rule: str, command: str):
    assert allows(rule, command)


@every_row(
    "command",
    [
        *(
            "git log; rm x",
            "git log && rm x",
            "git log | sh",
            "git log $(rm x)",
            "git log `rm x`",
            "git log\nrm x",
        ),
        *(
            "git log > x",
            "git log < x",
            "git log & rm x",
            "git log $X",
            "A=1 git log",
            "git log <(rm x)",
        ),
        *("git logx", "git status", "git log 'open", "xgit log"),
    ],
)
def test_s13_an_allow_of_one_command_covers_no_other(command: str):
    assert not allows("run_shell(git log *)", command)


@every_row(
    ("rule", "command", "expected"),
    [
        ("sdiff *", "sdiff --diff-program=./run a b", False),
        ("sdiff *", "sdiff --diff-program ./run a b", False),
        ("sdiff --diff-program=diff *", "sdiff --diff-program=diff a b", True),
        ("cpp *", "cpp -wrapper ./run a", False),
        ("cpp *", "cpp -I include -DA=1 a.c", True),
        ("nodemon *", "nodemon --exec ./run", False),
        ("gh *", "gh --no-pager pr list", True),
        ("x *", "x --shell --command --pager", True),
        ("x *", "x --command", True),
        ("make test *", "make test --file=evil/other.mk", False),
        ("make test *", "make test --fil=evil/other.mk", False),
        ("make test *", "make test -fother.mk", False),
        ("make test *", "make test -Cother", False),
        ("make test *", "make test -j8 -k --no-print-directory", True),
        ("make -C sub *", "make -C sub -j8", True),
        ("make -C sub *", "make -C sub -Cother", False),
        ("make *", "make test -Cother", True),
        ("npm run lint *", "npm run lint --prefix=evil", False),
        ("npm run lint *", "npm run lint --prefix evil", False),
        ("npm run lint *", "npm run lint -- src --fix --workspace=web", True),
        ("npm --prefix web run *", "npm --prefix web run lint", True),
        ("npm *", "npm --prefix web run lint", True),
        ("mvn test *", "mvn test -Dtest=Foo -Dfoo.bar=1", True),
        ("pnpm run test *", "pnpm run test --filter=web", True),
        ("make deploy-check *", "make deploy-check deploy", False),
        ("mvn test-compile *", "mvn test-compile compile", False),
        ("just release-notes *", "just release-notes release", False),
        ("make test-*", "make test-unit deploy", False),
        ("make test-*", "make test-unit test-all -j8", True),
        ("rg --pretty *", "rg --pretty --pre=./x y", False),
        ("rg --pre=./x *", "rg --pre=./x y", True),
        ("rg --pre=./x *", "rg --pre=./x --pre=./xy z", False),
        ("rg --pre * y", "rg --pre ./x y", True),
        ("tar Ixf *", "tar Ixf ./x y", False),
        ("rsync -avze ssh *", "rsync -avze ssh a b:c", True),
        ("cargo test --config-x *", "cargo test --config-x --config=a", False),
        ("awk *", "awk '{print $1}' a", True),
        ("sed *", "sed -n 1,5p a", True),
        ("sed *", "sed -i -e 's/a/b/g' -e '/x/d' a", True),
        ("sed *", "sed 's.a.b.e' a", False),
        ("sed *", "sed '0~1e ./x' a", False),
        ("sed *", "sed 's/a/b/Me' a", False),
        ("sed *", "sed -f x.sed a", False),
        ("sed *", "sed -n 'w other' a", False),
        ("awk *", "awk 'BEGIN{system(\"./x\")}'", False),
    ],
)
def test_a_star_stands_for_no_program_that_an_option_names_and_no_other_project(
    rule: str, command: str, *, expected: bool
):
    assert allows(f"run_shell({rule})", command) is expected


@every_row(
    ("command", "expected"),
    [
        ("go test *", False),
        ("go test *.go", False),
        ("go test ?exec=sh", False),
        ("go test [-]exec=sh", False),
        ("go test -*", False),
        ("go test -e[x]ec=sh", False),
        ("go test ''*", False),
        ("go test '-'*", False),
        ('go test ""*', False),
        ("go test ./*", True),
        ("go test a*", True),
        ("go test -run=Test*", True),
        ("go test -run 'Test*' '*' \\* \"[a-z]\"", True),
        ("go test -- *", True),
    ],
)
def test_a_star_stands_for_no_word_of_which_a_files_name_makes_an_option(
    command: str, *, expected: bool
):
    assert allows("run_shell(go test *)", command) is expected
    assert (scopes_of(read(command)) == ["go test *"]) is expected


def test_an_allow_without_a_pattern_does_not_cover_what_cannot_be_read():
    assert not allows("run_shell", "$X")


def test_a_deny_covers_every_part_and_every_wrapper():
    rule = rule_of("run_shell(curl *)")
    for command in (
        "curl x",
        "ls; curl x",
        "env curl x",
        "echo $(curl x)",
        "/usr/bin/curl x",
        "sh -c 'curl x'",
    ):
        assert rule.denies_command(command, read(command))
    assert not rule.denies_command("echo curl", read("echo curl"))
    assert rule_of("run_shell").denies_command("ls", read("ls"))


@every_row(
    ("pattern", "command", "expected"),
    [
        ("git push *", "git --no-pager push x", True),
        ("git push *", "git -P push", True),
        ("git push *", "git -C . push", True),
        ("git push *", "git -c a.b=c --no-replace-objects push x", True),
        ("git push *", "git -C push status", False),
        ("git push *", "git log push", False),
        ("git push *", "git stash push", False),
        ("kubectl delete *", "kubectl -n x delete pod y", True),
        ("kubectl delete *", "kubectl --namespace=x delete pod", True),
        ("kubectl delete *", "kubectl get delete", False),
        ("kubectl delete *", "kubectl", False),
        ("docker image rm *", "docker --context x image rm y", True),
        ("docker image rm *", "docker image ls rm", False),
        ("rm -rf *", "rm -v -r -f x", True),
        ("git push", "git push x", False),  # only itself, whatever its options
        ("git push", "git -C . push --force", True),
        ("git push", "git --no-pager stash push", False),
        ("git push", "git", False),
        ("make", "make -s", True),
        ("make", "make deploy -s", False),
        ("git p* *", "git -P push", True),
        ("git push*", "git -C . push x", True),
        ("git push*", "git -C . pushx", True),
        ("git push*", "git log push", False),
        ("git push:*", "git push", True),
        ("git push:*", "git -C . push x", True),
        ("git push:*", "git log push", False),
        ("npm run test:*", "npm -s run test:unit", True),
        ("make deploy*", "make -s deploy-all", True),
        ("make deploy*", "make test -k deploy", True),
        ("make deploy *", "make clean N=1 deploy", True),
        ("just deploy *", "just clean deploy", True),
        ("kubectl delete*", "kubectl -n prod --context x delete pod y", True),
        ("kubectl delete*", "kubectl --namespace=x get delete", False),
        ("git push --force*", "git push origin --force-with-lease", True),
        ("git push --force*", "git push origin -f", False),
        ("git * --force", "git -C . push --force origin", True),
        ("cat /etc/*", "cat -n /etc/passwd", True),
        ("cat /etc/*", "cat -n etc/passwd", False),
        ("./deploy.sh *", "ls; ./deploy.sh x", True),
        ("scripts/deploy.sh", "sh scripts/deploy.sh -v", True),
        ("Rscript *", "true && /usr/bin/Rscript x", True),
        ("git push -o x *", "git push -o x origin", True),
        ("git checkout main *", "git checkout -f -- main", True),
        ("git checkout", "git checkout -- main", False),
        ("git push *", "git --config-env a.b=C push", True),
        ("git push *", "git --attr-source HEAD push", True),
        ("git push *", "git --of-a-later-git HEAD push", True),
        ("git push *", "git --of-a-later-git push log", True),
        ("git push *", "git --no-pager --exec-path=x log push", False),
        ("git stash drop *", "git stash -p drop", True),
        ("git push", "git push -v origin", True),  # which may be the value of -v
    ],
)
def test_a_deny_covers_a_verb_behind_options(pattern: str, command: str, *, expected: bool):
    rule = rule_of(f"run_shell({pattern})")
    assert rule.denies_command(command, read(command)) is expected


@every_row(
    ("pattern", "command", "expected"),
    [
        ("git push *", "X=push; git $X origin main", True),
        ("git push *", "X=log; read X < x; git $X origin", True),
        ("git push *", "git ${X:-push} origin", True),
        ("git push *", "git {push,origin}", True),
        ("git push *", "git p?sh", True),
        ("git push *", "git pu$X origin", True),
        ("git push *", "git `cat x` origin", True),
        ("git push *", "git $X push", True),
        ("git push *", 'f(){ git "$@"; }; f push', True),
        ("git push *", "G=git; $G push", True),
        ("git push *", "a='git push'; $a origin", True),
        ("git push *", 'a=git; b="$a push"; $b origin', True),
        ("git push *", "a='cd x; git push'; sh -c \"$a\"", True),
        ("git push*", "git $X", True),
        ("git push", "git $X", True),
        ("git stash drop *", "git $X", True),
        ("git stash drop *", "git stash $X", True),
        ("git stash drop *", "git -q $X stash drop", True),
        ("git push --force *", "git push $X", True),
        ("git push --mirror *", "git push --mi$X", True),
        ("cat /etc/*", "cat /e*/passwd", True),
        ("cat /etc/passwd", "cat /etc/pass*", True),
        ("make p*h", "make pu$X", True),
        ("curl *", "$X example.org", True),
        ("git push *", "git -C $X push", True),
        ("git push *", "git -C $X log", False),
        ("cat /etc/passwd *", "cat /etc//passwd x*", True),
        ("git push *", "git log $X", False),
        ("git push *", "cat x | xargs -I{} touch {}", False),
        ("git push *", "git log p* push", False),
        ("git push *", "git l$X origin", False),
        ("git push *", "git ${X}s origin", False),
        ("git push *", '"$VIRTUAL_ENV/bin/python" -m pytest push', False),
        ("make deploy *", "echo deploy | xargs make", True),
        ("make deploy *", "echo deploy | sudo xargs -n 1 make -s", True),
        ("make deploy", "echo deploy | xargs -I{} make {}", True),
        ("make deploy *", "echo deploy | xargs -I % make %", True),
        ("make deploy *", "echo deploy | xargs --replace=% sh -c 'make %'", True),
        ("make deploy *", "echo make | xargs -I{} {} deploy", True),
        ("make deploy *", "xargs -a f sh -c 'make \"$@\"' _", True),
        ("make deploy *", "parallel make -s ::: deploy", True),
        ("make deploy *", "parallel 'make -s' ::: deploy", True),
        ("make deploy *", "parallel -j4 'make {1}' ::: deploy", True),
        ("make deploy *", "find deploy -exec make {} +", True),
        ("make deploy", "find deploy -exec make {} ';'", True),
        ("make deploy *", "fd -X make", True),
        ("make deploy *", "fd -x make {/}", True),
        ("make deploy *", "xargs make build < f", True),
        ("make deploy *", "find . -exec make {} +", True),
        ("make deploy *", "find -name x -exec make {} +", True),
        ("rm -rf *", "xargs rm < f", True),
        ("rm -rf *", "find . -name x -exec rm {} +", True),
        ("rm -rf *", "xargs rm -- < f", True),
        ("rm -rf *", "ls | xargs", False),
        ("git push *", "xargs git < f", True),
        ("git push *", "parallel git ::: push", True),
        ("git push *", "ls | xargs git log", False),
        ("git push *", "git diff --name-only | xargs -n 1 git add --", False),
        ("git push *", "find . -exec git log -1 {} +", False),
        ("git push *", "echo push | xargs -iX git X", True),
        ("git push *", "echo push | xargs --repl=log git log", True),
        ("git push *", "find -L push -maxdepth 0 -exec git {} origin +", True),
        ("git push *", "xargs sh -c 'git log; git \"$@\"' _ < f", True),
        ("git push *", "git -c help.autocorrect=immediate pussh origin", True),
        ("git push *", "/usr/lib/git-core/git-push origin", True),
        ("git push *", "git-log origin", False),
        ("git push *", "if ! { git -C . push origin main; }; then :; fi", True),
        ("./deploy.sh *", "N=1; . ./deploy.sh", True),
        ("./deploy.sh *", "source ./deploy.sh x", True),
        ("./deploy.sh *", "bash +x ./deploy.sh", True),
        ("./deploy.sh *", "bash < ./deploy.sh", True),
        ("make deploy *", "bash +x -c 'make -s deploy'", True),
        ("make deploy *", "script /dev/null -qc 'make -s deploy'", True),
        ("make deploy *", "sg users -c 'make -s deploy'", True),
        ("make deploy *", "tar cf x --checkpoint-action=exec='make -s deploy' y", True),
        ("rm *", "find . -name rm", False),
        ("git push *", "find . -name push; git status", False),
        ("git push *", "gxargs git < f", True),
        ("pip install *", "python3 -mpip install x", True),
        ("pip install *", "python -Impip install x", True),
        ("pip install *", "python -m", False),
        ("cargo publish *", "cargo +stable publish", True),
        ("git push *", "git -c alias.x=push x", True),
        ("git push *", "git -c Alias.x=y -c alias.y=push x origin", True),
        ("git push *", "git --config-env=alias.x=X x", True),
        ("git push *", "git -c include.path=a x", True),
        ("git push *", "git -c user.name=push commit -m x", False),
        ("make deploy *", "git -c alias.x='!make' x deploy", True),
        ("git push --force *", "git push origin -- $X", False),
        ("git push --force *", "git push release-$X", False),
        ("git commit --amend *", 'git commit -m "What?"', False),
        ("cat /etc/*", "cat src/*.c", False),
        ("make p*h", "make ${X}-test", False),
    ],
)
def test_a_rule_that_denies_means_a_word_that_is_only_known_when_it_runs_as_any_that_it_may_become(
    pattern: str, command: str, *, expected: bool
):
    rule = rule_of(f"run_shell({pattern})")
    assert rule.denies_command(command, read(command)) is expected


def test_paths_are_globs_relative_to_the_project():
    rule = rule_of("edit_file(./src/*.py)")
    assert rule.covers_paths(("src/a.py",))
    assert not rule.covers_paths(("src/deep/a.py",))
    assert not rule.covers_paths(("src/a.py", "b.py"))
    assert not rule.covers_paths(())
    assert rule_of("edit_file(src/**)").covers_path("src/deep/a.py")


def test_only_the_very_command_is_exact():
    assert rule_of("run_shell(rm -r x)").is_exactly("rm -r x ")
    assert not rule_of("run_shell(rm -r x)").is_exactly("rm -r x\N{NO-BREAK SPACE}")
    assert not rule_of("run_shell(rm *)").is_exactly("rm -r x")
    assert not rule_of("run_shell").is_exactly("rm -r x")


def test_a_relative_glob_allows_no_absolute_path_and_the_other_way_round():
    assert not rule_of("write_file(**)").covers_paths(("/extra/dir/x",))
    assert rule_of("write_file(/extra/**)").covers_paths(("/extra/dir/x",))
    assert not rule_of("write_file(/extra/**)").covers_paths(("x",))
    assert rule_of("write_file(**)").covers_path("/extra/dir/x")  # as a deny


@every_row(
    ("pattern", "command", "expected"),
    [
        ("a*c", "abc", True),
        ("a*c", "ab", False),
        ("ab*bc", "abc", False),
        ("*x*y", "1x2y", True),
        ("*x*y", "1y2x", False),
        ("a*x*b", "a1b", False),
        ("a *bc*bc", "a bc", False),
        ("a *bc*bc", "a bc bc", True),
        ("* --version", "node --version", True),
    ],
)
def test_a_star_in_a_pattern_stands_for_any_text(pattern: str, command: str, *, expected: bool):
    assert allows(f"run_shell({pattern})", command) is expected


@every_row(
    "command",
    [
        "nice env nohup setsid nice timeout 5 make -s deploy",
        "make -s deploy " + "#" + ";" * 2_100,
        "true " + "a " * 5_001 + "; make -s deploy",
        "for x in 'make -s deploy'; do $x; done",
        'set -- make -s deploy; "$@"',
        "{make,-s,deploy}",
        "x='make -s deploy'; ${x:-a}",
        "x=1; x='make -s deploy'; $x",
        'f() { "$@"; }; f make -s deploy',
        'a=(make -s deploy); "${a[@]}"',
        "if ! { make -s deploy; }; then :; fi",
        "for x in a; { make -s deploy; }",
        "coproc X { make -s deploy; }; wait",
        "{fd}>/dev/null make -s deploy",
        "x=deploy; for p in /usr/bin/make; do $p -s $x; done",
    ],
)
def test_a_deny_means_each_line_with_its_words_that_is_not_understood(command: str):
    assert rule_of("run_shell(make deploy *)").denies_command(command, read(command))


@every_row("command", ["'./check.sh fast'", '"./check.sh fast" x', "./check.sh' 'fast"])
def test_an_allow_goes_word_by_word(command: str):
    rule = rule_of("run_shell(./check.sh fast *)")
    assert not rule.allows_command(command, read(command))
    assert rule.allows_command("./check.sh fast 'a b'", read("./check.sh fast 'a b'"))


@every_row(
    "command", ["ls & curl x", "$(/usr/bin/curl x)", "{ ../curl x; }", "c''url x # y", "(curl)"]
)
def test_a_deny_finds_its_words_in_a_text_that_is_not_clear(command: str):
    assert rule_of("run_shell(curl *)").denies_command(command, read(command))
    assert not rule_of("run_shell(curl y*z)").denies_command(command, read(command))
