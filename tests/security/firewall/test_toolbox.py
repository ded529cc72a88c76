"""What tools answer is masked; placeholders in calls are put back where the secret stands, or refused (X05, F06)."""

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from secrets_corpus.drawing import draw

from ybs.core.errors import Refused
from ybs.core.events import (
    AssistantSaid,
    ConfirmationAsked,
    Noticed,
    ToolFinished,
    ToolPrinted,
    UserSaid,
)
from ybs.core.messages import AssistantMessage, Text, ToolCall, ToolResult
from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.restore import Restorer
from ybs.security.firewall.structs import masked
from ybs.security.firewall.toolbox import WITHHELD, FirewallToolbox
from ybs.testing import RecordedEvents, ScriptedToolbox


def call_of(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(id="7", name=name, arguments=Raw(msgspec.json.encode(arguments)))


class Files(dict[str, str]):
    """Files by path, read as the tools would."""

    def __call__(self, path: str) -> str | None:
        return self.get(path)


def toolbox_of(
    firewall: Firewall, files: Files, **tools: Any
) -> tuple[FirewallToolbox, ScriptedToolbox]:
    inner = ScriptedToolbox(tools, writers={"edit_file", "write_file"})
    return FirewallToolbox(inner, firewall, files), inner


async def test_results_and_events_hold_no_secret(firewall: Firewall, token: str) -> None:
    def behave(call: ToolCall, emit: Any) -> ToolResult:
        emit(ConfirmationAsked(id=call.id, name=call.name, title="t", preview=f"+ {token}"))
        for piece in ("line\n", token[:9], token[9:], "\nmore"):
            emit(ToolPrinted(id=call.id, text=piece))
        return ToolResult(
            call_id="",
            name="run_shell",
            output=f"out {token}",
            summary=token,
            display=Raw(msgspec.json.encode({"stdout": token})),
        )

    toolbox, _ = toolbox_of(firewall, Files(), run_shell=behave)
    events = RecordedEvents()
    result = await toolbox.run(call_of("run_shell", command="x"), events)
    assert token not in repr((events.events, result, ToolFinished.of(result)))
    assert result.output == "out [ybs:secret:github-token#1]"
    assert (
        "".join(event.text for event in events.of(ToolPrinted))
        == "line\n[ybs:secret:github-token#1]\nmore"
    )
    assert [spec.name for spec in toolbox.specs()] == ["run_shell"]
    assert not toolbox.is_read_only(call_of("edit_file"))
    assert toolbox.is_read_only(call_of("run_shell"))


@pytest.mark.parametrize(
    ("arguments", "is_secret"),
    [
        ({"path": "config/master.key"}, True),
        ({"path": "token"}, True),
        ({"command": "cat ~/.vault_pass"}, True),
        ({"command": "cat 'api_key.txt'; echo"}, True),
        ({"path": "public.key"}, False),
        ({"path": "src/token.py"}, False),
        ({"command": "git rev-parse HEAD"}, False),
    ],
)
async def test_a_file_that_is_called_a_key_holds_one(
    firewall: Firewall, arguments: dict[str, str], is_secret: bool
) -> None:
    word = draw("[a-f][0-9][a-f0-9]{30}", Random(2))
    (name,) = arguments
    outputs = iter((f"     1\t{word}\n", f"{word} and more"))

    def behave(call: ToolCall, emit: Any) -> ToolResult:
        return ToolResult(call_id=call.id, name=name, output=next(outputs))

    toolbox, _ = toolbox_of(firewall, Files(), **{name: behave})
    results = [
        (await toolbox.run(call_of(name, **given), RecordedEvents())).output
        for given in (arguments, {"path": "elsewhere"})
    ]
    shown = "[ybs:secret:assigned-secret#1]" if is_secret else word
    assert results == [f"     1\t{shown}\n", f"{shown} and more"]


async def test_a_result_without_secrets_is_the_same(firewall: Firewall) -> None:
    toolbox, inner = toolbox_of(firewall, Files(), read_file="fine")
    call = call_of("read_file", path="a\\u")
    assert (await toolbox.run(call, RecordedEvents())).output == "fine"
    assert inner.calls[0] is call


async def test_the_person_hears_of_a_private_key(firewall: Firewall, key: str) -> None:
    toolbox, _ = toolbox_of(firewall, Files(), read_file=key)
    events = RecordedEvents()
    result = await toolbox.run(call_of("read_file", path="id"), events)
    assert result.output == "[ybs:secret:private-key#1]"
    assert [event.text for event in events.of(Noticed)] == [
        "A private key stands in the result of read_file id; the model sees a placeholder."
    ]


async def test_a_result_with_a_key_that_cannot_be_masked_whole_is_withheld(
    firewall: Firewall, key: str
) -> None:
    lines = key.splitlines()[:-1]
    odd = "\n".join([*lines[:4], *(f"{{{line}}}" for line in lines[4:])])
    toolbox, _ = toolbox_of(firewall, Files(), read_file=odd)
    events = RecordedEvents()
    result = await toolbox.run(call_of("read_file", path="id"), events)
    assert result.output == result.summary == WITHHELD
    assert "a part of it could not be masked" in events.of(Noticed)[0].text
    assert not any(line in repr((result, events.events)) for line in lines)


async def test_the_tail_of_a_key_in_one_line_is_withheld_and_words_about_keys_are_not(
    firewall: Firewall, key: str
) -> None:
    tail = key.strip().replace("\n", "\\n")[-600:]
    words = "A file that begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----."
    toolbox, _ = toolbox_of(firewall, Files(), run_shell=f'{tail}"', read_file=words)
    result = await toolbox.run(call_of("run_shell"), RecordedEvents())
    assert result.output == WITHHELD
    assert (await toolbox.run(call_of("read_file"), RecordedEvents())).output == words


async def test_what_was_held_back_is_shown_when_a_tool_breaks_off(firewall: Firewall) -> None:
    def behave(call: ToolCall, emit: Any) -> str:
        emit(ToolPrinted(id=call.id, text="half"))
        raise KeyboardInterrupt

    toolbox, _ = toolbox_of(firewall, Files(), run_shell=behave)
    events = RecordedEvents()
    with pytest.raises(KeyboardInterrupt):
        await toolbox.run(call_of("run_shell"), events)
    assert [event.text for event in events.of(ToolPrinted)] == ["half"]


async def test_an_edit_keeps_the_secret_that_the_file_holds(firewall: Firewall, token: str) -> None:
    mark = firewall.mask(token)
    files = Files({"a.env": f"KEY={token}\n"})
    toolbox, inner = toolbox_of(firewall, files, edit_file=f"now {token}", write_file="ok")
    result = await toolbox.run(
        call_of(
            "edit_file",
            path="a.env",
            old_text=f"KEY={mark}",
            new_text=f"TOKEN={mark}",
            replace_all=True,
        ),
        RecordedEvents(),
    )
    assert msgspec.json.decode(inner.calls[0].arguments)["new_text"] == f"TOKEN={token}"
    assert result.output == f"now {mark}"
    await toolbox.run(call_of("write_file", path="a.env", content=f"A={mark}"), RecordedEvents())
    assert msgspec.json.decode(inner.calls[1].arguments)["content"] == f"A={token}"


async def test_x05_a_placeholder_is_refused_wherever_the_secret_does_not_stand(
    firewall: Firewall, token: str
) -> None:
    mark = firewall.mask(token)
    files = Files({"b.env": "nothing", "a.env": token})
    toolbox, inner = toolbox_of(firewall, files, edit_file="ok", write_file="ok", run_shell="ok")
    escaped = ToolCall(
        id="1",
        name="run_shell",
        arguments=Raw(b'{"command":"echo [\\u0079' + mark[2:].encode() + b'"}'),
    )
    calls = [
        escaped,
        call_of("write_file", path="b.env", content=mark),
        call_of("write_file", path="new.env", content=mark),
        call_of("edit_file", path="b.env", old_text="nothing", new_text=mark),
        call_of("edit_file", path="a.env", file_path="b.env", old_text="x", new_text=mark),
        call_of("edit_file", path=mark, old_text="x", new_text="y"),
        call_of("edit_file", path=7, old_text="x", new_text=mark),
        call_of("Edit", path="a.env", old_text="x", new_text=mark),
        call_of("write_file", path="a.env", content="[ybs:secret:jwt#99]"),
        call_of("run_shell", command=f"curl -H {mark}"),
        call_of("run_shell", argv=["curl", {mark: 1}, 3]),
        call_of("run_shell", command=[mark]),
        ToolCall(id="1", name="run_shell", invalid=f'{{"command": "{mark}'),
    ]
    for call in calls:
        result = await toolbox.run(call, RecordedEvents())
        assert (result.is_refused, result.is_error) == (True, True), call
        assert "secret" in result.output
        assert token not in result.output
    assert inner.calls == []


@pytest.mark.integration
@given(
    st.sampled_from(["edit_file", "write_file", "run_shell", "Edit"]),
    st.sampled_from(["path", "content", "old_text", "new_text", "command"]),
    st.sampled_from(["holds", "empty", "absent"]),
    st.sampled_from(["{}", "KEY={}\n", "{0}{0}"]),
)
def test_a_secret_comes_back_only_in_an_edit_of_the_file_that_holds_it(
    name: str, member: str, path: str, frame: str
) -> None:
    firewall = Firewall()
    secret = draw("glpat-[A-Za-z0-9]{20}", Random(1))
    mark = firewall.mask(secret)
    restorer = Restorer(firewall.vault, Files({"holds": f"a {secret} b", "empty": ""}))
    call = call_of(name, **{"path": path, member: frame.format(mark)})
    own = {"edit_file": ("old_text", "new_text"), "write_file": ("content",)}.get(name, ())
    if path == "holds" and member in own:
        assert msgspec.json.decode(restorer.restored(call).arguments)[member] == frame.format(
            secret
        )
    else:
        with pytest.raises(Refused):
            restorer.restored(call)


async def test_words_that_only_look_like_a_placeholder_are_no_concern(
    firewall: Firewall, token: str
) -> None:
    mark = firewall.mask(token)
    files = Files({"doc.md": "see [ybs:secret:jwt#1]", "a.env": token})
    toolbox, inner = toolbox_of(firewall, files, write_file="ok", edit_file="ok")
    await toolbox.run(
        call_of("write_file", path="x", content="[ybs:secret:nonsense#1]"), RecordedEvents()
    )
    call = call_of(
        "edit_file",
        path="doc.md",
        old_text="see [ybs:secret:jwt#1]",
        new_text="[ybs:secret:jwt#1]!",
    )
    await toolbox.run(call, RecordedEvents())
    assert len(inner.calls) == 2
    assert msgspec.json.decode(inner.calls[1].arguments)["new_text"] == "[ybs:secret:jwt#1]!"
    assert (
        await toolbox.run(call_of("write_file", path="doc.md", content=mark), RecordedEvents())
    ).is_refused


def test_arguments_that_are_no_json_are_refused(firewall: Firewall) -> None:
    call = ToolCall(id="1", name="edit_file", arguments=Raw(b'{"a": "ybs:secret:'))
    with pytest.raises(Refused, match="not JSON"):
        Restorer(firewall.vault, Files()).restored(call)


def test_f06_what_is_stored_holds_no_secret(firewall: Firewall, token: str) -> None:
    said = AssistantMessage(
        content=(
            Text(text=token),
            ToolCall(id="1", name="x", arguments=Raw(f'{{"a":"{token}"}}'.encode())),
        )
    )
    quiet = Noticed(level="info", text="fine")
    events = (UserSaid(content=f"my {token}"), AssistantSaid.of(said), quiet)
    kept = [masked(firewall, event) for event in events]
    assert token not in repr(kept)
    assert kept[2] is quiet


def test_a_number_that_somebody_made_up_does_not_end_the_placeholders(
    firewall: Firewall, token: str
) -> None:
    firewall.vault.reserve("[ybs:secret:github-token#999999] [ybs:secret:github-token#7]")
    assert firewall.mask(token) == "[ybs:secret:github-token#8]"
