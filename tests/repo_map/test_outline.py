"""The outline: names by regular expressions, on any text in time."""

import pytest

from rows import every_row
from timing import takes_at_most
from ybs.repo_map.facts import outline
from ybs.repo_map.languages import LANGUAGES

#: What made the patterns slow while they were written, and what would make careless ones slow.
HOSTILE = [
    b"\n",
    b"\na(",
    b"\n a b(",
    b"\n\t",
    b"\na ",
    b"\n a(a(",
    b"\ntemplate <",
    b"\ntypedef a ",
    b"\nclass a<",
    b"\n a: (",
    b"\nconst a = (",
    b"\n[a] ",
    b"\nf(\xff",
    b"a::",
]


@pytest.mark.integration
@every_row("language", LANGUAGES)
def test_no_text_makes_a_pattern_slow(language: str) -> None:
    outline(b"warm\n", language)
    for seed in HOSTILE:
        text = (seed * 10_000)[:10_000]
        with takes_at_most(0.1, seed):  # at a second for 1 MB it takes 0.01
            found = outline(text, language)
        assert all(isinstance(name, str) for name in found)


def test_what_is_no_source_has_no_outline() -> None:
    for text in (b"", b"\0" * 99, b"\n\n", b"\xff\xfe", b"def f(): pass;" * 1_000):
        assert outline(text, "python") == [], text[:20]
    assert outline(b"def f(): pass\n", "cobol") == []
    assert outline(b"def f(): pass\n", "") == []


ROWS = [
    (
        "python",
        b"class A(B):\n    async def read(self): pass\n    x = 1\nLIMIT: int = 3\nif a == b:\n    definitely = 1\ntype T[X] = int\n",
        "A read LIMIT T",
    ),
    (
        "javascript",
        b"const fs = require('fs')\nexport const f = async (a, b) => 1\nclass A extends B {\n  #hid() {\n  }\n  run = () => 1\n  static async go(a = {}) {\n"
        b"    if (x) {\n    }\n    call(x, () => {\n    })\n    const inner = function () {}\n    const plain = 1\n  }\n}\nA.prototype.open = function (p) {}\n",
        "f A #hid run go inner open",
    ),
    (
        "typescript",
        b"import {\n  type Gone,\n} from 'x'\nexport interface S<T> {\n  area(scale: number): Size;\n}\ntype P = [A]\nexport const enum C { red }\n"
        b"export abstract class Box {\n  constructor(\n    private readonly a: Z,\n  ) {\n  }\n  get value(): number {\n  }\n}\n",
        "S area P C Box constructor value",
    ),
    (
        "go",
        b"func (s *S[T]) Get(k K) V {\n\treturn f(k)\n}\nfunc New() {}\ntype (\n\tStore struct {\n\t}\n)\ntype R interface {\n\tRead(p []byte) (int, error)\n}\nconst Max = 3\n",
        "Get New Store R Read Max",
    ),
    (
        "rust",
        b"pub(crate) async fn f() {}\npub struct S;\nimpl<T> Draw for S {\n    pub const unsafe fn go() {}\n}\nmacro_rules! m {\n}\nstatic mut N: u8 = 1;\nlet x = 1;\n",
        "f S go m N",
    ),
    (
        "java",
        b"public class A<T> extends B {\n  public static final int MAX = 3;\n  @Override public Map<K, V> run(int a,\n      int b) throws X {\n    return call(a);\n  }\n"
        b"  A(int x) {\n  }\n  void later();\n  default void also() {\n    String s = f(() -> {\n    });\n  }\n}\n@interface Mark {\n}\n",
        "A MAX run A later also Mark",
    ),
    (
        "c",
        b"#define GUARD_H\n#define MAX 10\ntypedef struct point {\n  int x;\n} point_t;\nint declared(int a);\nstatic int *\nfind(const char *key,\n  size_t n)\n{\n  if (a) {\n  }\n}\n"
        b"typedef int (*back)(void *);\nenum e {\n};\n",
        "MAX point point_t find back e",
    ),
    (
        "cpp",
        b'template <class T>\nclass Box : public B<T> {\npublic:\n  Box() = default;\n  int size() const {\n    if (x) {\n    }\n  }\n};\nint Box<T>::find(K k) {\n}\nusing N = int;\nTEST_CASE("x") {\n}\n',
        "Box Box size find N",
    ),
    (
        "csharp",
        b"  [X] public sealed class C : B {\n    public string Name { get; set; }\n    public C(D d) : base(d) {\n    }\n    public async Task<I> Run<T>(A a) => f(a);\n    int IList.Add(object v)\n    {\n"
        b"      var x = f(a);\n      return g(x);\n    }\n    const int Max = 1;\n  }\n",
        "C Name C Run Add Max",
    ),
    (
        "ruby",
        b"module A\n  LIMIT = 3\n  class B::C < D\n    def self.build(x) = new(x)\n    private def ok?\n    end\n    def ==(o)\n    end\n    x == 1\n  end\nend\n",
        "A LIMIT C build ok? ==",
    ),
    (
        "php",
        b"<?php\nabstract class A {\n  const MAX = 1;\n  final public static function &run() {\n    $f = function () {};\n  }\n}\ntrait T {}\nfunction top() {}\n",
        "A MAX run T top",
    ),
    (
        "bash",
        b"LIMIT=3\nexport NAME=x\nfunction build {\n  local a=1\n}\nrun-it() {\n  x=()\n}\n",
        "LIMIT NAME build run-it",
    ),
]


@every_row("language, source, names", ROWS, ids=[row[0] for row in ROWS])
def test_names_of_each_language(language: str, source: bytes, names: str) -> None:
    assert outline(source, language) == names.split()
    assert outline(source.replace(b"\n", b"\r\n"), language) == names.split(), "CRLF"


def test_marks_and_encodings_make_no_difference() -> None:
    source = "def größe(): pass\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        assert outline(source.encode(encoding), "python") == ["größe"]
    assert outline(source.encode("latin-1"), "python") == ["gr\ufffd\ufffde"]
