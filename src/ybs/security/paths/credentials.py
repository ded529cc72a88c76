"""Places of keys, passwords and cookies: no tool reads or writes there, whatever the settings say."""

import os
from collections.abc import Iterator

#: In the home folder. Names come from each program's own manual.
HOME = (
    # shells and remote machines
    *(".ssh", ".gnupg", ".netrc", "_netrc", ".authinfo", ".authinfo.gpg", ".pki", ".putty"),
    *(".Xauthority", ".ICEauthority", ".vnc/passwd", ".config/rclone", ".config/filezilla"),
    # version control
    *(".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub"),
    *(".config/glab-cli", ".config/github-copilot", ".config/tea"),
    # clouds and clusters
    *(".aws", ".azure", ".kube", ".docker", ".oci", ".fly", ".bluemix", ".boto", ".s3cfg"),
    *(".config/gcloud", ".config/doctl", ".config/hcloud", ".config/scw", ".config/containers"),
    *(".config/configstore", ".config/helm", ".config/op", ".config/sops", ".config/age"),
    *(".passwd-s3fs", ".vault-token", ".terraformrc", ".terraform.d/credentials.tfrc.json"),
    *(".config/wrangler", ".wrangler", ".netlify", ".local/share/com.vercel.cli", ".databrickscfg"),
    *(
        ".config/netlify",
        ".config/heroku",
        ".config/flyctl",
        ".config/ngrok",
        ".ngrok2",
        ".pulumi",
        ".expo",
    ),
    # packages
    *(".pypirc", ".config/pip", ".pip", ".config/pypoetry", ".local/share/uv/credentials"),
    *(".npmrc", ".yarnrc.yml", ".config/pnpm/rc", ".cargo/credentials", ".cargo/credentials.toml"),
    *(".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties"),
    *(".gem/credentials", ".bundle/config", ".composer/auth.json", ".config/composer/auth.json"),
    *(".nuget/NuGet/NuGet.Config", ".hex/hex.config", ".condarc", ".conda/.condarc"),
    *(".bunfig.toml", ".local/share/pypoetry/auth.toml", ".ivy2/.credentials", ".sbt/.credentials"),
    *(".lein/credentials.clj", ".lein/credentials.clj.gpg", ".julia/servers", ".continuum"),
    # databases and models
    *(".pgpass", ".my.cnf", ".mylogin.cnf", ".mongorc.js", ".snowsql", ".kaggle", ".huggingface"),
    *(".snowflake", ".dbt", ".jupyter/jupyter_server_config.json", ".local/share/jupyter/runtime"),
    *(".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".config/openai"),
    *(".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini"),
    *(".local/share/opencode/auth.json", ".config/goose", ".config/io.datasette.llm"),
    # key rings and wallets
    *(".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".kde4/share/apps"),
    *(".config/keepassxc", ".config/Bitwarden", ".config/1Password", ".bitcoin", ".ethereum"),
    *(".electrum", "Library/Keychains"),
    # browsers and mail: cookies are keys
    *(".mozilla", ".librewolf", ".thunderbird", ".config/google-chrome", ".config/chromium"),
    *(".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera"),
    *(
        ".zen",
        ".floorp",
        ".waterfox",
        ".config/google-chrome-beta",
        ".config/google-chrome-unstable",
    ),
    *(".config/Signal", ".config/Slack", ".config/discord"),
    *(".local/share/epiphany", ".local/share/evolution", ".var/app", "snap/firefox"),
    *("snap/chromium", "Library/Cookies", "Library/Safari", "Library/Mail", "Library/Messages"),
    *("Library/Application Support/Google/Chrome", "Library/Application Support/Firefox"),
    *("Library/Application Support/Microsoft Edge", "Library/Application Support/BraveSoftware"),
    # what was typed, passwords by mistake among it
    *(".bash_history", ".zsh_history", ".zhistory", ".histfile", ".sh_history", ".history"),
    *(".local/share/fish/fish_history", ".python_history", ".node_repl_history", ".irb_history"),
    *(".psql_history", ".mysql_history", ".sqlite_history", ".rediscli_history", ".dbshell"),
    *(".lesshst", ".viminfo", ".local/state/nvim/shada", ".local/share/atuin"),
)
#: Of the system.
SYSTEM = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers"),
    *("/etc/krb5.keytab", "/etc/sudoers.d", "/etc/ssl/private", "/etc/docker", "/etc/kubernetes"),
    *("/etc/NetworkManager/system-connections", "/etc/wireguard", "/etc/openvpn", "/etc/ybs"),
)


#: What holds keys in whatever folder it lies: the hidden names of the home folder, and programs' own files of settings.
NAMES = frozenset(
    {name for name in HOME if name.startswith(".") and "/" not in name}
    | {path.rpartition("/")[2] for path in HOME if path.rpartition("/")[2].startswith(".")}
    | {"credentials", "credentials.toml", "credentials.json", "credentials.tfrc.json", "auth.json"}
    | {"settings-security.xml", "gradle.properties", "NuGet.Config", "nuget.config", "hex.config"}
    | {"npmrc", "condarc", "pip.conf", "netrc", "x509stores", "id_rsa", "id_ed25519", "id_ecdsa"}
    | {".env", ".credentials", ".yarnrc", ".gitconfig", ".bundle"}
)
#: A toolchain keeps its settings near its top. Folders of libraries, and those with very many others in them, are caches
#: and packages that somebody has published.
_DEPTH = 6
_LIBRARIES = frozenset(
    {"lib", "lib64", "include", "share", "pkgs", "site-packages", "node_modules", ".git"}
)
_MOST_FOLDERS_IN_ONE = 100
_MOST_FOLDERS = 2_000


def in_toolchain(folder: str, *, is_cache: bool = False) -> Iterator[str]:
    """Yield the places of keys in a toolchain's folder: those of `NAMES`, near the top; of a cache right at the top."""
    level, count = [folder], 0
    for _ in range(1 if is_cache else _DEPTH):
        below: list[str] = []
        for each in level[: _MOST_FOLDERS - count]:
            secrets, folders = _entries(each)
            yield from secrets
            below += folders if len(folders) <= _MOST_FOLDERS_IN_ONE else []
        count += len(level)
        level = below


def _entries(folder: str) -> tuple[list[str], list[str]]:
    secrets: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name in NAMES:
                    secrets.append(entry.path)
                elif entry.name not in _LIBRARIES and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    except OSError:
        return [], []
    return secrets, folders


def resolved(home: str) -> Iterator[str]:
    """Yield the places of a home folder with links resolved; each folder on the way is resolved once, for a start's sake."""
    parents = {"": home}
    for name in HOME:
        folder, _, last = name.rpartition("/")
        if folder not in parents:
            parents[folder] = os.path.realpath(f"{home}/{folder}")
        path = f"{parents[folder]}/{last}"
        yield os.path.realpath(path) if os.path.islink(path) else path  # noqa: PTH114 - see above
