"""What looks the same is the same where an edit is looked for, by the names that Unicode gives it."""

from unicodedata import lookup, normalize

from rows import every_row
from ybs.tools.editing.spelling import key_of, plain


def test_full_width_forms_are_their_plain_characters():
    forms = [lookup(name) for name in ("FULLWIDTH EXCLAMATION MARK", "FULLWIDTH TILDE")]
    for code in range(ord(forms[0]), ord(forms[1]) + 1):
        assert plain(chr(code)) == normalize("NFKC", chr(code))
    assert plain(other := lookup("FULLWIDTH LEFT WHITE PARENTHESIS")) == other


@every_row(
    "name",
    [
        *("ZERO WIDTH SPACE", "ZERO WIDTH NON-JOINER", "ZERO WIDTH JOINER", "WORD JOINER"),
        "ZERO WIDTH NO-BREAK SPACE",
    ],
)
def test_what_has_no_width_is_not_there(name: str):
    assert key_of(f"na{lookup(name)}me = 1") == key_of("name = 1")


def test_an_ellipsis_is_three_dots():
    assert plain(f"a{lookup('HORIZONTAL ELLIPSIS')}") == "a..."
