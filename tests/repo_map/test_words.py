from rows import every_row
from ybs.repo_map.words import LONGEST, looks_like_key, stem, stems_of

FAMILIES = (
    "parse parses parsed parsing parser parsers",
    "file files",
    "query queries",
    "validate validates validated validating validation validator validations",
    "configure configures configured configuring configuration",
    "connect connects connected connecting connection connections connector",
    "box boxes",
    "match matches matched matching matcher",
    "class classes",
    "stop stopped stopping stops stopper",
    "cache caches cached caching",
)


@every_row("family", FAMILIES)
def test_words_of_one_family_have_one_stem(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


@every_row(
    "one, other",
    [
        *[("class", "clash"), ("status", "state"), ("string", "str"), ("king", "k")],
        *[("process", "proces"), ("bus", "bu"), ("import", "importance"), ("test", "text")],
    ],
)
def test_words_that_only_look_alike_keep_apart(one: str, other: str) -> None:
    assert stem(one) != stem(other)


@every_row(
    "identifier, stems",
    [
        ("read_file", ("read", "fil", "read_file")),
        ("readFile", ("read", "fil", "readfile")),
        ("HTTPServer", ("http", "serv", "httpserver")),
        ("__init__", ("init",)),
        ("sha256", ("sha256", "sha")),
        ("utf8_of", ("utf8", "utf", "utf8_of")),
        ("Größe_der_Datei", ("größe", "der", "datei", "größe_der_datei")),
        ("搜索文件", ("搜索", "索文", "文件")),
        ("字", ("字",)),
        ("the", ()),
        ("x", ()),
        ("_", ()),
        ("", ()),
        ("404", ()),
        ("\ufffd", ()),
        ("a" * 1_000, ()),
        ("ä" * 90, ()),
    ],
)
def test_an_identifier_becomes_the_stems_of_its_parts_and_itself(identifier, stems):
    assert stems_of(identifier) == stems


@every_row(
    "key",
    [
        "d41d8cd98f00b204e9800998ecf8427e",
        "DA39A3EE5E6B4B0D3255BFEF95601890AFD80709",
        "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
        "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "AIza" + "SyD9x8w7v6u5t4s3r2q1p0",
        "q1w2e3r4t5z6u7i8o9p0",
        "xK9vPq2LmZ8rTy4WnB6c",
    ],
)
def test_what_looks_like_a_key_has_no_stems(key: str) -> None:
    assert looks_like_key(key)
    assert stems_of(key) == ()


@every_row(
    "word",
    [
        "getElementsByTagName",
        "XMLHttpRequestEventTarget",
        "Base64EncoderSha256Impl2",
        "test_params_with_multiple_values_are_parsed_correctly",
        "internationalization",
        "deadbeefdeadbeef",
        "MAX_CONNECTIONS_PER_HOST_IPV4",
    ],
)
def test_a_long_word_is_no_key(word: str) -> None:
    assert not looks_like_key(word)
    assert stems_of(word)


def test_a_very_long_compound_has_its_parts_alone() -> None:
    stems = stems_of("values_" * 10)
    assert stems == ("valu",)
    assert all(len(one) <= LONGEST for one in stems)
