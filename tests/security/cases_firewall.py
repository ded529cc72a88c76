"""The firewall: where the cases X01 to X06 and F06 are tested."""

#: The id, and the file with its tests (`test_x01_...`), or the reason.
CASES: dict[str, str] = {
    "X01": "firewall/test_corpus.py",
    "X02": "firewall/test_masking.py",
    "X03": "firewall/test_model.py",
    "X04": "firewall/test_corpus.py",
    "X05": "firewall/test_toolbox.py",
    "X06": "firewall/test_model.py",
    "F06": "test_cases_sessions.py",
}
