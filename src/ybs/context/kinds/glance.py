"""A glance at TOML: its tables and their lines. A parser takes longer than the whole look at a project may."""


def glance(text: str) -> dict[str, list[str]]:
    """Return the lines of each table by its name, those above the first under ""; {} for what breaks off."""
    tables: dict[str, list[str]] = {"": []}
    lines = tables[""]
    inside = ""
    for line in text.splitlines():
        if not inside and line.startswith("[") and (name := _header(line)):
            lines = tables.setdefault(name, [])
            continue
        was, inside = inside, _string_after(line, inside)
        if not was:
            lines.append(line)
    return {} if inside else tables


def value_of(lines: list[str], key: str) -> str:
    """Return what stands behind the key, without quotes; "" where it is not there."""
    for line in lines:
        if line.startswith(key):
            name, _, value = line.partition("=")
            if name.strip() == key:
                return value.partition("#")[0].strip().strip("\"'")
    return ""


def _header(line: str) -> str:
    """Return the name of a table, as `tool.ruff`; "" where the line is something else."""
    name, bracket, rest = line.lstrip("[").partition("]")
    rest = rest.lstrip("]").strip()
    return name.strip().replace('"', "") if bracket and (not rest or rest[0] == "#") else ""


def _string_after(line: str, inside: str) -> str:
    """Return the quotes of the string of several lines that is open behind the line; "" for none."""
    for quotes in (inside,) if inside else ('"""', "'''"):
        if line.count(quotes) % 2:
            return "" if inside else quotes
    return inside
