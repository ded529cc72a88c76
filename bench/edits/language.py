"""What of a source text is code, comment or string: roughly, by regular expressions."""

import re

_SLASH = r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)"
_QUOTED = r'"(?:\\.|[^"\\\n])*"'
_SINGLE = r"'(?:\\.|[^'\\\n])*'"
_LETTER = r"'(?:\\.|[^'\\\n])'"  # a character, where the quote has other uses too
_RAW = r"`[^`]*`"
_LINES = r'r"[^"]*"|r#"[\s\S]*?"#|"(?:\\[\s\S]|[^"\\])*"'  # a string that may go over several lines
_TRIPLE = r'"""[\s\S]*?(?:"""|\Z)|' + r"'''[\s\S]*?(?:'''|\Z)"
_HASH = r"#[^\n]*"

_PATTERNS = {
    "letter": re.compile("|".join((_SLASH, _QUOTED, _LETTER))),
    "rust": re.compile("|".join((_SLASH, _LETTER, _LINES))),
    "go": re.compile("|".join((_SLASH, _QUOTED, _LETTER, _RAW))),
    "script": re.compile("|".join((_SLASH, _QUOTED, _SINGLE, _RAW))),
    "python": re.compile("|".join((_TRIPLE, _QUOTED, _SINGLE, _HASH))),
    "hash": re.compile("|".join((_QUOTED, _SINGLE, _HASH))),
}
_FAMILIES = {
    ".c": "letter",
    ".h": "letter",
    ".cc": "letter",
    ".cpp": "letter",
    ".java": "letter",
    ".rs": "rust",
    ".kt": "letter",
    ".go": "go",
    ".js": "script",
    ".mjs": "script",
    ".ts": "script",
    ".py": "python",
    ".rb": "hash",
    ".sh": "hash",
    ".jq": "hash",
    ".yml": "hash",
    ".yaml": "hash",
    ".toml": "hash",
    ".ru": "hash",
    "Makefile": "hash",
    "Rakefile": "hash",
    "Gemfile": "hash",
}

CODE, COMMENT, STRING = "c", "#", "s"


def is_code(suffix: str) -> bool:
    """Return whether files of this suffix can be taken apart."""
    return suffix in _FAMILIES


def comment_of(suffix: str, words: str) -> str:
    """Return the words as a comment of the language."""
    family = _FAMILIES.get(suffix)
    return f"# {words}" if family in ("python", "hash") else f"// {words}"


def masks(lines: list[str], suffix: str) -> list[str]:
    """Return for each line a mask of the same length that says what each character is."""
    text = "\n".join(lines)
    mask = [CODE] * len(text)
    for found in _PATTERNS[_FAMILIES[suffix]].finditer(text):
        sign = COMMENT if found[0].startswith(("//", "/*", "#")) else STRING
        mask[found.start() : found.end()] = sign * (found.end() - found.start())
    whole = "".join(mask)
    result: list[str] = []
    start = 0
    for line in lines:
        result.append(whole[start : start + len(line)])
        start += len(line) + 1
    return result


def code_words(lines: list[str], masks: list[str]) -> list[str]:
    """Return the names, numbers and operators of the lines, without comments and strings."""
    words: list[str] = []
    for line, mask in zip(lines, masks, strict=True):
        code = "".join(c if sign == CODE else " " for c, sign in zip(line, mask, strict=True))
        words += re.findall(r"\w+|[^\w\s]", code)
    return words
