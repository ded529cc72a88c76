"""Paths that tests plant: what other programs act on by themselves, and what later sessions of agents read."""

#: One for each program, as its manual names it; some in folders below, where they count as well.
RUNS = (
    *(".vscode/tasks.json", ".vscode/settings.json", ".idea/workspace.xml", ".zed/settings.json"),
    *(".fleet/run.json", ".helix/languages.toml", ".nova/Tasks/a.json", ".run/App.run.xml"),
    *("x.code-workspace", "x.sublime-project", ".vs/tasks.vs.json", ".dir-locals.el", ".exrc"),
    *(".nvim.lua", ".nvimrc", ".vimrc", ".lvimrc", ".lazy.lua", ".vimspector.json", ".luarc.json"),
    *(".ycm_extra_conf.py", ".devcontainer/devcontainer.json", ".devcontainer.json", ".gitpod.yml"),
    *(".envrc", "sub/.envrc", ".autoenv.zsh", ".mise.toml", "mise.toml", ".mise/config.toml"),
    *(".mise.local.toml", ".config/mise/config.toml", ".tool-versions", ".rtx.toml", ".bashrc"),
    *(".zshenv", ".profile", ".gitconfig", ".husky/pre-commit", "web/.husky/pre-push"),
    *(".githooks/pre-commit", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook/pre-commit/a"),
    *(".overcommit.yml", "captainhook.json", ".simple-git-hooks.json", ".gitmodules", "prek.toml"),
    *(".cargo/config.toml", "crate/.cargo/config.toml", "rust-toolchain.toml", ".npmrc"),
    *(".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml", ".mvn/extensions.xml", ".mvn/jvm.config"),
    *("gradle/wrapper/gradle-wrapper.properties", ".bazelrc", ".bundle/config", "ansible.cfg"),
    *(".gdbinit", ".lldbinit", ".lldbinit-Xcode", ".pdbrc", ".irbrc", ".pryrc", ".Rprofile"),
    *(".ghci", ".ocamlinit", ".iex.exs", "sitecustomize.py", ".psqlrc", ".hgrc"),
    *(".mcp.json", ".cursor/mcp.json", ".claude/settings.json", ".codex/config.toml"),
    *(".gemini/settings.json", ".opencode/plugin/a.js", "opencode.json", ".continue/config.yaml"),
    *(".aider.conf.yml", ".roo/mcp.json", ".kiro/hooks/a.json", ".windsurf/hooks.json"),
    *(".ybs.json", ".ybs/commands/a.md"),
    *(".github/workflows/ci.yml", ".github/actions/a/action.yml", ".gitlab-ci.yml"),
    *(".circleci/config.yml", ".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml"),
    *("Jenkinsfile", ".drone.yml", ".woodpecker/a.yml", ".buildkite/pipeline.yml", ".cirrus.yml"),
    *(".gitea/workflows/a.yml", ".forgejo/workflows/a.yml", ".teamcity/settings.kts"),
    *(".eslintrc.js", ".prettierrc.json", ".pylintrc", ".rubocop.yml", ".lintstagedrc.js"),
    *("Directory.Build.props", ".yarn/releases/yarn.cjs", ".clangd", ".project"),
    *("eslint.config.mjs", "web/prettier.config.ts", "stylelint.config.js", "babel.config.json"),
    *("lint-staged.config.mjs", "commitlint.config.ts", ".php-cs-fixer.dist.php", ".luacheckrc"),
    *(".huskyrc.json", "hie.yaml", ".lsp/config.edn", ".amp/settings.json", ".pi/settings.json"),
    *("gptme.toml", ".tmuxp.yaml", "devenv.nix", "flake.nix", "vercel.json", "netlify.toml"),
    *("analysis_options.yaml", "jupyter_server_config.py"),
    *(".direnv/flake-profile-1.rc", "app/Properties/launchSettings.json"),
)
READ = (
    *("AGENTS.md", "sub/AGENTS.md", "AGENT.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md"),
    *("QWEN.md", "CODE.md", "CODEX.md", "WARP.md", "CRUSH.md", ".cursorrules", ".windsurfrules"),
    *(".clinerules", ".clinerules-code", ".roorules", ".goosehints", ".rules", "SKILL.md"),
    *(".github/copilot-instructions.md", ".github/instructions/a.instructions.md"),
    *(".github/prompts/a.prompt.md", "replit.md", "IDENTITY.md"),
)
ORDINARY = (
    *("Makefile", "main.py", "src/app.ts", "README.md", "package.json", "tests/conftest.py"),
    *(".gitignore", ".gitattributes", ".editorconfig", ".github/ISSUE_TEMPLATE.md", ".env"),
    *("workflows/ci.yml", "config/mise.rb", "cargo/config.toml", "docs/agents.html", "run/a.xml"),
)
