"""Terminal and unicode: where the cases T01 to T08 and U01 to U05 are tested."""

#: The id, and the file with its tests (`test_t01_...`).
CASES: dict[str, str] = {
    **{
        f"T{number:02}": "../frontends/terminal/test_cases_terminal.py"
        for number in (1, 2, 3, 4, 6, 7, 8)
    },
    "T05": "../frontends/terminal/test_consent.py",
    **{f"U{number:02}": "test_cases_unicode.py" for number in (1, 2, 3, 5)},
    "U04": "test_dangers.py",
}
