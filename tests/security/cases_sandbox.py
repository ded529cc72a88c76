"""The sandbox and environments: where the cases S15 to S21, N01, N02 and E01 to E05 are tested."""

#: The id, and the file with its tests (`test_s15_...`), or the reason.
CASES: dict[str, str] = {
    "S15": "test_sandboxed_work.py",
    "S16": "../tools/test_run_shell.py",
    "S17": "test_sandboxed_work.py",
    "S18": "test_sandboxed_work.py",
    "S19": "test_cases_sandbox.py",
    "S20": "test_launcher.py",
    "S21": "test_escapes.py",
    "N01": "test_cases_sandbox.py",
    "N02": "test_cases_sandbox.py",
    "N03": "not applicable: no tool fetches addresses",
    "N04": "not applicable: no tool fetches addresses",
    "N05": "test_cases_sandbox.py",
    "E01": "test_cases_sandbox.py",
    "E02": "test_cases_sandbox.py",
    "E03": "test_cases_sandbox.py",
    "E04": "test_cases_later.py",
    "E05": "test_cases_sandbox.py",
}
