"""Paths: where each case of the list P01 to P24 is tested, or why it cannot come up."""

#: The id, and the file with its tests (`test_p01_...`), or the reason.
CASES: dict[str, str] = {
    **{f"P{number:02}": "test_cases_paths.py" for number in range(1, 10)},
    **{f"P{number:02}": "test_cases_path_races.py" for number in (10, 11)},
    **{f"P{number:02}": "test_cases_paths.py" for number in (12, 13, 14, 15)},
    **{f"P{number:02}": "test_cases_path_names.py" for number in range(16, 23)},
    "P23": "not applicable: no tool moves or renames; a shell command does it in the sandbox",
    "P24": "not applicable: no tool unpacks archives; a shell command does it in the sandbox",
}
