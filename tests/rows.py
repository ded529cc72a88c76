"""Tables of small cases in one test: `pytest.mark.parametrize` without the price of a test for each row."""

import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

Ids = Sequence[str] | Callable[[Any], Any] | None
#: What a wrong row may raise. A row that skips is wrong too: it would hide the others.
WRONG = (Exception, pytest.fail.Exception, pytest.skip.Exception)


def every_row(names: str | Sequence[str], rows: Iterable[Any], ids: Ids = None) -> Any:
    """Run the test body over all rows, and fail with the list of every wrong one.

    Fixtures are those of one test: shared by the rows, but for `monkeypatch`, which each row has for itself.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [_named(keys, row, number, ids) for number, row in enumerate(rows)]
    assert table, "a table without rows tests nothing"

    def decorate(test: Any) -> Any:
        parameters = inspect.signature(test).parameters
        assert set(keys) <= set(parameters), f"{test.__name__} does not take {keys}"

        @wraps(test)
        def run(**fixtures: Any) -> None:
            wrong: list[tuple[str, BaseException]] = []
            for label, values in table:
                with _row(label, fixtures, wrong) as given:
                    test(**given, **values)
            _judge(wrong, len(table))

        @wraps(test)
        async def run_async(**fixtures: Any) -> None:
            wrong: list[tuple[str, BaseException]] = []
            for label, values in table:
                with _row(label, fixtures, wrong) as given:
                    await test(**given, **values)
            _judge(wrong, len(table))

        made: Any = run_async if inspect.iscoroutinefunction(test) else run
        kept = [each for name, each in parameters.items() if name not in keys]
        made.__signature__ = inspect.Signature(kept)  # what pytest makes fixtures of
        return made

    return decorate


@contextmanager
def _row(
    label: str, fixtures: dict[str, Any], wrong: list[tuple[str, BaseException]]
) -> Generator[dict[str, Any]]:
    patch = fixtures.get("monkeypatch")
    try:
        if patch is None:
            yield fixtures
        else:
            with patch.context() as own:
                yield {**fixtures, "monkeypatch": own}
    except WRONG as error:
        if "pytest-timeout" in str(error):  # nothing would stop the next row
            pytest.fail(f"[{label}] {error}")
        wrong.append((label, error))


def _judge(wrong: list[tuple[str, BaseException]], count: int) -> None:
    if not wrong:
        return
    lines = [f"[{label}] {type(error).__name__}: {error}" for label, error in wrong]
    # The first one's traceback is shown above the list.
    raise AssertionError("\n".join([f"{len(wrong)} of {count} rows are wrong:", *lines])) from (
        wrong[0][1]
    )


def _named(keys: list[str], row: Any, number: int, ids: Ids) -> tuple[str, dict[str, Any]]:
    label: Any = None if ids is None or callable(ids) else ids[number]
    if hasattr(row, "marks"):  # pytest.param
        assert not row.marks, "a row with marks needs pytest.mark.parametrize"
        label, row = row.id or label, row.values
    elif len(keys) == 1:
        row = (row,)
    values = dict(zip(keys, row, strict=True))
    if label is None:
        shown = [ids(value) if callable(ids) else None for value in values.values()]
        label = "-".join(
            repr(value) if text is None else str(text)
            for text, value in zip(shown, values.values(), strict=True)
        )
    return (label if len(label) < 120 else f"{number}: {label[:120]}…"), values
