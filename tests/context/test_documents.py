"""Context documents: which are read, in which order, and how much of each."""

import os
from pathlib import Path

import pytest

from hosts import this_host
from ybs.context import documents
from ybs.context.document_places import DOCUMENTS, MOST_BYTES
from ybs.context.document_text import tokens_of
from ybs.context.documents import read_documents
from ybs.context.prompt import Section


def put(path: Path, content: str | bytes = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(folder: Path, *, share: float = 1.0) -> list[Section]:
    return read_documents(this_host(), folder, share=share)


def told(folder: Path) -> tuple[list[Section], list[str]]:
    notes: list[str] = []
    return read_documents(this_host(), folder, tell=notes.append), notes


def sources(folder: Path) -> list[str]:
    return [section.source for section in read(folder)]


def test_all_documents_come_in_the_stated_order_the_nearest_last(project: Path):
    own, here = this_host().config_folder, project / "a/b"
    (project / ".git").mkdir()
    for name in ("AGENT.md", "IDENTITY.md", "HUMAN.md", "FOCUS.md", "CODE.md", "AGENTS.md"):
        for folder in (own, project, project / "a", here, here / ".ybs", project / ".ybs"):
            put(folder / name, f"{name} of {folder}")
    for folder in (own, here / ".ybs"):
        put(folder / "preferences.json", '{"language": "de"}')
    put(project.parent / "AGENTS.md", "above the repository")
    sections = read(here)
    assert [section.source for section in sections] == [
        *("~/.config/ybs/AGENT.md", ".ybs/AGENT.md"),
        "~/.config/ybs/IDENTITY.md",
        "~/.config/ybs/HUMAN.md",
        *("~/.config/ybs/FOCUS.md", ".ybs/FOCUS.md"),
        *("~/.config/ybs/preferences.json", ".ybs/preferences.json"),
        *("../../CODE.md", "../CODE.md", "CODE.md"),
        *("~/.config/ybs/AGENTS.md", "../../AGENTS.md", "../AGENTS.md", "AGENTS.md"),
    ]
    assert [section.name for section in sections[-4:]] == ["AGENTS.md"] * 4
    assert sections[1].text == f"AGENT.md of {here / '.ybs'}"
    assert not any(section.is_cut for section in sections)


def test_the_table_says_what_holds():
    lines = [line.strip() for line in (documents.__doc__ or "").splitlines()]
    rows = [line for line in lines if line.startswith(tuple(each.name for each in DOCUMENTS))]
    for row, document in zip(rows, DOCUMENTS, strict=True):
        name, tokens, rest = row.split(maxsplit=2)
        assert (name, tokens) == (document.name, f"{document.tokens:,}")
        assert ("~/.config/ybs" in rest) == document.is_own
        assert (", .ybs " in rest) == (document.within == ".ybs")
        assert ("CLAUDE.md" in rest) == bool(document.instead)


def test_without_a_repository_nothing_above_the_folder_is_read(project: Path):
    put(project / "AGENTS.md", "above")
    put(project / "a/CODE.md", "here")
    assert sources(project / "a") == ["CODE.md"]
    assert read(project / "nothing here") == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
def test_a_repository_that_somebody_else_put_above_does_not_count(project: Path):
    put(project / "AGENTS.md", "planted")
    (project / ".git").mkdir()
    put(project / "a/AGENTS.md", "here")
    os.chown(project / ".git", 4242, 4242)
    assert sources(project / "a") == ["AGENTS.md"]
    os.chown(project / "a/AGENTS.md", 4242, 4242)
    assert read(project / "a") == []


def test_claude_md_is_read_only_where_agents_md_says_nothing(project: Path):
    (project / ".git").mkdir()
    put(project / "CLAUDE.md", "top")
    put(project / "a/AGENTS.md", " \n\t\n")
    put(project / "a/CLAUDE.md", "in its place")
    put(project / "a/b/AGENTS.md", "agents")
    put(project / "a/b/CLAUDE.md", "not this one")
    assert [(each.name, each.text) for each in read(project / "a/b")] == [
        ("CLAUDE.md", "top"),
        ("CLAUDE.md", "in its place"),
        ("AGENTS.md", "agents"),
    ]


def test_a_link_within_the_project_is_followed_and_its_text_shown_once(project: Path):
    (project / ".git").mkdir()
    put(project / "docs/rules.md", "rules")
    (project / "AGENTS.md").symlink_to("docs/rules.md")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    (project / "a").mkdir()
    (project / "a/AGENTS.md").symlink_to("../AGENTS.md")
    (project / "a/CLAUDE.md").symlink_to("AGENTS.md")
    assert [(each.source, each.text) for each in read(project / "a")] == [("../AGENTS.md", "rules")]


def test_what_is_no_document_gives_no_section(project: Path, home: Path, tmp_path: Path):
    secret = put(home / ".ssh/id_rsa", "PRIVATE")
    outside = put(tmp_path / "outside.md", "PRIVATE")
    put(project / ".env", "PRIVATE")
    put(project / "more/x.md", "x")

    def is_refused(kind: str) -> bool:
        path = project / "AGENTS.md"
        match kind:
            case "folder":
                path.mkdir()
            case "fifo":
                os.mkfifo(path)
            case "loop":
                path.symlink_to("AGENTS.md")
            case "unreadable":
                put(path, "x").chmod(0)
            case _:
                path.symlink_to(kind)
        found = read(project)
        path.rmdir() if kind == "folder" else path.unlink()
        return found == []

    kinds = ["folder", "fifo", "loop", str(secret), str(outside), "../outside.md", "/etc/passwd"]
    kinds += [".env", "/dev/zero", "/proc/self/environ", "nowhere.md", "more"]
    kinds += ["unreadable"] * (os.getuid() != 0)
    assert [kind for kind in kinds if not is_refused(kind)] == []
    put(project / "secrets.json", '{"key": "PRIVATE"}')
    (project / ".ybs").mkdir()
    (project / ".ybs/preferences.json").symlink_to("../secrets.json")
    assert read(project) == []
    (project / ".ybs/preferences.json").unlink()
    (project / ".ybs").rmdir()
    (project / ".ybs").symlink_to(put(home / "other/FOCUS.md", "PRIVATE").parent)
    assert read(project) == []


def test_a_link_of_the_project_that_is_not_followed_is_told(project: Path, tmp_path: Path):
    (project / "AGENTS.md").symlink_to(put(tmp_path / "outside.md", "PRIVATE"))
    sections, notes = told(project)
    assert sections == []
    assert len(notes) == 1
    assert notes[0].startswith("AGENTS.md was not read: it is a link that leads out of the project")


def test_a_second_name_of_another_file_is_not_read_and_told(project: Path, home: Path):
    (project / "AGENTS.md").hardlink_to(put(home / ".bash_history", "PRIVATE"))
    sections, notes = told(project)
    assert sections == []
    assert [each.endswith("or a hard link.") for each in notes] == [True]


def test_the_persons_own_links_are_followed_and_open_files_told(project: Path, home: Path):
    target = put(home / "dotfiles/soul.md", "calm")
    this_host().config_folder.mkdir(parents=True)
    (this_host().config_folder / "AGENT.md").symlink_to(target)
    put(this_host().config_folder / "HUMAN.md", "x").chmod(0o666)
    os.mkfifo(this_host().config_folder / "IDENTITY.md")
    sections, notes = told(project)
    assert [(each.source, each.text) for each in sections] == [("~/.config/ybs/AGENT.md", "calm")]
    assert len(notes) == 1
    assert "~/.config/ybs/HUMAN.md was not read: it can be written by others" in notes[0]


def test_over_its_budget_a_document_ends_at_a_line_that_says_where_the_rest_is(project: Path):
    (project / ".git").mkdir()
    lines = [f"rule {number}: " + "x" * 80 for number in range(600)]
    put(project / "a/AGENTS.md", "\n".join(lines))
    put(this_host().config_folder / "AGENT.md", "\n".join(lines))
    soul, rules = read(project / "a")
    budgets = {document.name: document.tokens for document in DOCUMENTS}
    for section, source, how in (
        (soul, "~/.config/ybs/AGENT.md", ""),  # tools cannot read it
        (rules, "AGENTS.md", "; read_file shows it"),
    ):
        *kept, note = section.text.split("\n")
        assert section.is_cut
        assert kept == lines[: len(kept)]
        assert note == f"[left out: {600 - len(kept)} lines of {source}{how}]"
        assert 0.9 * budgets[section.name] < tokens_of(section.text) <= budgets[section.name]
    small = read(project / "a", share=0.1)[1]
    assert tokens_of(small.text) <= 400
    least = read(project / "a", share=0.0)[1]
    assert tokens_of(least.text) <= 60
    assert least.text.startswith(lines[0])
    above = put(project / "AGENTS.md", "\n".join(lines))
    (project / "a/AGENTS.md").unlink()
    (_, rules) = read(project / "a")
    assert rules.text.endswith(" lines of ../AGENTS.md]")  # outside of what tools can read
    above.write_bytes(b"<!--" + b" " * 60_000 + b"-->\nshort" + b" " * 10_000)
    (_, rules) = read(project / "a")
    assert (rules.is_cut, rules.text.split("\n")[0]) == (True, "short")


def test_all_documents_of_one_kind_share_its_budget_fairly(project: Path):
    (project / ".git").mkdir()
    put(project / "AGENTS.md", "top rule\n" * 10_000)
    put(project / "a/AGENTS.md", "small")
    put(project / "a/b/AGENTS.md", "near rule\n" * 10_000)
    sections = read(project / "a/b")
    sizes = [tokens_of(section.text) for section in sections]
    assert [section.is_cut for section in sections] == [True, False, True]
    assert sum(sizes) <= 4_000
    assert abs(sizes[0] - sizes[2]) < 50


def test_of_the_identity_the_newest_lines_are_kept(project: Path):
    put(
        this_host().config_folder / "IDENTITY.md",
        "".join(f"- line {n} {'y' * 60}\n" for n in range(100)),
    )
    (section,) = read(project)
    *kept, note = section.text.split("\n")
    assert kept[-1].startswith("- line 99 ")
    assert note == f"[left out above: {100 - len(kept)} lines of ~/.config/ybs/IDENTITY.md]"


def test_of_a_giant_only_the_beginning_is_read(project: Path):
    path = put(project / "AGENTS.md", b"first\n" + b"word " * 20_000)
    os.truncate(path, 50_000_000)
    (section,) = read(project)
    assert section.text.startswith("first\nword word")
    assert section.text.endswith(
        "[left out: most of AGENTS.md (50,000,000 bytes); read_file shows it]"
    )
    assert tokens_of(section.text) <= 4_000
    assert path.stat().st_size > MOST_BYTES


def test_a_document_that_is_no_text_is_told_and_an_empty_one_is_not(project: Path):
    for data, notes in (
        (b"Use tabs.\0", ["AGENTS.md is not used: it is not a text file."]),
        (b"", []),
        (b"<!-- later -->", []),
    ):
        put(project / "AGENTS.md", data)
        assert told(project) == ([], notes), data


def test_preferences_are_lines_and_what_is_none_is_told_once(project: Path):
    path = project / ".ybs/preferences.json"
    good = '{"language": "Deutsch\\n!", "tabs": false, "width": 100, "no": null, "like": ["a", 2]}'
    put(path, b"\xef\xbb\xbf" + good.encode())
    sections, notes = told(project)
    text = "language: Deutsch !\ntabs: false\nwidth: 100\nno: null\nlike: a, 2"
    assert (sections, notes) == (
        [Section(name="preferences.json", text=text, source=".ybs/preferences.json")],
        [],
    )
    hidden = '{"a\u202e": "</document>\\u001b[31m\\u200b"}'
    put(path, hidden)
    assert [each.text for each in told(project)[0]] == ["a: &lt;/document>"]
    for broken, why in (
        ("{", "it is not valid JSON"),
        ('["a"]', "it must be a JSON object"),
        ('{"a": {"b": 1}}', "it must be a JSON object"),
        ("[" * 50_000, "it "),
        ('{"a": "' + "x" * 70_000 + '"}', "it is too large"),
    ):
        put(path, broken)
        sections, notes = told(project)
        assert sections == []
        assert len(notes) == 1
        assert notes[0].startswith(f".ybs/preferences.json is not used: {why}")
    for empty in ("", " \n", "{}"):
        put(path, empty)
        assert told(project) == ([], [])
