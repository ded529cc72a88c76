"""The policy's cases S01 to S14, by their ids."""

import pytest

from security.corpus.judging import differences
from ybs.config.schema import SafetySettings
from ybs.core.messages import ToolCall
from ybs.core.ports import Preview
from ybs.security.policy.case import Subject
from ybs.security.policy.policy import Allow, Ask, Policy


def run(policy: Policy, command: str) -> object:
    call = ToolCall(id="1", name="run_shell")
    return policy.decide(call, "execute", Preview(title="Run"), Subject(command=command))


def test_s01_find_that_runs_or_deletes_asks():
    assert differences("S01") == []


def test_s02_git_grep_with_a_pager_asks():
    assert differences("S02") == []


@pytest.mark.integration
def test_s03_git_with_options_that_run_asks():
    assert differences("S03") == []


def test_s04_no_spelling_or_wrapper_hides_a_program():
    assert differences("S04") == []


@pytest.mark.integration
def test_s05_substitutions_and_expansions_are_judged():
    assert differences("S05") == []


@pytest.mark.integration
def test_s06_every_part_of_a_line_is_judged():
    assert differences("S06") == []


@pytest.mark.integration
def test_s07_no_number_of_harmless_commands_hides_a_denied_one():
    assert differences("S07") == []


@pytest.mark.integration
def test_s08_options_that_write_or_run_ask():
    assert differences("S08") == []


def test_s09_what_changes_later_commands_asks():
    assert differences("S09") == []


def test_s10_redirections_are_judged():
    assert differences("S10") == []


def test_s11_what_destroys_asks_as_destructive():
    assert differences("S11") == []


def test_s12_code_from_elsewhere_asks():
    assert differences("S12") == []


def test_s13_an_allowed_git_status_covers_nothing_behind_it():
    policy = Policy(SafetySettings(allow=("run_shell(git status)", "run_shell(git status *)")))
    assert run(policy, "git status -s") == Allow("grant")
    for command in ("git status; x", "git status --x=$(id)", "git status | sh", "git status\nx"):
        assert isinstance(run(policy, command), Ask)


def test_s14_a_grant_is_gone_in_another_session():
    first = Policy(SafetySettings())
    first.grant("run_shell(pytest *)")
    assert run(first, "pytest -q") == Allow("grant")
    assert isinstance(run(Policy(SafetySettings()), "pytest -q"), Ask)
