"""Skills in folders: what is found, what is refused, and what a model is told of many."""

import os
from pathlib import Path

import pytest

from rows import every_row
from tools.skills.folders import skill
from trusting import put
from ybs.config.front_matter import Fork
from ybs.core.errors import ToolError
from ybs.tools.listing import fitting, listing
from ybs.tools.skills import MOST_BYTES, Folder, Skill, Skills, find_skills


def found(*folders: Path, only: tuple[str, ...] = (), opens: bool = True) -> Skills:
    places = [Folder(folder, folder.name) for folder in folders]
    return find_skills(places, None, only=only, may_open=lambda _: opens)


def why(skills: Skills) -> dict[str, str]:
    return {each.place: each.why for each in skills.unusable}


def test_what_its_head_says_is_known(tmp_path: Path):
    head = "license: MIT\ncompatibility: needs git\nallowed-tools: Bash(git:*) Read\nmetadata:\n  author: me\n"
    skill(tmp_path, "pdf-forms", head=head)
    skill(tmp_path, "deploy", head="disable-model-invocation: true\nallowed-tools:\n  - Read\n")
    put(tmp_path, "notes.md", "no skill")
    put(tmp_path, ".git/SKILL.md", "no skill")
    skills = found(tmp_path, tmp_path / "missing")
    assert [*skills.by_name] == ["deploy", "pdf-forms"]
    assert [each.name for each in skills.offered] == ["pdf-forms"]
    one = skills.by_name["pdf-forms"]
    assert (one.license, one.compatibility, one.allowed_tools) == (
        "MIT",
        "needs git",
        ("Bash(git:*)", "Read"),
    )
    assert one.remarks == ("without effect in ybs: allowed-tools",)
    assert skills.by_name["deploy"].allowed_tools == ("Read",)
    assert not skills.unusable


def test_of_two_with_one_name_the_first_is_used_and_the_other_is_reported(tmp_path: Path):
    first, second = tmp_path / "first", tmp_path / "second"
    skill(first, "it", "The first.")
    skill(second, "it", "The second.")
    skill(second, "other")
    (second / "link").symlink_to(first / "it")  # the same folder again
    skills = found(first, second)
    assert skills.by_name["it"].body() == ("The first.", 5)
    assert why(skills) == {"second/it": "first/it has the same name, and is used"}
    assert [*found(first, second, only=("other",)).by_name] == ["other"]


@every_row(
    "name, text, remark",
    [
        ("a", "---\nname: b\ndescription: x\n---\n", "its name 'b' is not that of its folder"),
        ("a", "---\ndescription: x\n---\n", "its name '' is not that of its folder"),
        ("a", "---\nname: A B\ndescription: x\n---\n", "a name has lower-case letters"),
        ("a", f"---\nname: a\ndescription: {'x' * 1025}\n---\n", "is longer than 1024"),
    ],
)
def test_what_does_not_fit_the_format_and_does_no_harm_is_a_remark(name: str, text: str, remark: str, tmp_path: Path):  # fmt: skip
    put(tmp_path, f"{name}/SKILL.md", text)
    (one,) = found(tmp_path).by_name.values()
    assert any(remark in each for each in one.remarks)
    assert len(one.description) <= 1024


@every_row(
    "name, text, reason",
    [
        ("A B", "---\nname: A B\ndescription: x\n---\n", "neither its name nor its folder's is one"),
        ("a", "---\nname: a\n---\n", "has no description"),
        ("a", "---\nname: a\ndescription:\n---\n", "has no description"),
        ("a", "words", "does not begin with front matter"),
        ("a", "", "does not begin with front matter"),
        ("a", f"---\nname: a\ndescription: x\n{'y: z' * 20_000}\n---\n", "front matter without an end"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_said(name: str, text: str, reason: str, tmp_path: Path):
    put(tmp_path, f"{name}/SKILL.md", text)
    skills = found(tmp_path)
    assert not skills.by_name
    assert reason in why(skills)[f"{tmp_path.name}/{name}"]


def test_hostile_files_are_refused_and_hold_nothing_up(tmp_path: Path):
    folder = tmp_path / "skills"
    secret = put(tmp_path, "home/.ssh/id_rsa", "---\nname: x\ndescription: key\n---\nprivate")
    for name in ("link", "pipe", "folder", "huge", "bytes", "esc\x1b[2J"):
        (folder / name).mkdir(parents=True)
    (folder / "link/SKILL.md").symlink_to(secret)
    os.mkfifo(folder / "pipe/SKILL.md")
    (folder / "folder/SKILL.md").mkdir()
    with (folder / "huge/SKILL.md").open("wb") as file:
        file.truncate(1_000_000_000)
    (folder / "bytes/SKILL.md").write_bytes(b"---\nname: bytes\ndescription: \xff\x1b[2J\xe2\x80\xae\n---\n\xff\xfe")  # fmt: skip
    put(folder, "esc\x1b[2J/SKILL.md", "---\ndescription: x\n---\n")
    skills = found(folder)
    said = why(skills)
    assert [*skills.by_name] == ["bytes"]
    assert "\x1b" not in skills.by_name["bytes"].description
    assert "<U+202E>" in skills.by_name["bytes"].description
    assert skills.by_name["bytes"].body() == ("\ufffd\ufffd", 5)
    assert said["skills/link"] == "SKILL.md is a link that leads out of the skill's folder"
    assert said["skills/pipe"] == "SKILL.md is not a regular file"
    assert said["skills/folder"] == "SKILL.md is not a regular file"
    assert said["skills/huge"] == f"SKILL.md is larger than {MOST_BYTES // 1_000_000} MB"
    assert "\x1b" not in str(said)


def test_a_link_to_a_folder_is_followed_where_tools_may_read_it(tmp_path: Path):
    real = skill(tmp_path / "elsewhere", "it")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills/it").symlink_to(real)
    assert found(tmp_path / "skills").by_name["it"].folder == real
    assert "which tools may not read" in why(found(tmp_path / "skills", opens=False))["skills/it"]


def test_its_instructions_name_its_files_and_take_words(tmp_path: Path):
    folder = skill(tmp_path, "it", "Look into ${CLAUDE_SKILL_DIR}.")
    put(folder, "scripts/run.py", "x")
    put(folder, "references/a.md", "x")
    put(folder, ".git/config", "x")
    put(folder, "scripts/__pycache__/run.pyc", "x")
    put(folder, "a/b/c/d/deep.md", "x")
    one = found(tmp_path).by_name["it"]
    assert one.instructions("the words", most_chars=1_000) == (
        f"Look into {folder}.\n\n[The skill it is in {folder}. Its files, read or run by their whole path: "
        "references/a.md, scripts/run.py]\n\nthe words"
    )
    skill(tmp_path, "it", "\nFor $ARGUMENTS.\n" + "".join(f"line {n}\n" for n in range(7, 999)))
    long = one.instructions("you", most_chars=1_000)
    assert long.startswith("For you.\nline 7\n")
    assert len(long) <= 1_000
    last = int(long.partition("\n[it goes on")[0].rpartition("line ")[2])
    assert f"[it goes on: read {folder}/SKILL.md with read_file from line {last + 1}]" in long
    for number in range(50):
        put(folder, f"{number}.md", "x")
    assert one.instructions(most_chars=9_000).endswith(", …]")
    assert len(one.instructions(most_chars=900)) <= 900
    (folder / "SKILL.md").unlink()
    with pytest.raises(ToolError, match="The skill it cannot be read"):
        one.body()


def many(count: int, size: int, name: str = "skill") -> list[Skill]:
    text = "Handles kind {}. " + "word " * size
    return [
        Skill(name=f"{name}-{n}", description=text.format(n).strip(), folder=Path(), place="")
        for n in range(count)
    ]


@every_row(
    "body, head, given, filled",
    [
        ("See $ARGUMENTS.", "", "a b", "See a b."),
        ("See $ARGUMENTS.", "", "", "See ."),
        ("$0 for $ARGUMENTS[1], not $ARGUMENTS[7]$9", "", "a b", "a for b, not "),
        ("$0 then $1", "argument-hint: '[from] [to]'\n", "a b", "a then b"),
        ("awk '{print $1}'", "", "a b", "awk '{print $1}'"),
        ("It costs $10.", "argument-hint: x\n", "a b", "It costs $10."),
    ],
)
def test_words_go_to_their_places(body: str, head: str, given: str, filled: str, tmp_path: Path):
    skill(tmp_path, "it", body, head=head)
    text = found(tmp_path).by_name["it"].instructions(given, most_chars=1_000)
    assert text.startswith(f"{filled}\n\n[The skill it")
    assert text.endswith(f"\n\n{given}") is (filled == body)


def test_what_has_no_effect_is_said(tmp_path: Path):
    head = (
        "model: opus\ncontext: fork\nagent: Explore\nhooks:\n  Stop: []\neffort: high\ncolor: red\n"
    )
    skill(tmp_path, "forks", "It is !`date`.", head=head)
    skill(
        tmp_path,
        "stays",
        head="model: opus\nagent: Explore\nuser-invocable: false\nwhen_to_use: At noon.\n",
    )
    skills = found(tmp_path)
    forks, stays = skills.by_name["forks"], skills.by_name["stays"]
    assert forks.remarks == ("without effect in ybs: hooks, effort, !`commands`",)
    assert forks.fork == Fork(kind="Explore", model="opus")
    assert stays.remarks == ("without effect in ybs: model, agent",)
    assert stays.fork is None
    assert stays.description == "Does it. At noon."
    assert skills.usable == [forks]


def test_what_is_told_of_them_stays_within_its_budget():
    few = many(2, 5)
    assert listing(few) == "\n".join(f"- {each.name}: {each.description}" for each in few)
    mixed = listing([*few, *many(1, 200, "long")], 600)
    assert len(mixed) <= 600
    assert few[0].description in mixed  # the long one is cut, not the short ones
    assert mixed.splitlines()[2].endswith("word…")
    thirty = listing(many(30, 60))
    assert len(thirty) <= 2_800
    assert thirty.count("Handles kind") == 30
    hundred = listing(many(100, 30))
    assert "Handles" not in hundred
    assert hundred.count("skill-") == 100
    assert listing(many(100, 1), 100).endswith("to find others)")


def test_words_find_names_in_one_piece(tmp_path: Path):
    skill(tmp_path, "sheets", description="Reads them.")
    skill(tmp_path, "other", description="Reads sheets, and fills sheets.")
    offered = found(tmp_path).offered
    assert [each.name for each in fitting("readSheets", offered)] == ["sheets", "other"]


def test_words_find_some(tmp_path: Path):
    skill(tmp_path, "pdf-forms", description="Fills forms.")
    skill(tmp_path, "sheets", description="Reads a PDF of numbers.")
    offered = found(tmp_path).offered
    assert [each.name for each in fitting("a pdf form", offered)] == ["pdf-forms", "sheets"]
    assert fitting("music", offered) == []
