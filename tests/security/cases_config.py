"""Trust and files: where the cases C01 to C12 and F01 to F06 are tested."""

#: The id, and the file with its tests (`test_c01_...`), or the reason.
CASES: dict[str, str] = {
    **{f"C{number:02}": "test_cases_config.py" for number in range(1, 8)},
    **{f"C{number:02}": "test_cases_later.py" for number in range(8, 13)},
    **{f"F{number:02}": "test_cases_later.py" for number in (1, 2, 5)},
    "F03": "test_cases_incognito.py",
    "F04": "test_cases_sessions.py",
}
