"""`python bench/model_tasks.py`: the tasks themselves, how they are judged, and what is printed."""

import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import model_tasks
import msgspec
import pytest
from model_tasks import (
    GUIDE,
    Measured,
    Task,
    bench_tasks,
    consent_in,
    load_tasks,
    main,
    problem_of,
    read_files,
    run_task,
    summary,
    write_project,
)
from msgspec.structs import replace

import ybs
from hosts import this_host
from rows import every_row
from ybs.core.errors import AuthError, ModelError, ProviderDown, YbsError
from ybs.core.ports import Preview, Question
from ybs.frontends.headless.run import code_of
from ybs.session.options import Options
from ybs.session.session import Session
from ybs.testing import ScriptedModel, call

TASKS = {task.name: task for task in load_tasks()}
#: Answers that are right, in words that a model might choose.
ANSWERS = {
    "gateway-port": "The gateway listens on port 7342.",
    "licence": "It is published under the Mozilla Public License 2.0.",
    "parcel-weight": "It is set in shipping/limits.py.",
    "fixme": "About rounding.",
    "migrations": "001_users.sql, 002_orders.sql and 003_index.sql.",
    "pages": "faq.md, install.md, usage.md",
    "fruits": "Seven fruits.",
    "report": "It prints `sold: 1148`.",
    "slug": "It turns a title into a lowercase name with hyphens.",
    "no-colours": "There is no file colours.css.",
    "no-printer": "office.ini does not name a printer.",
    "database-host": "heron-4",
    "author": "Ingrid Solberg wrote it.",
    "encrypt": "people/privacy.py",
    "mail-server": "mail/sender.py",
    "pictures": "bridge.svg, harbour.svg, tower.svg",
    "shell-scripts": "Yes: bin/backup.sh and bin/restore.sh.",
    "planets": "It has 9 lines.",
    "primes": "2274",
    "retry": "It calls work again after an error, three times at most.",
    "no-chapter": "I couldn't find chapter9.md.",
    "no-birthday": "The file doesn't say when.",
}
#: Files as a right answer may leave them, where more than one is right.
LIKE = {
    "invoice": "def total(prices):\n    return sum(prices)\n",
    "vat": "def with_vat(cents):\n    return cents + cents * 20 // 100\n",
    "motto": "Slow is smooth.",
    "adult": "def is_adult(years):\n    return years >= 18\n",
    "area": "def area(width, height):\n    return width * height\n",
    "port-file": "5151\n",
}


def solve(task: Task, folder: Path) -> str:
    """Do what a task asks for, and return the answer."""
    for name, text in task.after.items():
        (folder / name).write_text(text)
    for name in task.like:
        (folder / name).write_text(LIKE[task.name])
    for name in task.gone:
        (folder / name).unlink()
    return ANSWERS.get(task.name, "Done.")


def test_there_are_40_tasks_half_of_them_held_back():
    halves = [task.half for task in TASKS.values()]
    assert (halves.count("tuning"), halves.count("held")) == (20, 20)
    kinds = [{task.kind for task in TASKS.values() if task.half == half} for half in set(halves)]
    assert kinds[0] == kinds[1]
    assert len(kinds[0]) == 12


@pytest.mark.integration
@every_row("name", list(TASKS))
def test_a_task_can_be_solved_and_is_not_solved_by_doing_nothing(name: str, tmp_path: Path):
    task, folder = replace(TASKS[name], many=None), tmp_path / name
    write_project(task, folder)
    before = read_files(folder)
    assert problem_of(task, "Let me look.", before, read_files(folder))
    answer = solve(task, folder)
    assert problem_of(task, answer, before, read_files(folder)) == ""
    (folder / "new.txt").write_text("not asked for")
    assert problem_of(task, answer, before, read_files(folder)) == "it also changed new.txt"


def test_the_words_of_tasks_are_not_those_of_prompts_and_templates():
    """A bench that the prompt was written for proves nothing."""
    package = Path(ybs.__file__).parent
    texts = [
        path.read_text()
        for pattern in (
            "context/*.md",
            "tools/builtin/*.md",
            "providers/local/*.jinja",
            "providers/text_protocol/*.py",
        )
        for path in package.glob(pattern)
    ]
    assert len(texts) > 10
    told = set[tuple[str, ...]]().union(*map(runs_of_words, texts))
    assert {name for name, task in TASKS.items() if told & runs_of_words(task.words)} == set()


def runs_of_words(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z0-9_.]+", text.lower())
    return set(zip(*(words[start:] for start in range(5)), strict=False))


@pytest.mark.integration
def test_projects_have_hundreds_of_files_or_a_guide_where_the_task_says_so(tmp_path: Path):
    write_project(TASKS["vat"], tmp_path / "many")
    assert len(list((tmp_path / "many" / "orders").iterdir())) == 300
    assert (tmp_path / "many" / "orders" / "order_007.txt").read_text() == "order 7\npaid\n"
    write_project(TASKS["licence"], tmp_path / "guide")
    assert 1_900 < (tmp_path / "guide" / GUIDE).stat().st_size < 2_200


def test_caches_of_python_are_not_changes_and_links_are(tmp_path: Path):
    task = TASKS["report"]
    write_project(task, tmp_path)
    before = read_files(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "report.pyc").write_bytes(b"x")
    assert problem_of(task, "1148", before, read_files(tmp_path)) == ""
    (tmp_path / "away").symlink_to("/nowhere")
    assert problem_of(task, "1148", before, read_files(tmp_path)) == "it also changed away"


def test_a_file_that_is_wrong_missing_or_still_there_is_named(tmp_path: Path):
    for name, problem in (
        ("timeout", "settings.toml is not as it should be"),
        ("motto", "motto.txt is not there"),
        ("debug-log", "debug.log is still there"),
    ):
        write_project(TASKS[name], tmp_path / name)
        files = read_files(tmp_path / name)
        assert problem_of(TASKS[name], "Done.", files, files) == problem


def test_an_unknown_task_is_answered_with_those_that_there_are():
    with pytest.raises(YbsError, match=r"no task 'nothing'.*gateway-port"):
        load_tasks(names=["nothing"])


def opening(script: Sequence[Any]) -> Any:
    """Return what opens a session with a model that plays this script."""
    return lambda options: Session(replace(options, model=ScriptedModel(script)))


def options_in(folder: Path, **overrides: Any) -> Options:
    return Options(host=this_host(), folder=folder, overrides=overrides, sandbox=False)


@pytest.mark.integration
async def test_a_task_is_done_in_a_project_of_its_own_and_measured(project: Path):
    edit = call("edit_file", path="settings.toml", old_text="30", new_text="45")
    script = [call("read_file", path="settings.toml"), call("nothing"), edit, "It is 45 now."]
    row = await run_task(TASKS["timeout"], options_in(project), opening(script))
    assert (row.problem, row.is_solved, row.ended) == ("", True, "done")
    assert (row.steps, row.calls, row.valid_calls) == (4, 3, 2)
    assert (row.model, row.answer) == ("scripted", "It is 45 now.")
    assert read_files(project) == {}


@pytest.mark.integration
async def test_files_are_written_without_a_question(project: Path):
    script = [call("write_file", path="motto.txt", content="Slow is smooth.\n"), "Done."]
    row = await run_task(TASKS["motto"], options_in(project), opening(script))
    assert row.problem == ""


@every_row(
    "effect, has_sandbox, is_allowed",
    [("execute", True, True), ("execute", False, False), ("delete", False, True)],
)
async def test_commands_are_agreed_to_where_a_sandbox_holds_them(effect, has_sandbox, is_allowed):
    workspace = SimpleNamespace(has_sandbox=has_sandbox)
    session: Any = SimpleNamespace(environment=SimpleNamespace(workspace=workspace))
    question = Question(call=call("x"), effect=effect, preview=Preview(title="x"))
    answer = await consent_in(session)(question)
    assert (answer.is_allowed, answer.is_unattended) == (is_allowed, not is_allowed)


@pytest.mark.integration
async def test_a_turn_that_is_stopped_is_not_a_solved_task(project: Path):
    edit = call("edit_file", path="settings.toml", old_text="30", new_text="45")
    options = options_in(project, **{"agent.max_iterations": 1})
    row = await run_task(TASKS["timeout"], options, opening([edit, "never said"]))
    assert (row.ended, row.is_solved) == ("limit", False)
    assert row.problem.startswith("Stopped after 1 step")


@pytest.mark.integration
def test_the_table_has_a_line_for_each_task_and_the_sums(project, capsys):
    opener = opening(["It listens on 7342."])
    names = ["gateway-port", "fruits"]
    assert (
        bench_tasks(options_in(project), half=None, names=names, is_json=False, opener=opener) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:3] == ["gateway-port", "read", "yes"]
    assert lines[2].split()[:3] == ["fruits", "count", "no"]
    assert lines[2].endswith("the answer is wrong")
    assert lines[-1].startswith("scripted: 1 of 2 solved (50%), median ")
    assert "no calls, 0 stopped" in lines[-1]


def test_json_has_the_sums_and_every_task(project: Path, capsys: pytest.CaptureFixture[str]):
    opener = opening([call("nothing"), "7342"])
    names = ["gateway-port"]
    bench_tasks(options_in(project), half="tuning", names=names, is_json=True, opener=opener)
    said = msgspec.json.decode(capsys.readouterr().out)
    assert (said["count"], said["solved"], said["valid_calls_share"]) == (1, 1, 0.0)
    assert said["tasks"][0]["name"] == "gateway-port"


def test_a_provider_that_is_not_there_is_an_error_and_no_measure(project, capsys):
    opener = opening([ProviderDown("Nobody answers.")])
    with pytest.raises(ModelError, match="Nobody answers") as caught:
        bench_tasks(options_in(project), half=None, names=(), is_json=False, opener=opener)
    assert code_of(caught.value) == 75
    assert capsys.readouterr().out == ""


def in_turn(*scripts: Sequence[Any]) -> Any:
    """Return an opener whose sessions play these scripts, one each."""
    openers = iter([opening(script) for script in scripts])
    return lambda options: next(openers)(options)


@pytest.mark.integration
@pytest.mark.parametrize("is_json", [True, False])
def test_a_provider_that_goes_away_ends_the_run_with_the_sums_of_what_was_measured(
    project: Path, capsys: pytest.CaptureFixture[str], is_json: bool
):
    opener = in_turn(["7342"], [ProviderDown("Nobody answers.")])
    with pytest.raises(ModelError, match="Nobody answers"):
        bench_tasks(options_in(project), half=None, names=(), is_json=is_json, opener=opener)
    said = capsys.readouterr().out
    if is_json:
        assert msgspec.json.decode(said)["count"] == 1
    else:
        assert said.splitlines()[-1].startswith("scripted: 1 of 1 solved (100%)")


@pytest.mark.integration
def test_a_task_that_only_its_request_was_too_long_for_is_not_solved_and_the_others_go_on(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    names = ["gateway-port", "licence", "fruits"]
    opener = in_turn(["7342"], [AuthError("Not this one.")], ["Seven."])
    bench_tasks(options_in(project), half=None, names=names, is_json=False, opener=opener)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].endswith("Not this one.")
    assert "2 of 3 solved (67%)" in lines[-1]


def test_what_was_measured_before_it_is_interrupted_is_summed_up(project, capsys, monkeypatch):
    async def interrupted(task: Task, *others: Any) -> Measured:
        if task.name == "licence":
            raise KeyboardInterrupt
        return await run_task(task, *others)

    monkeypatch.setattr(model_tasks, "run_task", interrupted)
    opener = opening(["7342"])
    with pytest.raises(KeyboardInterrupt):
        bench_tasks(options_in(project), half=None, names=(), is_json=False, opener=opener)
    assert capsys.readouterr().out.splitlines()[-1].startswith("scripted: 1 of 1 solved")


def test_no_task_has_no_median():
    assert summary(list[Measured]())["median_seconds"] is None


def test_a_half_without_the_named_task_runs_nothing(project, capsys):
    opener = opening(["never"])
    names = ["gateway-port"]
    bench_tasks(options_in(project), half="held", names=names, is_json=False, opener=opener)
    assert capsys.readouterr().out.splitlines()[-1] == "No task was run."


def test_the_command_line_knows_the_options(capsys: pytest.CaptureFixture[str]):
    assert main(["--half", "held", "--only", "nothing", "-m", "any"]) == 1
    assert "There is no task 'nothing'" in capsys.readouterr().err
