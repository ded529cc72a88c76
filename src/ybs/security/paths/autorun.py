"""Autorun files: names of files that other programs act on by themselves, and of documents that agents read.

One table, for the file tools (which ask), the sandbox (which holds what is there) and the look after each command (which
names what appeared or changed). Names come from each program's own manual. They count at any depth, since a person may
open or enter any folder of a project. What a person starts on purpose (`make`, the tests, a build) is not listed.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

#: "held": runs on this machine when a folder is opened or entered, or at the next commit; the sandbox holds it read-only
#: at the top of a project. "told": runs elsewhere, or programs rewrite it in ordinary work. "read": later sessions do.
Kind: TypeAlias = Literal["held", "told", "read"]

_HELD = """
    .ybs .ybs.json .mcp.json .cursor .claude .codex .gemini .opencode .continue .continuerc.json .roo .kilocode .kiro
    .windsurf .amazonq .qwen .goose .augment .trae .junie .crush .factory .openhands .agents .copilot .cline .zencoder
    .amp .pi .agent .vibe .mux conductor.json .github/hooks .bsp rust-analyzer.toml .rust-analyzer.toml gptme.toml .gptme.toml .aider.conf.yml .aider.model.settings.yml opencode.json opencode.jsonc crush.json .crush.json .roomodes mcp.json
    .vscode .idea .fleet .zed .helix .nova .theia .lapce .vs .run .devcontainer .devcontainer.json .gitpod.yml
    .gitpod.dockerfile .idx .exrc .vimrc .gvimrc .lvimrc .local.vimrc .vim .nvim .nvimrc .nvim.lua .lazy.lua .neoconf.json
    .vimspector.json .ycm_extra_conf.py .luarc.json .luarc.jsonc .dir-locals.el .dir-locals-2.el .emacs .emacs.d .kakrc
    .lsp/config.edn .clojure-lsp/config.edn hie.yaml .kateproject .atom-build.yml .externaltoolbuilders
    .envrc .envrc.local .direnvrc .rvmrc .autoenv .autoenv.zsh .autoenv_leave.zsh .ondirrc .mise .mise.toml mise.toml mise.local.toml .config/mise .config/mise.toml
    .rtx.toml .tool-versions .asdfrc .sdkmanrc .lando.yml .ddev devenv.nix .devenv.flake.nix .tmuxinator.yml .tmuxp.yaml .tmuxp.json .tmux.conf .screenrc
    .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc
    .cshrc .tcshrc .login config.fish .xprofile .xinitrc .xsession .inputrc .gitconfig
    .husky .githooks .git-hooks .lefthook .lefthook.yml .lefthook.yaml .lefthook.toml .lefthook.json .lefthook-local.yml
    lefthook.yml lefthook.yaml lefthook.toml lefthook.json lefthook-local.yml .config/lefthook.yml
    .pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml prek.toml .overcommit.yml captainhook.json
    grumphp.yml .rusty-hook.toml .cargo-husky .simple-git-hooks.js .simple-git-hooks.cjs .simple-git-hooks.json
    simple-git-hooks.js hk.pkl .gitmodules .hgrc
    .npmrc .corepack.env .yarnrc .yarnrc.yml .pnpmfile.cjs bunfig.toml .cargo/config .cargo/config.toml rust-toolchain rust-toolchain.toml
    .mvn gradle/wrapper .bazelrc .buckconfig .pants.rc .bundle/config .sbtopts .jvmopts ansible.cfg .terraformrc .ammonite
    .gdbinit .lldbinit .pdbrc .pdbrc.py .pythonrc .pythonrc.py sitecustomize usercustomize .irbrc .pryrc .byebugrc
    .rdbgrc .rdbgrc.rb .rprofile .renviron .ghci .ocamlinit .iex.exs .erlang .psqlrc .sqliterc .radare2rc .noderc .perldb
"""
_TOLD = """
    .github/workflows .github/actions .gitlab-ci.yml .gitlab-ci.yaml .gitlab/ci .circleci .travis.yml .travis.yaml
    appveyor.yml .appveyor.yml azure-pipelines.yml azure-pipelines.yaml .azure-pipelines .azuredevops .azure/pipelines
    bitbucket-pipelines.yml jenkinsfile .jenkins .drone.yml .drone.yaml .woodpecker .woodpecker.yml .woodpecker.yaml
    .buildkite .cirrus.yml .cirrus.star .semaphore .teamcity .gitea/workflows .forgejo/workflows .builds .build.yml .tekton
    .harness .codefresh codefresh.yml wercker.yml cloudbuild.yaml cloudbuild.yml buildspec.yml .readthedocs.yml
    .readthedocs.yaml .replit .codesandbox .stackblitzrc .dagger .earthly .concourse .screwdriver.yaml
    netlify.toml vercel.json render.yaml amplify.yml flake.nix shell.nix analysis_options.yaml .luacheckrc
    .php-cs-fixer.php .php-cs-fixer.dist.php jupyter_config.json jupyter_notebook_config.py jupyter_server_config.py jupyter_lab_config.py
    .lintstagedrc .commitlintrc .czrc .pylintrc pylintrc mypy.ini .flake8 .rubocop.yml .golangci.yml .golangci.yaml phpstan.neon phpstan.neon.dist
    .lintr .formatter.exs .trunk/trunk.yaml jupyter_config.py latexmkrc .octaverc .merlin config.nims gradle.properties tools/bazel directory.packages.props
    .solargraph.yml .rspec .babelrc .ycm_extra_conf .clangd .ccls .yarn/releases .yarn/plugins .project .classpath
    .settings nbproject directory.build.props directory.build.targets directory.build.rsp .latexmkrc nuget.config omnisharp.json .config/dotnet-tools.json
    properties/launchsettings.json .swiftpm .markdownlint.cjs .markdownlint.mjs .markdownlint-cli2.cjs .markdownlint-cli2.mjs
    cspell.config.js cspell.config.cjs cspell.config.mjs
"""
_READ = """
    agents.md agent.md agents.override.md agents.local.md claude.md claude.local.md gemini.md qwen.md code.md codex.md
    warp.md crush.md jules.md replit.md copilot.md copilot-instructions.md skill.md .cursorrules .windsurfrules
    .clinerules .continuerules .qoder/rules .roorules .kilocoderules .goosehints .rules .aiderrules .augment-guidelines .github/copilot-instructions.md
    .github/instructions .github/prompts .github/agents .github/chatmodes .github/skills identity.md soul.md
"""
_BEGINNINGS: dict[str, Kind] = {
    ".mise.": "held",
    ".lldbinit-": "held",
    "flake-profile-": "told",  # of nix-direnv, in `.direnv`
    "nix-profile-": "told",
    ".huskyrc": "held",
    ".eslintrc": "told",
    "eslint.config.": "told",
    "prettier.config.": "told",
    "stylelint.config.": "told",
    "babel.config.": "told",
    "tailwind.config.": "told",
    "svelte.config.": "told",
    "lint-staged.config.": "told",
    "commitlint.config.": "told",
    ".prettierrc": "told",
    ".stylelintrc": "told",
    ".lintstagedrc.": "told",
    ".commitlintrc.": "told",
    ".babelrc.": "told",
    ".roorules-": "read",
    ".clinerules-": "read",
}
_ENDS: dict[str, Kind] = {
    ".code-workspace": "held",
    ".sublime-project": "held",
    ".sublime-workspace": "held",
    ".instructions.md": "read",
    ".chatmode.md": "read",
    ".csproj.user": "told",
    ".mdc": "read",
}
_ANY_BEGINNING, _ANY_END = tuple(_BEGINNINGS), tuple(_ENDS)
#: Modules that Python looks for at each start (the last of them Debian's and Ubuntu's), and those of other systems that its library tries to load.
MODULES = frozenset(
    (
        "sitecustomize",
        "usercustomize",
        "apport_python_hook",
        "nt",
        "msvcrt",
        "winreg",
        "_winapi",
        "_overlapped",
        "_scproxy",
    )
)
_OF_MODULES = (".py", ".pyc", ".so")
#: By name, or by two names with a slash between; in lower case, as every name is asked for.
NAMES: dict[str, Kind] = {
    **dict.fromkeys(_READ.split(), "read"),
    **dict.fromkeys(_TOLD.split(), "told"),
    **dict.fromkeys(_HELD.split(), "held"),
    **{f"{name}{end}": "held" for name in MODULES for end in (*_OF_MODULES, "/__init__.py")},
}
#: Those of two names but for modules. A link may stand for the first one.
PAIRS = tuple(name for name in NAMES if "/" in name and not name.endswith("/__init__.py"))


def kind_of(name: str, above: str = "") -> Kind | None:
    """Return what a name in lower case means in a folder of the name `above`, or None for an ordinary one."""
    if kind := NAMES.get(name) or NAMES.get(f"{above}/{name}"):
        return kind
    if name.endswith(_OF_MODULES):  # such as `nt.cpython-311-x86_64-linux-gnu.so`, or a package
        stem = name.partition(".")[0]
        if (above if stem == "__init__" else stem) in MODULES:
            return "held"
    if name.startswith(_ANY_BEGINNING):
        return next(kind for start, kind in _BEGINNINGS.items() if name.startswith(start))
    if name.endswith(_ANY_END):
        return next(kind for end, kind in _ENDS.items() if name.endswith(end))
    return None


def part_of(parts: Sequence[str]) -> str:
    """Return the part of a path, in lower case, that makes it one that runs or is read later, or nothing."""
    above = ""
    for part in parts:
        if kind_of(part, above):
            return part if kind_of(part) else f"{above}/{part}"
        above = part
    return ""


def reason(part: str) -> str:
    """Return why what `part_of` returned is asked about."""
    above, _, name = part.rpartition("/")
    if kind_of(name, above) == "read":
        return f"{part} is read by every later session of an agent"
    return f"{part} is used by programs that run by themselves later on"
