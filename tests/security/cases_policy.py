"""The policy: where the cases S01 to S14 are tested."""

#: The id, and the file with its tests (`test_s01_...`).
CASES: dict[str, str] = {f"S{number:02}": "test_cases_policy.py" for number in range(1, 15)}
