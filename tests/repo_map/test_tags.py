"""Tags: the definitions and uses of each language, and texts that no grammar was made for."""

import sys

import pytest

from rows import every_row
from timing import takes_at_most
from ybs.repo_map import tags
from ybs.repo_map.languages import LANGUAGES
from ybs.repo_map.tags import Tags, tags_of

#: Language, source, definitions as `kind parent.name`, some of the names used.
SNIPPETS = [
    (
        "python",
        b"import os\nfrom a.b import Base as B\n\nLIMIT: int = 3\n\n@cached\nclass Store(B, mod.Other):\n"
        b"    async def read(self, path: Path = X) -> Data:\n        return load(path).parse()\n\n"
        b"def main():\n    def inner(): pass\n    try: Store()\n    except Broken: pass\n",
        "constant .LIMIT, class .Store, method Store.read, function .main, function main.inner",
        "os Base cached B Other Path Data load parse Store Broken",
    ),
    (
        "javascript",
        b"import Thing, { part } from 'x'\nconst fs = require('fs')\nexport const f = async (a, b) => go(a)\n"
        b"let top = 1\nclass A extends B {\n  #hidden() { return new C() }\n  run = () => this.stop()\n  static async go() {}\n}\n"
        b"exports.open = function (path) {}\nfunction* each() {}\nconst o = { key: (x) => x, plain() {} }\n",
        "function .f, constant .top, class .A, method A.#hidden, method A.run, method A.go, function .open, "
        "function .each, constant .o, function .key, function .plain",
        "Thing part go B C stop",
    ),
    (
        "typescript",
        b"export interface Shape<T> extends Base { area(scale: number): Size; name: string }\ntype Pair = [A, B]\n"
        b"export enum Colour { red }\nnamespace inner { export function f(x: X): void {} }\n"
        b"export abstract class Box implements Shape<Y> {\n  constructor(private readonly a: Z) { super() }\n  abstract open(): void\n}\n",
        "interface .Shape, method Shape.area, type .Pair, enum .Colour, namespace .inner, function inner.f, class .Box, "
        "method Box.constructor, method Box.open",
        "Base Size A B X Shape Y Z",
    ),
    (
        "tsx",
        b"export const Page: FC<Props> = ({ title }) => <Layout><Card title={title} /></Layout>\n",
        "function .Page",
        "FC Props Layout Card",
    ),
    (
        "go",
        b"package a\nconst Max = 3\nvar ErrGone = errors.New(`x`)\ntype (\n\tStore struct { db *sql.DB }\n\tReader interface {\n"
        b"\t\tRead(p []byte) (int, error)\n\t}\n)\ntype Level int\nfunc (s *Store[T]) Get(key Key) (Value, error) { return s.find(key) }\n"
        b"func New() *Store { return &Store{} }\n",
        "constant .Max, constant .ErrGone, struct .Store, interface .Reader, method Reader.Read, type .Level, "
        "method Store.Get, function .New",
        "New DB Key Value find Store",
    ),
    (
        "rust",
        b"use a::{B, c::D};\npub const N: usize = 1;\n#[derive(Clone)]\npub struct S<T> { a: T }\npub enum E { A }\n"
        b"pub trait Draw { fn draw(&self, x: Canvas); }\nimpl<T> Draw for S<T> {\n    pub(crate) fn draw(&self, x: Canvas) { helper::<u8>(x); x.fill(); }\n}\n"
        b"macro_rules! twice { () => {} }\nmod inner { type Id = u64; fn f() { assert_eq!(check(1), 2) } }\n",
        "constant .N, struct .S, enum .E, trait .Draw, method Draw.draw, impl .S, method S.draw, macro .twice, "
        "module .inner, type inner.Id, function inner.f",
        "B D Clone Canvas helper fill assert_eq check",
    ),
    (
        "java",
        b"package a;\nimport b.c.Thing;\n/** x */\npublic class A<T> extends Base implements Runs {\n"
        b"  static final int MAX = 3;\n  int plain;\n  A(int x) { super(x); }\n  @Override\n  public List<Item> run(Map<String, Other> m) throws Bad { return Tool.make(m); }\n"
        b"  interface Inner { void go(); }\n  enum E { X }\n  record R(int a) {}\n}\n@interface Mark {}\n",
        "class .A, constant A.MAX, method A.A, method A.run, interface A.Inner, method Inner.go, enum A.E, class A.R, "
        "interface .Mark",
        "Thing Base Runs Override List Item Map Other Bad Tool make",
    ),
    (
        "c",
        b"#define GUARD_H\n#define MAX 10\n#define MIN(a, b) ((a) < (b) ? (a) : (b))\ntypedef struct point { int x; } point;\n"
        b"typedef int (*callback)(void *);\nenum colour { RED };\nint declared(point *p);\nstatic int *\nfind(const char *key, size_t n)\n"
        b"{\n  return look->up(key, MAX);\n}\nstatic int table[] = {1};\n",
        "constant .MAX, macro .MIN, type .point, type .callback, enum .colour, declaration .declared, function .find, "
        "constant .table",
        "up MAX",
    ),
    (
        "cpp",
        b"namespace a::b {\ntemplate <class T> class Box : public Base<T> {\npublic:\n  Box() = default;\n  ~Box();\n"
        b"  int size() const { return Other::count(); }\n  void later(Arg a);\n};\nusing Name = std::string;\nenum class Kind { x };\n"
        b"int Box<T>::find(Key k) { return make<Thing>(k); }\n}\n",
        "namespace .a::b, class a::b.Box, method Box.Box, declaration Box.~Box, method Box.size, declaration Box.later, "
        "type a::b.Name, enum a::b.Kind, method Box.find",
        "Base Other count Arg Key make Thing",
    ),
    (
        "csharp",
        b"using A.B;\nnamespace N.M {\n  [Serializable]\n  public class C : Base, IRun {\n    const int Max = 1;\n    static readonly Tool tool = null;\n"
        b"    public string Name { get; set; }\n    public C(Dep d) : base(d) { }\n    [Fact] public async Task<Item> Run<T>(Arg a) => await tool.Go<T>(new Thing());\n"
        b"  }\n  public record R(int X);\n  interface IRun { void Stop(); }\n  delegate void Done(int x);\n}\n",
        "namespace .M, class M.C, constant C.Max, constant C.tool, property C.Name, method C.C, method C.Run, class M.R, "
        "interface M.IRun, method IRun.Stop, type M.Done",
        "Serializable Base IRun Tool Dep Fact Item Arg Go Thing",
    ),
    (
        "ruby",
        b"require 'x'\nmodule A\n  LIMIT = 3\n  class B::C < Base\n    before_action :check\n    def self.build(x) = new(x)\n    def ok?\n      Tool.run(1)\n    end\n"
        b"    def name=(v)\n    end\n  end\nend\ndef top; end\n",
        "module .A, constant A.LIMIT, class B.C, method C.build, method C.ok?, method C.name=, function .top",
        "Base check new Tool run",
    ),
    (
        "php",
        b"<?php\nnamespace App\\Http;\nuse Lib\\Thing;\nconst TOP = 1;\nabstract class A extends Base implements I, J {\n  use Mixes;\n  const MAX = 1;\n"
        b"  public function run(?Item $a, string $b = 'x'): Out { return Tool::make($this->go(new Other), B::X); }\n}\n"
        b"trait T {}\ninterface I { function f(); }\nenum E { case X; }\nfunction top() { helper(); }\n",
        "namespace .App\\Http, constant .TOP, class .A, constant A.MAX, method A.run, trait .T, interface .I, method I.f, "
        "enum .E, function .top",
        "Thing Base J Mixes Item Out Tool make go Other B helper",
    ),
    (
        "bash",
        b'#!/bin/bash\nLIMIT=3\nexport NAME=x\nfunction build { compile "$1"; }\nrun-it() {\n  local inner=1\n  build && git status\n}\n',
        "constant .LIMIT, constant .NAME, function .build, function .run-it",
        "compile build git",
    ),
]


def shown(found: Tags) -> str:
    return ", ".join(f"{tag.kind} {tag.parent}.{tag.name}" for tag in found.definitions)


HOSTILE = [
    b"",
    b"\0" * 2_900,
    b"\xff\xfe" + b"\xd8" * 99,
    b"\n" * 99,
    bytes(range(256)) * 4,
    b"f((\n" * 99 + b")" * 198,
    b"class A { def f(self) = fn g() { " * 30,
    b'"\n' * 99,
    b"\xe9 = \xe9()\n" * 9,
]


@pytest.mark.integration
@every_row("language", [*LANGUAGES, "", "cobol"])
def test_no_text_raises_or_takes_long(language: str) -> None:
    for text in HOSTILE:
        with takes_at_most(2, text[:20]):
            found = tags_of(text, language)
            assert isinstance(found, Tags), text[:20]


def test_a_text_over_the_cap_a_packed_one_and_an_unknown_language_give_nothing() -> None:
    assert tags_of(b"def f(): pass\n" * 100_000, "python") == Tags()
    assert tags_of(b"function f(){g()};" * 1_000, "javascript") == Tags()
    assert tags_of(b"def f(): pass\n", "cobol") == Tags()


@pytest.mark.integration
@every_row("language", ["csharp", "java"])
def test_a_text_of_open_types_is_not_parsed_it_would_take_gigabytes(language, monkeypatch):
    asked: list[bytes] = []

    def parse(source: bytes, _grammar: object) -> None:
        asked.append(source)

    monkeypatch.setattr(tags, "_parse", parse)
    doubtful = b"class A { }\n" + (b"a<" * 30 + b"\n") * 101
    for fine in (doubtful[:3_000], doubtful.replace(b"\n", b";\n")):
        tags_of(fine, language)
        assert asked.pop() == fine
    assert tags_of(doubtful, language) == Tags()
    assert not asked


def test_a_parse_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(0, 100_000, 10))
    monkeypatch.setattr(tags, "monotonic", lambda: next(ticks))
    assert tags_of(b"def f(): pass\n" * 2_000, "python") == Tags()


def test_a_grammar_that_is_not_installed_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_go", None)
    monkeypatch.setattr(tags, "grammar_of", tags.grammar_of.__wrapped__)
    assert tags_of(b"package a\nfunc F() {}\n", "go") == Tags()


@pytest.mark.integration
@every_row("language, source, definitions, uses", SNIPPETS, ids=[row[0] for row in SNIPPETS])
def test_definitions_and_uses_of_each_language(language, source, definitions, uses):
    found = tags_of(source, language)
    assert shown(found) == definitions
    assert set(uses.split()) <= set(found.references), sorted(found.references)


SIGNATURES = [
    ("python", b"def f(a):  # why\n    # what\n    return a\n", "def f(a)"),
    ("ruby", b"class A < B # :nodoc:\n  def x; end\nend\nclass C # why\nend", "class C"),
    ("c", b"#define F(a) \\\n  do { } while (0)\n", "#define F(a)"),
    ("cpp", b"class EXPORTED A {\n  int x;\n};\n", "class EXPORTED A"),
    (
        "python",
        b'def f(\n    a: int,\n    b="' + b"x" * 60 + b'",\n) -> str:\n    return g\n',
        'def f(a: int, b="...") -> str',
    ),
    ("python", b"class A(B):\n    pass\n", "class A(B)"),
    ("python", b"LIMIT = {\n  1: 2\n}\n", "LIMIT ="),
    (
        "javascript",
        b"export const f = async (a, b) => {\n  return 1\n}\n",
        "export const f = async (a, b) =>",
    ),
    ("java", b'@Mark(a = "(")\npublic class A extends B {\n}\n', "public class A extends B"),
    ("go", b"type A struct {\n\tb int\n}\n", "type A struct"),
    ("rust", b"pub unsafe fn f<T: Copy>(x: T) -> T {\n}\n", "pub unsafe fn f<T: Copy>(x: T) -> T"),
    (
        "rust",
        b"fn f<'a>(&'a self, path: &Path, is_dir: bool) -> Match<IgnoreMatch<'a>> { x }\n",
        "fn f<'a>(&'a self, path: &Path, is_dir: bool) -> Match<IgnoreMatch<'a>>",
    ),
    (
        "rust",
        b"fn f<'a, 'b>(first: &'a str, second: Box<dyn Read + 'b>, n: usize) -> &'a str { x }\n",
        "fn f<'a, 'b>(first: &'a str, second: Box<dyn Read + 'b>, n: usize) -> &'a str",
    ),
    ("javascript", b"const a = '" + b"x" * 60 + b"'\n", 'const a = "..."'),
    ("c", b"static int\nmain(void)\n{\n}\n", "static int main(void)"),
    ("ruby", b"def ok?\n  1\nend\n", "def ok?"),
    ("csharp", b"[Fact] public int A { get; set; }\n", "public int A"),
    ("python", b"def f(" + b"a, " * 200 + b"): pass\n", "def f(" + "a, " * 63 + "a,..."),
    ("python", "def f(a='\u202e\x1b[31m'): pass\n".encode(), "def f(a='<U+202E>')"),
]


@pytest.mark.integration
@every_row("language, source, signature", SIGNATURES)
def test_a_signature_is_one_line_without_the_body(language, source, signature):
    if language == "csharp":
        source = b"class C {\n  " + source + b"}\n"
    found = tags_of(source, language).definitions[-1]
    assert found.signature == signature
    assert len(found.signature) <= 200


@pytest.mark.integration
def test_macros_of_c_are_seen_through() -> None:
    source = b"class EXPORTED A {\n  A(int x) {}\n  void f() { if (x) {} }\n};\n"
    assert shown(tags_of(source, "cpp")) == "class .A, method A.A, method A.f"
    assert tags_of(b"#define A 1\n\n", "c").definitions[0].end_line == 1


def test_lines_count_from_one_and_uses_are_counted() -> None:
    found = tags_of(b"\n@mark\ndef f():\n    g()\n    g()\n\nclass A(f): pass\n", "python")
    assert [(tag.name, tag.line, tag.end_line) for tag in found.definitions] == [
        ("f", 3, 5),
        ("A", 7, 7),
    ]
    assert found.references == {"mark": 1, "g": 2, "f": 1}


@every_row("change", [b"\r\n", b"\r\n\r\n"])
def test_line_ends_marks_and_encodings_make_no_difference(change: bytes) -> None:
    language, source, definitions, _ = SNIPPETS[0]
    for text in (source.replace(b"\n", change), b"\xef\xbb\xbf" + source):
        assert shown(tags_of(text, language)) == definitions
    assert shown(tags_of(source.decode().encode("utf-16"), language)) == definitions


@pytest.mark.slow
def test_a_hundred_thousand_brackets_end_in_time() -> None:
    with takes_at_most(3):
        assert not tags_of((b"(" * 99 + b"\n") * 1_000, "go").definitions
        assert not tags_of(b"f(\n" * 100_000 + b")\n" * 100_000, "python").definitions


def test_broken_syntax_still_gives_what_stands_around_it() -> None:
    source = b"function a() {}\nfunction b( { x = [; }\nclass C { d() {} }\n"
    assert {"a", "C", "d"} <= {tag.name for tag in tags_of(source, "javascript").definitions}
