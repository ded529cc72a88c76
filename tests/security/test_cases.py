"""The tables of cases: each id has a test of its name, or a reason why it cannot come up."""

import re
from importlib import import_module
from pathlib import Path

from rows import every_row

HERE = Path(__file__).parent
FAMILIES = sorted(path.stem for path in HERE.glob("cases_*.py"))


@every_row("family", FAMILIES)
def test_every_case_has_a_test_of_its_name_or_a_reason(family: str):
    cases: dict[str, str] = import_module(f"security.{family}").CASES
    for case, where in cases.items():
        assert re.fullmatch(r"[A-Z]\d\d", case)
        if where.startswith("not applicable: "):
            continue
        tests = re.findall(r"def (test_\w+)", (HERE / where).read_text("utf-8"))
        assert any(f"_{case.lower()}_" in test.lower() for test in tests), case


def test_the_paths_are_among_them():
    assert "cases_paths" in FAMILIES
