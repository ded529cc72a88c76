"""Mentions: what counts as one in the person's words, and what goes along for it."""

import os
import re
import shlex
import struct
import zlib
from collections.abc import Collection
from pathlib import Path
from random import Random
from string import ascii_letters, digits

import pytest

from hosts import this_host
from timing import takes_at_most
from ybs.config.schema import SafetySettings
from ybs.core.errors import Refused, ToolError
from ybs.core.events import Event, Noticed
from ybs.core.messages import Image, Text, UserPart
from ybs.core.ports import Answer, Question
from ybs.security.firewall.masking import Firewall
from ybs.security.paths.names import shown_name
from ybs.security.paths.roots import Roots
from ybs.security.policy.policy import Policy
from ybs.session.attachments import MOST_FILES, UNSURE, Attacher, NotSent
from ybs.session.composer import Composer
from ybs.session.mentions import (
    NOTHING,
    MentionReading,
    mention_of,
    mentions_in,
    named_in,
    named_in_said,
    open_mention,
    paths_in,
)
from ybs.tools.builtin.read_file import ReadFile
from ybs.tools.workspace import Workspace

TOKEN = "ghp_" + "".join(Random(7).choices(ascii_letters + digits, k=36))


def png(width: int = 3, height: int = 2) -> bytes:
    """Make a whole picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + bytes(width) for _ in range(height)))
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", rows), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


class Desk:
    """An attacher, and what it told the person."""

    def __init__(self, project: Path, **options: object) -> None:
        self.told: list[Noticed] = []
        self.workspace = Workspace(Roots(this_host(), project, blocked=(project / "blocked",)))
        policy = Policy(SafetySettings(deny=("read_file(private/*)",)))
        self.attacher = Attacher(self.workspace, policy, Firewall(), self.tell, self.ask)
        self.asked: list[Question] = []
        self.may_attach, self.may_send = False, True

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        is_about_one = question.preview.title.startswith("attach ")
        return Answer(is_allowed=self.may_attach if is_about_one else self.may_send)

    def tell(self, event: Event) -> None:
        assert isinstance(event, Noticed)
        self.told.append(event)

    async def text(self, words: str, linked: Collection[str] | None = None) -> str:
        parts = await self.parts(words, linked)
        return "".join(part.text for part in parts if isinstance(part, Text))

    async def parts(self, words: str, linked: Collection[str] | None = None) -> list[UserPart]:
        self.told.clear()
        return await self.attacher.parts(named_in_said(words, linked))

    @property
    def warnings(self) -> list[str]:
        return [notice.text for notice in self.told if notice.level == "warning"]


@pytest.fixture
def desk(project: Path) -> Desk:
    (project / "src").mkdir()
    (project / "src" / "cart.py").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    (project / "a b.txt").write_text("spaced\n")
    return Desk(project)


def test_what_counts_as_a_mention():
    cases = {
        "see @a.py": ["a.py"],
        "@a.py and (@b.py)": ["a.py", "b.py)", "b.py"],
        "mail me@home.org or a@b": [],
        '@"a b.txt" there': ["a b.txt"],
        '@"say \\"hi\\".txt"': ['say "hi".txt'],
        r"@a\ b.txt": ["a b.txt"],
        "@": [],
        "@@x": [],
        '@""': [],
        "is it @a.py?!": ["a.py?!", "a.py?", "a.py"],
        "one\n@two": ["two"],
        "@src/": ["src/"],
    }
    wrong = {
        words: found
        for words, wanted in cases.items()
        if (found := [one.path for ways in mentions_in(words) for one in ways]) != wanted
    }
    assert wrong == {}


def test_lines_are_read_behind_a_path():
    cases = {
        "@a.py:10-40": MentionReading("a.py", 10, 40),
        "@a.py:7": MentionReading("a.py", 7, 7),
        "@a.py:40-10": MentionReading("a.py", 40, 40),
        "@a.py:0": MentionReading("a.py", 1, 1),
        '@"a b":2-3': MentionReading("a b", 2, 3),
    }
    wrong = {
        words: ways
        for words, wanted in cases.items()
        if wanted not in (ways := next(mentions_in(words)))
    }
    assert wrong == {}


@pytest.mark.integration
def test_hostile_words_take_no_more_time_than_others():
    with takes_at_most(3):  # 0.06 is usual; ways that multiply take minutes
        for piece in (
            "@",
            ' @"',
            ' @"\\"',
            "@a:1-",
            " '/~",
            "\\ ",
            "/\\",
            "@a).,",
            " '/a'\\''",
            ' "/\\"',
            " /'\"",
        ):
            list(mentions_in(piece * 20_000))
            named_in(f"{piece * 20_000} /")
            open_mention(piece * 2000)


def test_a_written_mention_is_read_as_the_same_path():
    names = [
        "a.py",
        "a b",
        "a,",
        'q"q',
        'q q"',
        "(x)",
        "x:3",
        "a\nb",
        "\x1b[1m",
        "\u202etxt",
        "\\x41",
    ]
    names += [os.fsdecode(b"\xff.txt"), "back\\slash", "deep/er/", "it's"]
    wrong = [
        name
        for name in names
        if next(mentions_in(f"see {mention_of(shown_name(name))} now"))[0].path != shown_name(name)
        or not mention_of(shown_name(name)).isprintable()
    ]
    assert wrong == []


def test_no_written_mention_is_read_as_another_file():
    for name in ("@guide(@~/private.txt", "a@b.py", "x`@/etc/passwd", "(@~/a b"):
        found = list(mentions_in(f"see {mention_of(shown_name(name))} now"))
        assert [each[0].path for each in found] == [shown_name(name)], name
    assert mention_of('a" @~/x') == '@"a\\" @~/x"'
    for name in ("a b\\", "guide\\"):  # the backslash would be of the quote, or of what follows
        assert mention_of(name) == ""


def test_paths_of_pictures_are_found_as_terminals_write_them():
    cases = {
        "/tmp/a.png": ["/tmp/a.png"],
        r"see /tmp/my\ shot\ \(1\).PNG now": ["/tmp/my shot (1).PNG"],
        "'/tmp/my shot.jpeg'": ["/tmp/my shot.jpeg"],
        '"~/x y.gif"': ["~/x y.gif"],
        "file:///tmp/my%20shot.webp": ["/tmp/my shot.webp"],
        "shot.png": [],
        "x/tmp/a.png": [],
        "/tmp/a.png.txt https://x.org/a.png": [],
    }
    wrong = {
        words: found
        for words, wanted in cases.items()
        if (found := list(named_in(words).pictures)) != wanted
    }
    assert wrong == {}


def test_what_stands_in_a_mention_is_no_picture_and_the_other_way_round():
    cases = {
        '@"design ~/Pictures/passport.png notes.md" and': (
            ["design ~/Pictures/passport.png notes.md"],
            [],
        ),
        '@"a /x.png b': (["a /x.png b"], []),
        "see @a\\ /x.png": (["a /x.png"], []),
        "'/tmp/a @b.png'": ([], ["/tmp/a @b.png"]),
        "/tmp/a.png @b '/tmp/c d.gif' @e": (["b", "e"], ["/tmp/a.png", "/tmp/c d.gif"]),
        "see @b.txt in '/tmp/a @b.txt' and @c": (["b.txt", "c"], []),
        '@"a" /tmp/b.png " /c.png': (["a"], ["/tmp/b.png", "/c.png"]),
    }
    for words, wanted in cases.items():
        named = named_in(words)
        read = ([each.readings[0].path for each in named.mentions], list(named.pictures))
        assert read == wanted, words
    name = "design ~/Pictures/passport.png notes.md"
    assert mention_of(name) == f'@"{name}"'


def test_no_part_of_a_path_that_was_dropped_is_a_mention_or_a_picture():
    """The names in it may be a repository's."""
    names = ("a @~/x.txt", "a ~/x.png b", "a(@~/x.txt", "it's @~/x.txt", 'a "@~/x.txt', "@a @~/x")
    for name in names:
        path = f"/proj/{name}"
        escaped = re.sub(r"([^\w/.~@])", r"\\\1", path)
        single = "'" + path.replace("'", "'\\''") + "'"
        double = '"' + path.replace('"', '\\"') + '"'
        for written in (escaped, single, shlex.quote(path), double, f"file://{escaped}"):
            assert named_in(f"see {written} now") == NOTHING, written
            assert paths_in(named_in(f"{written} @b.txt")) == {"b.txt"}, written
    for words in (r"a\ @~/x.txt", r"a\(@~/x.txt"):  # where the path begins elsewhere
        assert named_in(words) == NOTHING, words


def test_a_sign_of_a_quote_in_words_hides_no_mention():
    words = "use ~/.bashrc's lines, don't touch '/etc', see @b.txt, it's fine"
    assert paths_in(named_in(words)) == {"b.txt,", "b.txt"}


async def test_words_stay_words_where_nothing_of_that_name_is_there(desk: Desk):
    words = (
        "@property @dataclass @types/node me@src/cart.py @nobody, /tmp/none.png @~nobody @$HOME @\0"
    )
    assert (await desk.parts(words), desk.told) == ([], [])


async def test_a_file_goes_along_as_the_tool_would_read_it(desk: Desk, project: Path):
    text = await desk.text("what is wrong in @src/cart.py?")
    assert text.startswith("\n\n[File src/cart.py]\n1\tline 1\n2\tline 2\n")
    assert desk.workspace.reads.knows(project / "src" / "cart.py")
    assert [notice.level for notice in desk.told] == ["info"]
    assert desk.told[0].text == "Attached: src/cart.py (100 lines)"


async def test_each_thing_goes_along_once_and_in_order(desk: Desk):
    text = await desk.text('@"a b.txt", @src/cart.py:3-4 (@./a\\ b.txt) @src @src/cart.py:99')
    assert text == (
        "\n\n[File a b.txt]\n1\tspaced"
        "\n\n[File src/cart.py, lines 3-4]\n3\tline 3\n4\tline 4\n"
        "[lines 5-100 not shown; go on with offset=5]"
        "\n\n[Folder src]\nsrc/cart.py"
        "\n\n[File src/cart.py, line 99]\n99\tline 99\n[lines 100-100 not shown; go on with offset=100]"
    )


@pytest.mark.integration
async def test_what_cannot_go_along_is_said_and_the_rest_goes(desk: Desk, project: Path):
    outside = project.parent / "outside.txt"
    outside.write_text("not yours")
    (project / "blob").write_bytes(b"\0\1\2" * 99)
    for name in ("blocked", "private"):
        (project / name).mkdir()
        (project / name / "key.txt").write_text("not yours")
    (project / "private" / "shot.png").write_bytes(png())
    (project / "way-out").symlink_to(outside)
    (project / "loop").symlink_to("loop")
    os.mkfifo(project / "pipe")
    (project / "broken.png").write_bytes(png()[:-9])
    (project / "closed").write_text("")
    cases = {
        "@way-out": "it is a link in the project that leads out of it, and you did not want it",
        "@blob": "binary",
        "@blocked/key.txt": "your settings block this place, and you did not want it",
        "@private/key.txt": "safety.deny",
        str(project / "private" / "shot.png"): "safety.deny",
        "@loop": "loop",
        "@pipe": "named pipe",
        "@broken.png": "damaged",
        "@/dev/zero": "not a regular file",
        "@src/cart.py:500": "there is no line 500",
    }
    wrong: dict[str, object] = {}
    for words, reason in cases.items():
        text = await desk.text(f"{words} @src/cart.py:1")
        is_right = "line 1" in text and "not yours" not in text and len(desk.warnings) == 1
        if not is_right or reason not in desk.warnings[0]:
            wrong[words] = (text, desk.warnings)
    assert wrong == {}


async def test_what_the_person_names_goes_along_wherever_it_lies(desk, project, home):
    outside = project.parent / "out side" / "plums.txt"
    outside.parent.mkdir()
    outside.write_text("one\ntwo\n")
    (home / "notes.md").write_text("a note\n")
    text = await desk.text(f'see @"{outside}":2 and @"{outside.parent}" and @~/notes.md')
    assert f"\n\n[File {outside}, line 2]\n" in text
    assert "two" in text
    assert f"\n\n[Folder {outside.parent}]\n" in text
    assert "a note" in text
    assert desk.asked == []
    assert desk.warnings == []
    with pytest.raises(Refused):  # it was for this once, and not for the model
        desk.workspace.roots.resolve(str(outside))


async def test_a_long_text_names_nothing_outside_without_one_question(desk, project, home):
    (home / "notes.md").write_text("a note\n")
    shot = home / "shot.png"
    shot.write_bytes(png())
    long = "one of many lines\n" * 12 + f"see @src/cart.py:7, @~/notes.md {shot}"
    for words, linked in ((long, None), ("see @src/cart.py:7, @~/notes.md", ())):
        desk.asked.clear()
        desk.may_attach = False
        text = await desk.text(words, linked)
        assert "line 7" in text
        assert "a note" not in text
        (question,) = desk.asked
        assert question.warnings == (UNSURE,)
        assert str(home / "notes.md") in question.preview.title
        assert desk.warnings == []
        assert any("name it in a short message" in each.text for each in desk.told)
    desk.may_attach = True
    parts = await desk.parts(long)
    assert any(isinstance(part, Image) for part in parts)
    assert "a note" in "".join(part.text for part in parts if isinstance(part, Text))
    desk.asked.clear()
    assert "a note" in await desk.text("see @~/notes.md")
    assert "a note" in await desk.text(long, {"~/notes.md", str(shot)})
    assert desk.asked == []


async def test_a_question_about_a_long_name_says_that_it_is_cut_and_shows_all_of_it(desk, home):
    file = home / ("n" * 90) / "notes.md"
    file.parent.mkdir()
    file.write_text("a note\n")
    desk.may_attach = False
    await desk.text("one of many lines\n" * 12 + f"see @{file}")
    (question,) = desk.asked
    assert "n…" in question.preview.title
    assert question.preview.body == str(file)


async def test_once_words_of_others_came_back_all_outside_is_asked_about(desk, home):
    for name in ("notes.md", "other.md"):
        (home / name).write_text("a note\n")
    shot = home / "shot.png"
    shot.write_bytes(png())

    async def asked_about(words: str, linked: Collection[str] | None = None) -> int:
        desk.asked.clear()
        sent = await composer.compose(words, words if linked else None, linked=linked)
        assert "a note" not in sent.text or not desk.asked
        return len(desk.asked)

    long = "one of many lines\n" * 12 + f"see @~/notes.md {shot}"
    for words, is_own in ((long, None), ("see @~/notes.md", False), (long, True)):
        composer = Composer(lambda _: desk.attacher, desk.tell)
        await composer.compose(words)
        composer.note_given_back("no path in it", is_own=False)
        composer.note_given_back("see @~/notes.md", is_own=True)
        assert await asked_about("see @~/notes.md") == 0
        composer.note_given_back(words, is_own=is_own)
        for again in ("see @~/notes.md:1.", f"and {shot} of it", "see @~/other.md", long):
            assert await asked_about(again) == 1
        assert await asked_about("see @src/cart.py:7") == 0
        assert await asked_about("see @~/other.md", {"~/other.md"}) == 0


async def test_of_very_many_files_outside_one_question_names_all(desk, home):
    names = [f"n{number:02}.md" for number in range(30)]
    for name in names:
        (home / name).write_text("x\n")
    assert await desk.text("\n".join(f"@~/{name}" for name in names)) == ""
    (question,) = desk.asked
    assert "and 25 more" in question.preview.title
    assert question.preview.body.count("\n") == 29


async def test_a_place_of_credentials_and_a_link_that_leads_out_are_asked_about_first(
    desk: Desk, project: Path, home: Path
):
    (home / ".ssh").mkdir()
    (home / ".ssh" / "config").write_text("Host x\n")
    (project / "way-out").symlink_to(home / "plain.txt")
    (home / "plain.txt").write_text("plain\n")
    (project / "deep").symlink_to(home / ".ssh")
    (project / "down").symlink_to(home)
    named = project.parent / "named"
    named.symlink_to(project)
    for words, doubt in (
        ("@~/.ssh/config", "keys, passwords, histories or ybs's own files are kept in that place"),
        ("@deep/config", "keys, passwords, histories or ybs's own files are kept in that place"),
        ("@way-out", "it is a link in the project that leads out of it"),
        (f"@{project}/way-out", "it is a link in the project that leads out of it"),
        (f"@{named}/way-out", "it is a link in the project that leads out of it"),
        (f"@{project}/down/plain.txt", "it is a link in the project that leads out of it"),
    ):
        desk.asked.clear()
        desk.may_attach, desk.may_send = True, False
        text = await desk.text(words)
        assert "Host x" in text or "plain" in text
        (question,) = desk.asked
        assert question.warnings == (doubt,)
        assert question.preview.title.endswith("to your words, which go to the model's provider")
        desk.may_attach = False
        with pytest.raises(NotSent, match="and you did not want it"):
            await desk.parts(words)


async def test_words_whose_attachment_failed_are_sent_only_after_a_yes(desk: Desk):
    desk.may_send = False
    with pytest.raises(NotSent, match=r"there is no file that matches @gone\.py") as raised:
        await desk.parts("see @gone.py and @src/cart.py:1")
    assert raised.value.remedies == ()
    assert desk.told == []
    (question,) = desk.asked
    assert question.preview.body == "there is no file that matches @gone.py"
    desk.may_send = True
    assert "line 1" in await desk.text("see @gone.py and @src/cart.py:1")
    assert desk.warnings == ["Not attached: there is no file that matches @gone.py"]


async def test_a_file_that_vanishes_before_it_is_read_is_said(desk, project, monkeypatch):
    whole = ReadFile.run

    async def late(self: ReadFile, *given: object) -> object:
        (project / "src" / "cart.py").unlink()
        return await whole(self, *given)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(ReadFile, "run", late)
    assert await desk.text("@src/cart.py") == ""
    assert "does not exist" in desk.warnings[0]


async def test_odd_texts_go_along_whole(desk: Desk, project: Path):
    odd = {
        "crlf.txt": (b"a\r\nb\r\n", "1\ta\n2\tb"),
        "stray.txt": (b"caf\xc3\xa9 \xff\n", "1\tcaf\u00e9 \ufffd"),
        "empty": (b"", "(the file is empty)"),
        "e\x1b[2Jsc": (b"x", "1\tx"),
        "new\nline": (b"y", "1\ty"),
        "\u202etxt.py": (b"z", "1\tz"),
        "~home": (b"t", "1\tt"),
    }
    for name, (data, _) in odd.items():
        (project / name).write_bytes(data)
    wrong: dict[str, str] = {}
    for name, (_, wanted) in odd.items():
        text = await desk.text(mention_of(shown_name(name)))
        if text != f"\n\n[File {shown_name(name)}]\n{wanted}" or desk.warnings:
            wrong[name] = text
    assert wrong == {}


@pytest.mark.integration
async def test_a_huge_file_shows_its_beginning(desk: Desk, project: Path):
    (project / "huge.txt").write_bytes(b"first\n" + b"some more words\n" * 300_000)
    text = await desk.text("@huge.txt:1-1")
    assert "1\tfirst" in text
    assert len(text) < 2000


@pytest.mark.integration
async def test_many_files_are_bounded_in_number_and_size(desk: Desk, project: Path):
    names = [f"n{number}.txt" for number in range(MOST_FILES + 2)]
    for name in names:
        (project / name).write_text("x\n")
    text = await desk.text(" ".join(f"@{name}" for name in names))
    assert text.count("[File") == MOST_FILES
    assert f"Not attached: {names[-2]}, {names[-1]}; at most" in desk.warnings[0]
    for name in names:
        (project / name).write_text("some words\n" * 2000)
    text = await desk.text(" ".join(f"@{name}" for name in names))
    assert len(text) < 5 * desk.workspace.max_output_chars
    assert text.count("[File") < MOST_FILES
    assert len(desk.warnings) == 1


@pytest.mark.integration
async def test_pictures_go_along_from_anywhere_but_blocked_places(desk, project, home):
    (project / "in.png").write_bytes(png())
    away = project.parent / "my shot.png"
    away.write_bytes(png(5, 4))
    (home / ".ssh").mkdir()
    (home / ".ssh" / "key.png").write_bytes(png())
    (home / "link.png").symlink_to(home / ".ssh" / "key.png")
    (home / "text.png").write_text("no picture")
    (home / "large.png").write_bytes(png() + bytes(4_000_000))
    parts = await desk.parts(f"@in.png and '{away}' and {project}/in.png")
    assert [part.text for part in parts if isinstance(part, Text)] == [
        f"\n\n[File in.png]\nin.png is a picture (image/png, 3 x 2 pixels, {len(png())} bytes); it follows.",
        f"\n\n[Picture {away}]",
    ]
    assert [part.data for part in parts if isinstance(part, Image)] == [png(), png(5, 4)]
    for words in ("~/.ssh/key.png", "~/link.png", "@~/link.png", "~/text.png", "~/large.png"):
        assert (await desk.parts(words), len(desk.warnings)) == ([], 1), words
    assert len(await desk.parts(f'@"{away}"')) == 2


async def test_secrets_in_a_file_are_masked_before_anybody_hears_of_them(desk: Desk, project: Path):
    (project / "settings.py").write_text(f'TOKEN = "{TOKEN}"\n')
    (project / "id").write_text(
        "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow" * 20 + "\n-----END RSA PRIVATE KEY-----\n"
    )
    text = await desk.text("@settings.py @id")
    assert TOKEN not in text
    assert "MIIEow" not in text
    assert "[ybs:secret:github-token#1]" in text
    assert "private key" in desk.warnings[0]


async def test_what_went_along_can_be_edited_and_a_later_change_is_noticed(desk, project):
    file = project / "a b.txt"
    await desk.text('@"a b.txt"')
    file.write_text("other\n")
    with pytest.raises(ToolError, match="changed on disk"):
        desk.workspace.reads.check(file, file.stat(), file.read_bytes(), "a b.txt")
    assert desk.workspace.reads.recent() == [file]


async def test_a_path_that_leads_nowhere_is_told_and_what_is_no_path_is_not(desk: Desk):
    wrong: list[str] = []
    for words, told in [
        ("see @src/ca, please", "@src/ca"),
        ("see @cart.py:10-20.", "@cart.py"),
        ('see @"my notes.txt" and @./x', "@my notes.txt, @./x"),
        ("@gone/view.tsx @gone/view.tsx", "@gone/view.tsx"),
        ("@property @app.route('/x') @pytest.mark.slow @functools.cache", ""),
        ("me@example.com @types/node @scope/pkg@1.2 @angular/core/testing @me @gmail.com", ""),
    ]:
        assert await desk.parts(words) == []
        found = [warning for warning in desk.warnings if "there is no file that matches" in warning]
        if found != ([f"Not attached: there is no file that matches {told}"] if told else []):
            wrong.append(f"{words}: {found}")
    assert wrong == []


def test_a_name_behind_which_very_many_signs_stand_is_read_in_few_ways():
    (readings,) = mentions_in("@notes.md" + "." * 100_000)
    assert len(readings) == 41
    assert readings[-1].path == "notes.md"
