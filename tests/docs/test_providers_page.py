"""docs/providers.md has a row for each provider, with its wire format and its keys."""

import re
from pathlib import Path

from ybs.config.schema import Config
from ybs.providers.registry import find_provider, provider_names

PAGE = (Path(__file__).parents[2] / "docs" / "providers.md").read_text(encoding="utf-8")


def test_every_provider_has_a_row_with_its_wire_format_and_its_keys():
    first_table = PAGE.partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `([\w-]+)` \| (.+?) \|$", first_table, re.MULTILINE))
    assert [name for name in provider_names() if name not in rows] == []
    for name in provider_names():
        provider = find_provider(name, Config())
        if provider.make is None:
            assert rows[name].startswith(f"`{provider.wire}`"), name
        for variable in provider.key_variables:
            assert f"`{variable}`" in rows[name], name
