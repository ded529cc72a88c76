"""Node: the language, the manager of the packages, and the scripts that are there."""

import json
from pathlib import Path

from context.kinds.trees import commands_of, told
from rows import every_row

BARE = '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'


@every_row(
    "files, label",
    [
        ({}, "JavaScript (npm)"),
        ({"package-lock.json": ""}, "JavaScript (npm)"),
        ({"yarn.lock": ""}, "JavaScript (yarn)"),
        ({"bun.lock": "", "tsconfig.json": ""}, "TypeScript (bun)"),
        ({"pnpm-lock.yaml": "", "package-lock.json": ""}, "JavaScript (pnpm)"),
        ({"pnpm-workspace.yaml": ""}, "JavaScript (pnpm workspace)"),
        ({"lerna.json": "", "tsconfig.json": "", "lib/a.js": ""}, "TypeScript (npm workspace)"),
        ({"tsconfig.json": "", "index.d.ts": "", "vite.config.ts": "", "a.js": ""}, "JavaScript (npm)"),
        ({"src/a.tsx": ""}, "TypeScript (npm)"),
        ({"package.json": '{"packageManager": "pnpm@9.1.0"}', "yarn.lock": ""}, "JavaScript (pnpm)"),
        ({"package.json": '{"packageManager": "evil@9"}', "yarn.lock": ""}, "JavaScript (yarn)"),
        ({"package.json": '{"devDependencies": {"typescript": "5"}}'}, "TypeScript (npm)"),
        ({"package.json": '\ufeff{"workspaces": {"packages": ["a"]}}'}, "JavaScript (npm workspace)"),
        ({"package.json": "", "deno.json": "{}"}, "TypeScript (deno)"),
    ],
)  # fmt: skip
def test_the_language_and_the_manager(tmp_path: Path, files: dict[str, str], label: str):
    assert told(tmp_path, {"package.json": "{}"} | files) == label


@every_row(
    "lock, names, commands",
    [
        ("", "test lint build", "npm install|npm test|npm run lint|npm run build"),
        ("package-lock.json", "setup", "npm ci"),
        ("pnpm-lock.yaml", "test:unit format", "pnpm install|pnpm test:unit|pnpm format"),
        ("yarn.lock", "test type-check check", "yarn install|yarn test|yarn check|yarn type-check"),
        ("bun.lockb", "test unit", "bun install|bun run test"),
        ("", "start dev pretest", "npm install"),
    ],
)
def test_scripts_are_named_as_their_manager_runs_them(
    tmp_path: Path, lock: str, names: str, commands: str
):
    scripts = json.dumps({"scripts": dict.fromkeys(names.split(), "x")})
    files = {"package.json": scripts} | ({lock: ""} if lock else {})
    assert "|".join(commands_of(tmp_path, files).values()) == commands


def test_what_npm_init_writes_is_no_test(tmp_path: Path):
    assert commands_of(tmp_path, {"package.json": BARE}) == {"setup": "npm install"}


@every_row(
    "name, text, commands",
    [
        ("deno.json", '{"tasks": {"test": "x", "lint": {}}}', {"test", "lint"}),
        ("deno.jsonc", '{"tasks": {"test": "x"}} // so', set[str]()),
    ],
)
def test_deno_has_tasks(tmp_path: Path, name: str, text: str, commands: set[str]):
    assert set(commands_of(tmp_path, {name: text})) == commands
