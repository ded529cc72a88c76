"""Write the generated pages of docs/ and the schemas of the built-in tools, or with --check fail where one on disk differs.

A page is a function that returns its text; PAGES names the file that it is for.
"""

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attacks_page
import msgspec
import security_page

from ybs.agent.build import AROUND_MODEL, GUARDS
from ybs.config.layers import PROFILE, SHORT_NAMES
from ybs.config.report import json_schema
from ybs.core.schema import schema_of
from ybs.frontends.serve.protocol import protocol_schema
from ybs.tools import builtin
from ybs.tools.builtin.base import BuiltInTool, key_of
from ybs.transcripts.schema import event_schema
from ybs.trust import project_settings as project

ROOT = Path(__file__).resolve().parent.parent

CONFIGURATION_HEAD = """\
# Configuration

Generated from `src/ybs/config/schema.py` by `make docs`; change it there.

A configuration file is JSON, every key is optional, and `ybs` runs without any file. Editors check and complete it
with the schema that `ybs config schema` prints. `ybs config show --sources` shows each value and where it came from;
`ybs config check` lists what is wrong.

```json
{
  "llm": {"provider": "ollama", "model": "qwen3:14b"},
  "safety": {"mode": "ask", "blocked_commands": ["rm -rf /", "sudo", "chmod 777", "git push"]},
  "providers": {
    "work": {"endpoint": "https://llm.example.org/v1", "api_key_env": "WORK_LLM_KEY", "model": "large"}
  },
  "profiles": {"careful": {"safety": {"mode": "plan"}}}
}
```

## Where values come from

Later ones win. Objects are merged, lists are replaced.

| layer | source |
|---|---|
| `default` | this page |
| `system` | `/etc/ybs/config.json` |
| `user` | `~/.config/ybs/config.json` (`$XDG_CONFIG_HOME/ybs`, or the folder that `$YBS_HOME` names) |
| `home` | `~/.ybs.json` |
| `project` | `.ybs.json` in the project's folder, which may say little: see below |
| `file` | `--config FILE` |
| `profile` | `--profile NAME`, or the variable `@PROFILE@`: the object `profiles.NAME` of the files above; a project has none |
| `environment` | variables, see below |
| `option` | `--model`, `--mode` and so on |

A value that cannot be used costs only itself: a warning names file, line and key, and the weaker layer's value stands.
Settings that say "not there yet" belong to features that are still to come: they are accepted, nothing reads them, and one
warning names those that are set.
There are exceptions where a guess would be dangerous. An address or a provider that cannot be read is an error as soon as a
model is made, unless a stronger layer corrects it. An option that does not fit and an unknown profile end ybs with exit code 3.
A file that is not JSON at all, is larger than 256 kB, is not a regular file, or that others can write or own (`chmod go-w FILE`)
is left out whole, with a warning; a group that is yours alone (umask 002) is nobody else. The same holds for all files that speak for you: the hooks of `~/.claude/settings.json`, your commands, kinds of sub-agents and skills, and `AGENT.md`
and its like. Settings in `.ybs/config.json`, `~/.ybs/config.json` and the like are not read: a
warning names the file that is. Only `--config FILE` must be usable: otherwise ybs ends with exit code 3.

## Variables

`YBS_`, the section, two underscores and the key, in capitals: `YBS_LLM__MAX_TOKENS=2048` is `llm.max_tokens`, and
`YBS_TOOLS__BUILTIN__RUN_SHELL__TIMEOUT_SECONDS=120` is `tools.builtin.run_shell.timeout_seconds`. Lists are JSON:
`YBS_SAFETY__BLOCKED_COMMANDS='["sudo"]'`. An empty variable counts as unset. Short names: @SHORT@. Keys cannot
be set this way: they have variables of their own, such as `OPENAI_API_KEY`. Files of variables (`.env`) are never read.

In a file, `"${NAME}"` is replaced by the variable NAME, also within a text; `"$${NAME}"` stands for itself. If the variable is
not set, the key is left out with a warning. A project's file may not use it. Sections without a table below are
read by their feature, and their texts stay as they are.

`~` is the home folder, and `~/.config/ybs` the configuration folder wherever it was put. Other relative paths hang on the
project's folder.

## Keys of providers

Best in a variable: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, or the one that `providers.NAME.api_key_env` names. `llm.api_key` and
`providers.NAME.api_key` are read from your own files only, never from a project, a variable or an option, and are shown masked.

A layer that names another provider takes back the model, endpoint and key of the layers below, for they were the other
provider's. A layer that only changes `llm.endpoint` takes back the key: set both together. The same holds for
`providers.NAME.endpoint`, and for an address in a variable (`OPENAI_BASE_URL`): `llm.api_key` does not go there.

The key in a provider's variable belongs to the provider's own address. It goes to another one only where both were named together: by a variable
beside it (`OPENAI_BASE_URL`), or by `llm.provider` and `llm.endpoint` in one file, in options (`--provider openai --endpoint URL`) or in
variables (`YBS_PROVIDER`, `YBS_ENDPOINT`); and then only over https or on this machine. A key that was saved for exactly that address goes
before it. An address alone (`--endpoint URL`) gets no variable's key; in `ybs config` its `llm.api_key` is then empty and not unset.

## Fallback

`llm.fallback` names models that take over where the chosen one cannot answer, in their order: `["anthropic/claude-sonnet-4-6", "ollama/qwen3:14b"]`; without a model,
the provider's own. A request is passed on where nobody answers, where a server is overloaded, fails or breaks off its answer and two seconds of pauses
have not helped, at once where it asks for a pause, and where the account has no credit left or the model does not exist; never for a refused key, a
certificate, a bad request or a conversation that is too long. One line says which model is asked instead and why; each answer names its
model. A model that failed is not asked for a minute, or as long as its server wants; then it is asked first again.

Nothing leaves this machine that way unless you say so: behind a model on this machine (or in your network) those further away are left out, and
`ybs config check` says so, until `llm.fallback_elsewhere` is true. With `incognito.local_only` only models on this machine take over. The chain also
stands behind a model that `/model` or `/provider` chooses. No project can set it.

## What a project's file may say

A cloned project must not be able to send your words or keys elsewhere, or to run programs. So its `.ybs.json` is read by an
allow-list, given in the last column below:

- **yes**: taken over.
- **lower**, **only true**, **only false**: taken over if it is tighter than your own setting.
- **adds**: its entries are added to your list and never replace it.
- **with trust**: ignored until you trust the project; one warning lists all such keys.
- **no**: ignored, trusted or not.

`ybs trust` shows what a project wants, in plain words; `ybs trust give` shows it and asks, then trusts exactly what it has shown; `ybs trust revoke` takes it back. In a script, where nobody can be asked, `ybs trust give DIGEST`
trusts what `ybs trust` printed with that digest (`digest` with `--json`), and a project that asks for nothing needs none. Trust
covers the settings above, `.mcp.json`, what lies in `agents`, `commands`, `hooks`, `skills` and `tools` of `.ybs/`, programs in
`tools/`, the hooks of `.claude/settings.json`, the commands and the `SKILL.md` files of `.claude/` and `.agents/`, and every file that the commands in these settings reach. It is bound to the folder and to every byte of these files: after a change, and where
another folder lies at the path (a clone made anew, an archive unpacked in its place), the project is not trusted until you have seen the difference. The top of a repository may be moved away and back, or restored from a backup;
a folder below one counts as another where it was made anew, by a `git checkout` too (git removes a folder that the other branch lacks once nothing is left in it). `--trust` trusts, for one run, what lies in the folder that ybs is started in as that run first reads it. A trusted project adds to your settings. It changes none of
your providers, servers and hooks, and an address that it names gets none of your keys.

A model named by a project must be a plain name (letters, digits and `. _ : / @ + -`), not a path or an address.
"""


def configuration() -> str:
    """Return docs/configuration.md."""
    short = ", ".join(f"`{name}` (`{'.'.join(path)}`)" for name, path in SHORT_NAMES.items())
    head = CONFIGURATION_HEAD.replace("@PROFILE@", PROFILE).replace("@SHORT@", short)
    schema = json_schema()
    return head + "\n## Settings\n" + "".join(_sections(schema, schema, ""))


def _sections(schema: dict[str, Any], here: dict[str, Any], before: str) -> list[str]:
    """Return a table of the plain settings of an object, then one for each object in it."""
    rows: list[str] = []
    inner: list[str] = []
    for name, facts in here["properties"].items():
        key = before + name
        entry = _entry_of(facts)
        if "$ref" in facts:
            inner += _section(schema, facts["$ref"], key)
            continue
        if name != "$schema":
            rows.append(_row(key, facts, is_required=name in here.get("required", [])))
        if entry:
            inner += _section(
                schema, entry, f"{key}.NAME" if facts["type"] == "object" else f"{key}[]"
            )
    table = ["\n| key | values | default | meaning | project |\n|---|---|---|---|---|\n", *rows]
    return (table if rows else []) + inner


def _entry_of(facts: dict[str, Any]) -> str:
    """Return the reference to what the entries of an object or a list are, if they have known keys."""
    entries: Any = facts.get("additionalProperties") or facts.get("items") or {}
    reference = str(entries.get("$ref", ""))
    return reference if reference.startswith("#/$defs/") else ""


def _section(schema: dict[str, Any], reference: str, key: str) -> list[str]:
    facts = schema["$defs"][reference.removeprefix("#/$defs/")]
    return [f"\n### {key}\n\n{facts['description']}\n", *_sections(schema, facts, key + ".")]


def _row(key: str, facts: dict[str, Any], *, is_required: bool) -> str:
    default = "required" if is_required else _code(facts["default"])
    project_may = "see below" if _entry_of(facts) and "items" not in facts else _for_project(key)
    cells = (f"`{key}`", _values(facts), default, facts["description"], project_may)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _code(value: Any) -> str:
    return "unset" if value is None else f"`{msgspec.json.encode(value).decode()}`"


def _values(facts: dict[str, Any]) -> str:
    """Say in words what a setting may be."""
    if "anyOf" in facts:
        return " or ".join(_values(each) for each in facts["anyOf"])
    if "enum" in facts:
        return ", ".join("null" if each is None else f"`{each}`" for each in facts["enum"])
    if facts["type"] == "array":
        return "list of texts" if facts["items"].get("type") == "string" else "list of objects"
    names = {"integer": "whole number", "string": "text", "boolean": "true or false"}
    words = names.get(facts["type"], str(facts["type"]))
    lowest = facts.get("minimum", facts.get("exclusiveMinimum"))
    if lowest is None or "maximum" not in facts:
        return words
    above = "above " if "exclusiveMinimum" in facts else ""
    return f"{words}, {above}{lowest:g} to {facts['maximum']:,}"


def _for_project(key: str) -> str:
    rule = key.replace(".NAME.", ".*.")
    if rule in project.ONLY_THIS:
        return f"only {str(project.ONLY_THIS[rule]).lower()}"
    kinds = {"yes": project.INERT, "lower": project.ONLY_LOWER, "adds": project.UNITED}
    found = [word for word, keys in kinds.items() if rule in keys]
    if found:
        return found[0]
    return "with trust" if {rule, rule.split(".")[0]} & project.WITH_TRUST else "no"


def schemas() -> str:
    """Return the JSON Schemas of what the built-in tools take, a line each."""
    found: dict[str, str] = {}
    for info in pkgutil.iter_modules(builtin.__path__, f"{builtin.__name__}."):
        importlib.import_module(info.name)
    for tool in below(BuiltInTool):
        is_whole = hasattr(tool, "arguments") and "parameters" not in vars(tool)
        if tool.__module__.startswith(builtin.__name__) and is_whole:
            found[key_of(tool.arguments)] = bytes(schema_of(tool.arguments)).decode()
    lines = (f'  "{name}": {schema}' for name, schema in sorted(found.items()))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def below(kind: type[BuiltInTool]) -> Iterator[type[BuiltInTool]]:
    """Yield the classes made of this one, and those made of them."""
    for each in kind.__subclasses__():
        yield each
        yield from below(each)


#: What is written, by its path in the repository.
def events() -> str:
    """Return the JSON Schema of a line that tells an event: of a transcript, of `stream-json`, or of the wire."""
    return msgspec.json.format(msgspec.json.encode(event_schema()), indent=2).decode() + "\n"


def serve_protocol() -> str:
    """Return the JSON Schema of the protocol of `ybs serve`, as `ybs serve --schema` prints it."""
    return msgspec.json.format(msgspec.json.encode(protocol_schema()), indent=2).decode() + "\n"


def architecture() -> str:
    """Return the page with the lists of what stands around a model and looks at turns, as `agent/build.py` has them."""
    page = ROOT / "docs/architecture.md"
    before, _, rest = (page.read_text() if page.is_file() else "").partition("<!-- lists -->\n")
    after = rest.partition("<!-- end of lists -->\n")[2]
    tables = [("around the model", AROUND_MODEL), ("guard", GUARDS)]
    lists = "\n".join(
        f"| {head} | what it does |\n|---|---|\n"
        + "".join(f"| {name} | {about} |\n" for name, about in each.items())
        for head, each in tables
    )
    return f"{before}<!-- lists -->\n{lists}<!-- end of lists -->\n{after}"


PAGES: dict[str, Callable[[], str]] = {
    "docs/architecture.md": architecture,
    "docs/configuration.md": configuration,
    "docs/security.md": security_page.page,
    "docs/attacks.md": attacks_page.page,
    "src/ybs/tools/builtin/schemas.json": schemas,
    "docs/events.schema.json": events,
    "docs/serve.schema.json": serve_protocol,
}


def main() -> int:
    """Write or check every page; the exit code is 1 when a check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    is_check = parser.parse_args().check
    stale: list[str] = []
    for name, page in PAGES.items():
        path, text = ROOT / name, page()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not is_check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{name}: {'differs; run: make docs' if is_check else 'written'}")
    return int(is_check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
