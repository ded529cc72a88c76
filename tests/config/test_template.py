"""Templates of commands: what is text in them, a place of an argument, a command."""

from ybs.config.template import (
    Argument,
    TemplateArguments,
    TemplateCommand,
    commands_in,
    parse,
    parts_of,
)

HEAD = "---\ndescription: 'Do it'\nModel: x\n---\n"


def text_of(template: str, given: str) -> str:
    pieces = parse(template)
    values = TemplateArguments(pieces, given, "/plug in")
    return "".join(
        each
        if isinstance(each, str)
        else (values.value(each) or "")
        if isinstance(each, Argument)
        else f"[{each.source}]"
        for each in pieces
    )


def test_the_head_is_apart() -> None:
    assert parts_of(f"{HEAD}\nBody\n".encode()) == ({"description": "Do it", "Model": "x"}, "Body")
    assert parts_of(b"Body\n---\nx: y\n---\n") == ({}, "Body\n---\nx: y\n---")


def test_places_of_arguments() -> None:
    given = "one \"two words\" it's 'three four' x"
    for template, text in (
        ("$ARGUMENTS.", f"{given}."),
        ("$1|$2|$3|$4|$5|$6|", "one|two words|it's|three four|x||"),
        ("$0|$1|", "one|two words|"),
        ("$ARGUMENTS[0]|$ARGUMENTS[1]|$1", "one|two words|one"),
        ("$10 $1x $ARGUMENTSX \\$1 $", "$10 $1x $ARGUMENTSX \\$1 $"),
        ("${CLAUDE_PLUGIN_ROOT}/x", "/plug in/x"),
    ):
        assert text_of(template, given) == text, template


def test_what_is_put_in_is_not_read_again() -> None:
    hostile = "$2 $ARGUMENTS !`rm x` $1"
    assert text_of("$ARGUMENTS", hostile) == hostile
    assert text_of("$1-$3", hostile) == "$2-!`rm"
    assert text_of("!`ls $1`", hostile) == "[ls $1]"


def test_commands_stand_in_lines_and_in_blocks() -> None:
    text = f"{HEAD}A !`git log $1` b\n```!\nls\n  make $2\n```\n```sh\nrm x\n```\n!``  ```!\n```!\n```\n!` `"
    assert commands_in(text.encode()) == ["git log $1", "ls\n  make $2"]
    assert commands_in(b"---\ndescription: !`rm x`\n---\nHello `!` you!") == []
    assert commands_in(b"Hello `!` you!") == []
    assert parse("!`a $1`") == (TemplateCommand(("a ", Argument("$1"))),)
    assert parse("```!\nls") == ("```!\nls",)  # it has no end


def test_what_cannot_be_read_as_front_matter_is_run_and_so_it_is_shown() -> None:
    assert commands_in(b"---\n!`make`\n---\nTidy up.\n") == ["make"]


def test_a_file_with_nul_has_no_words_and_runs_nothing() -> None:
    for data in (b"Tidy up. !\0`make`", b"Tidy up. !`make`\0", b"``\0`!\nmake\n```\n"):
        assert parts_of(data) == ({}, "")
        assert commands_in(data) == []
