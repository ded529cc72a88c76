"""Sub-agents in a session: three providers at once, what goes wrong, what comes back, and what they may not do."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conductor_cast import ALWAYS, Cast, delegated, of_agent, opened, results
from hosts import this_host
from scripted import AnthropicServer, HttpError, Interrupted, OllamaServer, OpenAIServer
from ybs.commands.open import SlashCommands
from ybs.conductor.overlay import Overlay
from ybs.conductor.workplaces import Workplaces
from ybs.core.errors import ProviderDown, YbsError
from ybs.core.events import TurnFinished
from ybs.core.messages import UserMessage
from ybs.core.ports import Answer, Question
from ybs.session.session import Session
from ybs.testing import RecordedEvents, answer, call

pytestmark = pytest.mark.integration
Open = Callable[..., tuple[Session, RecordedEvents]]


async def test_three_providers_work_in_one_session_while_one_fails_and_one_reaches_its_limit(
    project: Path, open_session: Open
) -> None:
    (project / "a.txt").write_text("one\n")
    tasks = delegated(
        {"task": "What is in a.txt?", "kind": "explore", "model": "research/finder"},
        {"task": "Is it right?", "kind": "review", "model": "judge/strict"},
        {"task": "Read a.txt for ever.", "kind": "explore", "model": "judge/strict", "steps": 2},
        {"task": "Wait for ever.", "kind": "explore", "model": "slow/snail", "seconds": 0.2},
    )
    read = call("read_file", path="a.txt")
    researcher = AnthropicServer([read, "a.txt:1 says one."], models=("finder",))
    reviewer = OllamaServer([lambda r: _judged(r)] * 3, models=("strict",))
    slow = OllamaServer([Interrupted(how="stall", after_frames=1)], models=("snail",))
    async with OpenAIServer([tasks, "It says one."]) as main, researcher, reviewer, slow:
        session, events = open_session(
            main,
            overrides={
                **ALWAYS,
                "agent.retry_attempts": 0,
                "providers": {
                    "research": {"wire": "anthropic", "endpoint": researcher.url, "api_key": "k"},
                    "judge": {"wire": "ollama", "endpoint": reviewer.url},
                    "slow": {"wire": "ollama", "endpoint": slow.url},
                },
            },
        )
        async with session:
            outcome = await session.send("What does a.txt say?")
            name = session.journal.name
            used = session.usage
        assert (outcome.text, outcome.finished.reason) == ("It says one.", "done")
    (result,) = results(events)
    told = result.output.split("\n\n")
    assert told[0].startswith("[explore-1: done; 2 steps")
    assert told[0].endswith("says one.")
    assert told[1].startswith("[review-1: not done: ")
    assert "the model's engine died" in told[1]
    assert told[2].startswith("[explore-2: not done: Stopped after 2 steps")
    assert "It had done 2 calls, the last: Read a.txt; Read a.txt" in told[2]
    assert told[3].startswith("[explore-3: not done: Stopped after 0.2 s")
    assert result.success
    assert result.summary == "1 of 4 sub-agents done"
    # The parent reads the results alone, and what all of them used is the session's.
    assert len(main.requests) == 2
    assert main.requests[1].body["messages"][-1]["content"] == result.output
    ends = {each.agent: each.event for each in events.envelopes if type(each.event) is TurnFinished}
    assert used.input_tokens == sum(each.usage.input_tokens for each in ends.values())
    assert {each: end.reason for each, end in ends.items()} == {
        "main": "done",
        "explore-1": "done",
        "review-1": "error",
        "explore-2": "limit",
        "explore-3": "limit",
    }
    # Every event belongs to one agent, and those of sub-agents name the call that started them.
    begun = {each.started_by for each in events.envelopes if not each.is_main}
    assert begun == {result.id}
    lines = (this_host().sessions_folder / f"{name}.jsonl").read_bytes().splitlines()
    agents = {msgspec.json.decode(line).get("agent") for line in lines}
    assert agents == {None, *ends} - {"main"}
    assert session.journal.replay.messages == list(session.conversation.messages)


def _judged(request: Any) -> Any:
    if "Is it right?" in str(request.body["messages"]):
        return HttpError(status=500, message="the model's engine died")
    return call("read_file", path="a.txt")


async def test_a_small_model_that_only_announces_is_held_to_its_task(project: Path) -> None:
    task = {"task": "Which shop is it? find it", "kind": "explore"}
    cast = Cast(
        [delegated(task), "done", "done"],
        find=["I need to look at the project structure.", "An umbrella shop."],
    )
    session, events = opened(project, cast.model, overrides={"llm.prompt": "short"})
    async with session:
        await session.send("go")
    (result,) = results(events)
    assert result.output.endswith("An umbrella shop.")
    assert len(cast.requests["find"]) == 2


async def test_a_sub_agent_gets_its_task_its_part_and_nothing_of_the_conversation(project):
    task = {"task": "find it", "kind": "explore", "context": "It is in lib/."}
    cast = Cast([delegated(task), "done"], find=["Found."])
    session, _ = opened(project, cast.model)
    async with session:
        await session.send("a secret plan")
    (request,) = cast.requests["find"]
    assert "a secret plan" not in str(request.messages)
    assert request.messages[0].text == "find it\n\n<context>\nIt is in lib/.\n</context>"
    assert {spec.name for spec in request.tools} == {
        *("read_file", "list_files", "search_files", "repo_map")
    }
    assert "change nothing" in request.system


async def test_a_sub_agent_cannot_delegate(project: Path) -> None:
    again = delegated({"task": "again", "kind": "explore"})
    cast = Cast(
        [delegated({"task": "first", "kind": "general"}), "done"], first=[again, "I cannot."]
    )
    session, events = opened(project, cast.model)
    async with session:
        await session.send("go")
    assert "delegate" not in {spec.name for spec in cast.requests["first"][0].tools}
    refused = next(each for each in results(events) if not each.success)
    assert "There is no tool 'delegate'" in refused.output


@pytest.mark.parametrize("mode", ["bypass", "auto", "accept-edits"])
async def test_what_reads_only_stays_read_only_whatever_the_mode_is(project, mode):
    write = call("write_file", path="new.txt", content="x")
    shell = call("run_shell", command="touch new.txt")
    cast = Cast(
        [delegated({"task": "look", "kind": "review", "tools": []}), "done"],
        look=[write, shell, call("git", action="commit", text="x"), "I could not."],
    )
    session, events = opened(project, cast.model, mode=mode, allow=("run_shell", "write_file"))

    async def yes(_question: Question) -> Answer:
        return Answer(is_allowed=True)

    session.confirm = yes
    async with session:
        await session.send("go")
    assert not (project / "new.txt").exists()
    (shell_result,) = results(events, "run_shell")
    assert shell_result.is_refused
    assert "You work read-only" in shell_result.output
    assert not any(each.success for each in results(events, "write_file"))


async def test_a_mode_that_becomes_narrower_binds_a_sub_agent_that_works_already(project):
    write = call("write_file", path="new.txt", content="x")

    async def narrower(_request: Any) -> Any:
        session.mode = "plan"
        return write

    cast = Cast(
        [delegated({"task": "make", "kind": "general"}), "done"], make=[narrower, "I could not."]
    )
    session, events = opened(project, cast.model, mode="bypass")
    async with session:
        await session.send("go")
    assert not (project / "new.txt").exists()
    assert results(events, "write_file")[0].is_refused


async def test_a_question_names_the_sub_agent_and_its_answer_reaches_it(project: Path) -> None:
    write = call("write_file", path="new.txt", content="x")
    cast = Cast(
        [delegated({"task": "make", "kind": "general"}), "done"], make=[write, "I made it."]
    )
    session, events = opened(project, cast.model)
    asked: list[Question] = []

    async def yes(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=True)

    session.confirm = yes
    async with session:
        await session.send("go")
    assert [each.agent for each in asked] == ["general-1"]
    assert (project / "new.txt").read_text() == "x"
    assert "Files changed: new.txt" in results(events)[0].output


async def test_cancelling_reaches_every_sub_agent(project: Path) -> None:
    both = asyncio.Barrier(3)

    async def hang(_request: Any) -> Any:
        await both.wait()
        await asyncio.Event().wait()

    tasks = [{"task": word, "kind": "explore"} for word in ("one", "two")]
    cast = Cast([delegated(*tasks)], one=[hang], two=[hang])
    session, events = opened(project, cast.model)
    async with session:
        turn = asyncio.create_task(session.send("go"))
        await both.wait()
        assert session.cancel()
        outcome = await turn
        assert outcome.finished.reason == "interrupted"
        assert not session.conversation.open_calls
    for name in ("explore-1", "explore-2"):
        assert of_agent(events, name)[-1].reason == "interrupted"
    assert len(asyncio.all_tasks()) == 1


async def test_a_sub_agent_that_breaks_does_not_take_the_others_with_it(project: Path) -> None:
    async def broken(_request: Any) -> Any:
        raise ZeroDivisionError("oh")

    tasks = [{"task": word, "kind": "explore"} for word in ("one", "two", "three")]
    cast = Cast(
        [delegated(*tasks), "done"], one=[broken], two=["Found."], three=[ProviderDown("gone")]
    )
    session, events = opened(project, cast.model)
    async with session:
        outcome = await session.send("go")
    assert outcome.text == "done"
    one, two, three = results(events)[0].output.split("\n\n")
    assert "[explore-1: not done: " in one
    assert "oh" in one
    assert two.endswith("Found.")
    assert "[explore-3: not done: gone" in three


async def test_where_none_is_done_the_call_has_failed(project: Path) -> None:
    cast = Cast([delegated({"task": "one", "kind": "explore"}), "done"], one=[ProviderDown("gone")])
    session, events = opened(project, cast.model)
    async with session:
        await session.send("go")
    assert not results(events)[0].success


async def test_a_task_that_makes_no_sense_is_refused_in_words(project: Path) -> None:
    bad = [
        delegated({"task": "x", "kind": "wizard"}),
        delegated(),
        delegated({"task": " ", "kind": "explore"}),
        delegated({"task": "x", "kind": "general", "background": True}),
        delegated({"task": "x", "kind": "explore", "model": "auto"}),
        delegated({"task": "x", "kind": "explore", "model": "nowhere/x"}),
    ]
    cast = Cast([*bad, "done"])
    session, events = opened(project, cast.model)
    async with session:
        await session.send("go")
    told = [each.output for each in results(events)]
    assert (
        "There is no kind 'wizard'. None fits these words.\nThe kinds are: explore, review, test, general"
        in told[0]
    )
    assert "Give 1 to 20 tasks" in told[1]
    assert "Give 1 to 20 tasks" in told[2]
    assert "Only kinds that change nothing work in the background" in told[3]
    assert "The router needs two models to pick from" in told[4]
    assert "'nowhere/x' cannot be chosen" in told[5]
    assert not any(each.success for each in results(events))


async def test_the_last_request_of_a_budget_is_announced(project: Path) -> None:
    look = call("list_files")
    cast = Cast(
        [delegated({"task": "look", "kind": "explore", "steps": 2}), "done"],
        look=[look, "Half of it."],
    )
    session, events = opened(project, cast.model)
    async with session:
        await session.send("go")
    assert "Your budget ends with your next answer" in cast.requests["look"][1].messages[-1].text
    assert results(events)[0].output.endswith("Half of it.")


async def test_the_requests_of_sub_agents_count_as_the_turns(project: Path) -> None:
    look = [answer(call("list_files")) for _ in range(9)]
    tasks = [{"task": word, "kind": "explore"} for word in ("one", "two")]
    cast = Cast([delegated(*tasks), "never"], one=list(look), two=list(look))
    session, _events = opened(project, cast.model, max_turns=6)
    async with session:
        outcome = await session.send("go")
    # One request of six was the parent's own, and one is kept for it: four are left, two for each.
    assert len(cast.requests["one"]) == len(cast.requests["two"]) == 2
    assert outcome.text == "never"
    assert outcome.finished.reason == "done"


async def test_long_results_are_cut_and_kept_in_a_file(project: Path) -> None:
    cast = Cast([delegated({"task": "one", "kind": "explore"}), "done"], one=["word " * 10_000])
    session, events = opened(
        project, cast.model, overrides={"context.max_tool_output_chars": 10_000}
    )
    async with session:
        await session.send("go")
    told = results(events)[0].output
    assert len(told) < 10_000
    path = told.partition("All of it: ")[2].partition(" ...]")[0]
    assert await asyncio.to_thread(Path(path).read_text) == ("word " * 10_000).strip()


async def test_a_sub_agent_in_the_background_is_told_of_at_the_next_step(project: Path) -> None:
    go_on = asyncio.Event()

    async def late(_request: Any) -> Any:
        await go_on.wait()
        return "Found late."

    task = {"task": "late", "kind": "explore", "background": True}
    cast = Cast([delegated(task), "It works.", "I have read it."], late=[late])
    session, events = opened(project, cast.model)
    async with session:
        first = await session.send("go")
        assert first.text == "It works."
        assert "[explore-1: is running in the background" in results(events)[0].output
        go_on.set()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
        await session.send("and?")
    said = [each for each in cast.requests["main"][-1].messages if isinstance(each, UserMessage)]
    news = [each.text for each in said if "From the background" in each.text]
    assert len(news) == 1
    assert "Found late." in news[0]


async def test_a_one_shot_waits_for_what_works_in_the_background(project: Path) -> None:
    is_asked = asyncio.Event()

    async def late(_request: Any) -> Any:
        await is_asked.wait()
        return "Found late."

    async def works(_request: Any) -> Any:
        is_asked.set()
        return "It works."

    task = {"task": "late", "kind": "explore", "background": True}
    cast = Cast([delegated(task), works, "Found late, then."], late=[late])
    session, _ = opened(project, cast.model, is_one_shot=True)
    async with session:
        outcome = await session.send("go")
    assert outcome.text == "Found late, then."


async def test_what_works_in_the_background_ends_with_the_session_and_by_cancelling(project):
    async def hang(_request: Any) -> Any:
        await asyncio.Event().wait()

    task = {"task": "hang", "kind": "explore", "background": True}
    cast = Cast([delegated(task), "It works.", delegated(task), "Again."], hang=[hang, hang])
    session, events = opened(project, cast.model)
    async with session:
        await session.send("go")
        with pytest.raises(YbsError, match="1 sub-agent still at work in the background"):
            await session.switch_model(provider=None, model=None)
        assert session.cancel()
        await session.send("again")
    assert of_agent(events, "explore-1")[-1].reason == "interrupted"
    assert of_agent(events, "explore-2")[-1].reason == "interrupted"
    assert len(asyncio.all_tasks()) == 1


async def test_several_that_write_work_in_copies_that_are_merged(project: Path) -> None:
    (project / "shared.txt").write_text("one\n")
    both = asyncio.Barrier(2)

    async def look(request: Any) -> Any:
        await both.wait()  # both have begun with the project as it was
        return call("read_file", path="shared.txt")

    def writes(word: str) -> list[Any]:
        own = call("write_file", path=f"{word}.txt", content=word)
        shared = call("write_file", path="shared.txt", content=f"{word}\n")
        return [look, answer(own, shared), f"I wrote {word}.txt."]

    tasks = [{"task": word, "kind": "general"} for word in ("left", "right")]
    cast = Cast([delegated(*tasks), "done"], left=writes("left"), right=writes("right"))
    session, events = opened(project, cast.model, mode="bypass", commands=SlashCommands())
    async with session:
        await session.send("go")
        told, summary = results(events)[0].output, results(events)[0].summary
        assert summary.startswith("2 of 2 sub-agents done; changed ")
        assert {"left.txt", "right.txt", "shared.txt"} == set(
            summary.partition("changed ")[2].split(", ")
        )
        assert (project / "left.txt").read_text() == "left"
        assert (project / "right.txt").read_text() == "right"
        assert (project / "shared.txt").read_text() in ("left\n", "right\n")
        assert told.count("Merged into the project: ") == 2
        assert told.count("NOT merged, the project keeps its own version (1 path)") == 1
        assert str(project) not in cast.requests["left"][0].system
        await session.handle("/undo")
        assert (project / "shared.txt").read_text() == "one\n"
        assert not (project / "left.txt").exists()


async def test_nothing_is_merged_while_another_one_works_in_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    is_waiting = asyncio.Event()
    merged, merge = Workplaces.merged, Overlay.merge

    async def waiting(self: Workplaces, *words: Any) -> Any:
        is_waiting.set()
        return await merged(self, *words)

    async def merging(self: Overlay, *words: Any) -> Any:
        order.append("merged")
        return await merge(self, *words)

    async def works(_request: Any) -> Any:
        await is_waiting.wait()
        order.append("works")
        return "I ran the tests."

    monkeypatch.setattr(Workplaces, "merged", waiting)
    monkeypatch.setattr(Overlay, "merge", merging)
    write = call("write_file", path="new.txt", content="x")
    several = [{"task": word, "kind": "general"} for word in ("one", "two")]
    calls = answer(delegated(*several), delegated({"task": "alone", "kind": "general"}))
    cast = Cast([calls, "done"], one=[write, "ok"], two=["ok"], alone=[works])
    session, _ = opened(project, cast.model, mode="bypass")
    async with session:
        await session.send("go")
    assert order == ["works", "merged", "merged"]
    assert (project / "new.txt").read_text() == "x"


async def test_what_a_stopped_one_changed_in_its_copy_is_not_taken_over(project: Path) -> None:
    async def stopped(_request: Any) -> Any:
        session.cancel()
        await asyncio.Event().wait()

    write = call("write_file", path="new.txt", content="x")
    tasks = [{"task": word, "kind": "general"} for word in ("one", "two")]
    cast = Cast([delegated(*tasks)], one=[write, stopped], two=["Nothing."])
    session, _ = opened(project, cast.model, mode="bypass")
    async with session:
        outcome = await session.send("go")
    assert outcome.finished.reason == "interrupted"
    assert not (project / "new.txt").exists()


FAR = {"far": {"wire": "openai", "endpoint": "https://far.example/v1", "api_key": "k"}}


async def test_a_model_may_not_send_what_it_knows_further_away_than_the_session_does(
    project: Path, open_session: Open
) -> None:
    task = delegated({"task": "look", "kind": "explore", "model": "far/large"})
    async with OpenAIServer([task, "done"]) as server:
        session, events = open_session(server, overrides={**ALWAYS, "providers": FAR})
        async with session:
            await session.send("go")
    told = results(events)[0].output
    assert "far/large is refused: the session's model answers on this machine" in told


async def test_a_name_that_a_model_gives_a_model_is_no_part_of_a_shells_command(
    project: Path, open_session: Open
) -> None:
    command = ["sh", "-c", "cat >&2; echo answer of {model}"]
    own = {"mine": {"command": command, "output": "text", "model": "large"}}
    task = delegated({"task": "look", "kind": "explore", "model": "mine/m;touch ran"})
    async with OpenAIServer([task, "done"]) as server:
        session, events = open_session(server, overrides={**ALWAYS, "cli_agents": own})
        async with session:
            await session.send("go")
    told = results(events)[0].output
    assert "'m;touch ran' is refused: where the person does not name it" in told


async def test_in_incognito_a_model_elsewhere_is_refused_although_the_person_has_named_it(
    project: Path, open_session: Open
) -> None:
    overrides = {
        **ALWAYS,
        "providers": FAR,
        "agents.models": {"explore": "far/large"},
        "incognito.enabled": True,
        "incognito.local_only": True,
    }
    task = delegated({"task": "look", "kind": "explore"})
    async with OpenAIServer([task, "done"]) as server:
        session, events = open_session(server, overrides=overrides)
        async with session:
            await session.send("go")
    assert "[explore-1: not done: " in results(events)[0].output
    assert "local_only" in results(events)[0].output


async def test_hooks_are_told_when_a_sub_agent_stops(project: Path) -> None:
    hook = {"hooks": [{"type": "command", "command": "touch $YBS_PROJECT_DIR/stopped"}]}
    cast = Cast([delegated({"task": "look", "kind": "explore"}), "done"], look=["Found."])
    session, _ = opened(project, cast.model, overrides={"hooks": {"SubagentStop": [hook]}})
    async with session:
        await session.send("go")
    assert (project / "stopped").exists()


async def test_hooks_are_told_which_sub_agent_begins_and_may_tell_it_something(project):
    said = {"hookSpecificOutput": {"additionalContext": "Look into src first."}}
    keep = 'cat > "$CLAUDE_PROJECT_DIR"/start.json'
    hooks = {
        "SubagentStart": [
            {"matcher": "Explore", "hooks": [{"command": f"{keep}; echo '{json.dumps(said)}'"}]},
            {
                "matcher": "general-purpose",
                "hooks": [{"command": 'touch "$CLAUDE_PROJECT_DIR"/wrong'}],
            },
        ],
        "SubagentStop": [
            {"matcher": "explore", "hooks": [{"command": 'cat > "$CLAUDE_PROJECT_DIR"/stop.json'}]}
        ],
    }
    cast = Cast([delegated({"task": "look", "kind": "explore"}), "done"], look=["Found."])
    session, _ = opened(project, cast.model, overrides={"hooks": hooks})
    async with session:
        await session.send("go")
    start, stop = (json.loads((project / f"{each}.json").read_text()) for each in ("start", "stop"))
    assert (start["agent_id"], start["agent_type"]) == ("explore-1", "Explore")
    assert (stop["agent_id"], stop["last_assistant_message"]) == ("explore-1", "Found.")
    assert "Look into src first." in "\n".join(
        each.text for each in cast.requests["look"][0].messages
    )
    assert not (project / "wrong").exists()


async def test_after_a_resume_names_go_on_where_they_were(project: Path) -> None:
    task = delegated({"task": "look", "kind": "explore"})
    cast = Cast([task, "done"], look=["Found."])
    session, _ = opened(project, cast.model)
    async with session:
        await session.send("go")
        name = session.journal.name
    cast = Cast([task, "done"], look=["Found."])
    resumed, events = opened(project, cast.model, resume=name)
    async with resumed:
        await resumed.send("again")
    assert {each.agent for each in events.envelopes} == {"main", "explore-2"}
