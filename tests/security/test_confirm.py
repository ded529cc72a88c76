"""The gate: who is asked, when, and what is remembered."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from hosts import this_host
from rows import every_row
from ybs.config.schema import SafetySettings
from ybs.core.envelope import MAIN
from ybs.core.errors import Refused
from ybs.core.events import ConfirmationAnswered, ConfirmationAsked, Event
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Preview, Question
from ybs.core.threads import in_thread
from ybs.security.paths.roots import OutsideRoots, Roots
from ybs.security.policy.case import Subject
from ybs.security.policy.confirm import Gate, Wish
from ybs.security.policy.policy import Allow, Deny, Policy

YES, NO = Answer(is_allowed=True), Answer(is_allowed=False, reason="use make")
ALWAYS = Answer(is_allowed=True, is_for_session=True)


class Person:
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.questions: list[Question] = []
        self.waiting = 0
        self.most_waiting = 0
        self.hand: Callable[[], None] = lambda: None

    async def __call__(self, question: Question) -> Answer:
        self.waiting += 1
        self.most_waiting = max(self.waiting, self.most_waiting)
        self.questions.append(question)
        await asyncio.sleep(0)
        self.waiting -= 1
        return self.answer


async def admit(
    gate: Gate, events: list[Event], command: str = "make", call_id: str = "1"
) -> Allow | Deny:
    call = ToolCall(id=call_id, name="run_shell")
    preview = Preview(title="Run", body=command)
    return await gate.admit(call, "execute", preview, Subject(command=command), events.append)


async def test_what_the_policy_allows_is_not_asked_about():
    person, events = Person(NO), list[Event]()
    gate = Gate(Policy(SafetySettings(mode="bypass")), person)
    assert await admit(gate, events) == Allow()
    assert (person.questions, events) == ([], [])


async def test_a_yes_lets_the_call_run_and_both_events_are_told():
    person, events = Person(YES), list[Event]()
    assert await admit(Gate(Policy(SafetySettings()), person), events) == Allow("person")
    assert events == [
        ConfirmationAsked(
            id="1",
            name="run_shell",
            title="Run",
            preview="make",
            grant="run_shell(make)",
            reason="there is no sandbox, so every command is asked about",
        ),
        ConfirmationAnswered(id="1", is_allowed=True),
    ]


async def test_the_reason_of_a_no_goes_to_the_model():
    events = list[Event]()
    assert await admit(Gate(Policy(SafetySettings()), Person(NO)), events) == Deny(
        "Refused: use make"
    )
    assert events[-1] == ConfirmationAnswered(id="1", is_allowed=False, reason="use make")


async def test_a_no_without_a_reason_is_still_words():
    gate = Gate(Policy(SafetySettings()), Person(Answer(is_allowed=False)))
    assert await admit(gate, []) == Deny("The person refused.")


async def test_always_is_remembered_for_the_call():
    person = Person(Answer(is_allowed=True, is_for_session=True))
    gate, events = Gate(Policy(SafetySettings()), person), list[Event]()
    await admit(gate, events)
    await admit(gate, events)
    assert len(person.questions) == 1
    assert tuple(sorted(gate.policy.rules.grants)) == ("run_shell(make)",)
    assert events[-1] == ConfirmationAnswered(id="1", is_allowed=True, grant="run_shell(make)")


@every_row(
    ("command", "answer"),
    [
        ("rm -r x", Answer(is_allowed=True, is_for_session=True)),
        ("make", Answer(is_allowed=False, is_for_session=True)),
    ],
)
async def test_always_is_not_remembered_for_destruction_or_a_no(command: str, answer: Answer):
    gate = Gate(Policy(SafetySettings()), Person(answer))
    await admit(gate, [], command)
    assert tuple(sorted(gate.policy.rules.grants)) == ()


async def test_one_question_at_a_time_and_a_grant_answers_those_that_wait():
    person = Person(Answer(is_allowed=True, is_for_session=True))
    gate, events = Gate(Policy(SafetySettings()), person), list[Event]()
    commands = ("make", "make", "other")
    verdicts = await asyncio.gather(
        *(admit(gate, events, c, str(n)) for n, c in enumerate(commands))
    )
    assert verdicts == [Allow("person"), Allow("grant"), Allow("person")]
    assert person.most_waiting == 1
    assert [question.preview.body for question in person.questions] == ["make", "other"]


async def test_questions_name_their_agent_and_agents_share_all_else():
    person = Person(Answer(is_allowed=True, is_for_session=True))
    gate, events = Gate(Policy(SafetySettings()), person), list[Event]()
    theirs = gate.of_agent("scout").of_agent("scout")
    await asyncio.gather(admit(gate, events), admit(theirs, events, "other", "2"))
    assert [question.agent for question in person.questions] == [MAIN, "scout"]
    assert person.most_waiting == 1
    assert await admit(theirs, events, "make", "3") == Allow("grant")


@every_row(
    ("wish", "command", "expected"),
    [
        ("ask", "make", ("a hook says so",)),
        ("allow", "rm -r x", ("rm: deletes folders and all that is in them",)),
    ],
)
async def test_the_reason_of_a_hook_stands_in_the_question_that_it_asks_for_and_in_no_other(
    wish: Wish, command: str, expected: tuple[str, ...]
):
    person = Person(YES)
    gate = Gate(Policy(SafetySettings()), person)
    with gate.wishing("1", wish, "a hook says so"):
        await admit(gate, [], command)
    assert [question.warnings for question in person.questions] == [expected]


async def test_a_wish_for_a_call_counts_for_no_other_of_its_id_and_for_none_within_it():
    person = Person(NO)
    gate = Gate(Policy(SafetySettings()), person)
    beside = asyncio.create_task(asyncio.sleep(0))

    async def wished() -> None:
        with gate.wishing("1", "allow", "a hook says so"):
            await beside
            assert isinstance(await admit(gate, [], "make"), Allow)
            assert isinstance(await admit(gate, [], "within", "1/a.py"), Deny)

    async def other() -> None:
        await asyncio.sleep(0)
        assert isinstance(await admit(gate, [], "other"), Deny)

    await asyncio.gather(wished(), other(), wished())
    assert [question.preview.body for question in person.questions] == ["other", "within", "within"]


async def test_a_switch_to_plan_refuses_those_that_wait():
    person, events = Person(YES), list[Event]()
    gate = Gate(Policy(SafetySettings()), person)
    first = asyncio.create_task(admit(gate, events))
    second = asyncio.create_task(admit(gate, events, "other", "2"))
    await asyncio.sleep(0)
    gate.policy.mode = "plan"
    assert await first == Allow("person")
    assert isinstance(await second, Deny)
    assert isinstance(events[-1], ConfirmationAnswered)
    assert not events[-1].is_allowed


async def test_a_refusal_by_mode_is_told_and_nobody_is_asked():
    person, events = Person(YES), list[Event]()
    verdict = await admit(Gate(Policy(SafetySettings(mode="deny")), person), events)
    assert isinstance(verdict, Deny)
    assert events == [ConfirmationAnswered(id="1", is_allowed=False, reason=verdict.reason)]
    assert person.questions == []


async def test_without_a_person_the_answer_is_no():
    verdict = await admit(Gate(Policy(SafetySettings())), [])
    assert isinstance(verdict, Deny)
    assert "nobody is there" in verdict.reason


async def test_a_folder_allowed_while_another_call_waits_is_not_asked_about_again(
    project: Path, tmp_path: Path
):
    roots, person, events = Roots(this_host(), project), Person(ALWAYS), list[Event]()
    gate = Gate(Policy(SafetySettings()), person)
    opened = []

    async def read(name: str) -> None:
        with pytest.raises(OutsideRoots) as refused:
            roots.resolve(str(tmp_path / name))
        call = ToolCall(id=name, name="read_file")
        with await gate.admit_reading(call, refused.value, events.append):
            opened.append(roots.resolve(str(tmp_path / name)).name)

    await asyncio.gather(read("one"), read("two"))
    assert opened == ["one", "two"]
    assert [question.call.id for question in person.questions] == ["one"]


async def test_a_yes_to_a_path_outside_is_for_this_call_alone(project: Path, tmp_path: Path):
    roots, gate = Roots(this_host(), project), Gate(Policy(SafetySettings()), Person(YES))
    call = ToolCall(id="1", name="read_file")
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    with pytest.raises(OutsideRoots) as refused:
        roots.resolve(one)
    with await gate.admit_reading(call, refused.value, lambda _: None):
        assert roots.resolve(one).name == "one"
        with pytest.raises(OutsideRoots):
            roots.resolve(other)
    with pytest.raises(OutsideRoots):
        roots.resolve(one)


async def test_a_yes_for_one_call_opens_nothing_to_what_runs_beside_it_or_goes_on_after_it(
    project: Path, tmp_path: Path
):
    roots, gate = Roots(this_host(), project), Gate(Policy(SafetySettings()), Person(YES))
    begun, ends = asyncio.Event(), asyncio.Event()

    async def is_open() -> bool:
        try:
            return bool(await in_thread(lambda: roots.resolve(str(tmp_path / "diary.txt"))))
        except OutsideRoots:
            return False

    async def list_names() -> "asyncio.Task[bool]":
        call, refused = ToolCall(id="1", name="list_files"), OutsideRoots("", str(tmp_path), roots)
        with await gate.admit_reading(call, refused, lambda _: None):
            assert await is_open()
            begun.set()
            await ends.wait()
            return asyncio.create_task(is_open())

    listing = asyncio.create_task(list_names())
    await begun.wait()
    assert not await is_open()
    assert roots.reading == ()
    ends.set()
    assert not await (await listing)


@every_row("path", ["{home}/notes.txt", "/notes.txt"])
async def test_all_of_the_home_folder_or_of_the_disk_is_not_offered(
    project: Path, tmp_path: Path, path: str
):
    host, person = this_host(), Person(NO)
    call, wanted = ToolCall(id="1", name="read_file"), path.format(home=host.home)
    outside = OutsideRoots("outside", wanted, Roots(host, project))
    with pytest.raises(Refused, match="use make"):
        await Gate(Policy(SafetySettings()), person).admit_reading(call, outside, lambda _: None)
    (question,) = person.questions
    assert question.grant == ""
    assert question.withheld
    person = Person(ALWAYS)  # an answer that was not offered
    with await Gate(Policy(SafetySettings()), person).admit_reading(call, outside, lambda _: None):
        assert outside.roots.may_read(wanted)
    assert outside.roots.reading == ()
    assert not outside.roots.may_read(wanted)
    person = Person(NO)
    narrow = OutsideRoots("outside", str(tmp_path / "notes.txt"), Roots(host, project))
    with pytest.raises(Refused):
        await Gate(Policy(SafetySettings()), person).admit_reading(call, narrow, lambda _: None)
    assert person.questions[0].grant == f"reading in {tmp_path}"


async def test_a_key_at_the_question_of_an_edit_has_each_edit_asked_about():
    person, events = Person(Answer(is_allowed=True, asks_edits=True)), list[Event]()
    policy = Policy(SafetySettings())
    gate = Gate(policy, person)

    async def edit(name: str, *, is_seen: bool) -> Allow | Deny:
        call = ToolCall(id="1", name=name)
        subject = Subject(paths=("a.py",), is_seen=is_seen)
        preview = Preview(title="edit", body="x")
        effect = "edit" if name == "edit_file" else "delete"
        return await gate.admit(call, effect, preview, subject, events.append)

    assert await edit("edit_file", is_seen=True) == Allow()
    await edit("delete_file", is_seen=True)
    assert await admit(gate, events) == Allow("person")
    assert [each.offers_asking for each in person.questions] == [False, False]
    assert not policy.asks_before_edits, "only the question about an edit has it"
    await edit("edit_file", is_seen=False)
    assert person.questions[-1].offers_asking
    assert policy.asks_before_edits
    assert await edit("edit_file", is_seen=True) == Allow("person")
    assert not person.questions[-1].offers_asking, "they are asked about already"


async def test_where_nobody_is_there_a_path_outside_stays_outside(project: Path, tmp_path: Path):
    outside = OutsideRoots("outside", str(tmp_path / "notes.txt"), Roots(this_host(), project))
    with pytest.raises(OutsideRoots):
        await Gate(Policy(SafetySettings())).admit_reading(
            ToolCall(id="1", name="read_file"), outside, lambda _: None
        )
