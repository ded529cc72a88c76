"""What programs write when they fail, and the lines of it that say why."""

from pathlib import Path

from rows import every_row
from ybs.tools.mcp.connection import reason_in, remedies_for
from ybs.tools.mcp.settings import server_of

NODE_MODULE = """node:internal/modules/cjs/loader:1423
  throw err;
  ^

Error: Cannot find module '@sap-ux/store/dist/services/backend-system'
Require stack:
- /home/u/.npm/_npx/dc88/node_modules/@sap-ux/fiori-mcp-server/dist/index.js
    at Module.resolveFilename (node:internal/modules/cjs/loader:1420:15)
    at defaultResolveImpl (node:internal/modules/cjs/loader:1058:19) {
  code: 'MODULE_NOT_FOUND',
  requireStack: [
    '/home/u/.npm/_npx/dc88/node_modules/@sap-ux/fiori-mcp-server/dist/index.js'
  ]
}

Node.js v22.14.0
"""
NODE_ESM = """node:internal/modules/esm/resolve:275
    throw new ERR_MODULE_NOT_FOUND(
          ^

Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/a/index.js' imported from /b/index.js
    at finalizeResolution (node:internal/modules/esm/resolve:275:11) {
  code: 'ERR_MODULE_NOT_FOUND',
  url: 'file:///a/index.js'
}

Node.js v24.1.0
"""
NODE_EROFS = """node:fs:1372
  const result = binding.mkdir(
                         ^

Error: EROFS: read-only file system, mkdir '/work/project/.cache'
    at Object.mkdirSync (node:fs:1372:26)
    at file:///srv/server.js:4:4 {
  errno: -30,
  code: 'EROFS',
  syscall: 'mkdir',
  path: '/work/project/.cache'
}

Node.js v22.14.0
"""
NODE_SYNTAX = """/srv/server.js:3
const a = ;
          ^

SyntaxError: Unexpected token ';'
    at wrapSafe (node:internal/modules/cjs/loader:1669:18)

Node.js v22.14.0
"""
NPX_404 = """npm error code E404
npm error 404 Not Found - GET https://registry.npm.example/@mem0%2fmcp - Not found
npm error 404
npm error 404  '@mem0/mcp@*' is not in this registry.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm notice
npm notice New major version of npm available! 10.9.2 -> 11.4.0
npm notice To update run: npm install -g npm@11.4.0
npm notice
npm error A complete log of this run can be found in: /home/u/.npm/_logs/x.log
"""
NPX_OFFLINE = """npm error code EAI_AGAIN
npm error syscall getaddrinfo
npm error errno EAI_AGAIN
npm error request to https://registry.npm.example/mcp-server failed, reason: getaddrinfo EAI_AGAIN registry.npm.example
npm error A complete log of this run can be found in: /home/u/.npm/_logs/x.log
"""
NOTICE_AFTER = """Error: GITHUB_TOKEN environment variable is required
npm notice
npm notice New minor version of npm available! 11.3.0 -> 11.4.0
npm notice
"""
PYTHON = """Traceback (most recent call last):
  File "/srv/server.py", line 3, in <module>
    import yaml
ModuleNotFoundError: No module named 'yaml'
"""
PYTHON_CHAIN = """Traceback (most recent call last):
  File "/srv/server.py", line 2, in open
    raise KeyError("url")
KeyError: 'url'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/server.py", line 9, in <module>
    main()
    ~~~~^^
ValueError: no url in the settings
sys:1: ResourceWarning: unclosed socket
"""
PYTHON_GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "/srv/server.py", line 9, in <module>
  |     anyio.run(main)
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/server.py", line 5, in main
    |     connect()
    | ConnectionRefusedError: [Errno 111] Connection refused
    +------------------------------------
"""
ARGPARSE = """usage: mcp-server-sqlite [-h] --db-path DB_PATH
mcp-server-sqlite: error: the following arguments are required: --db-path
"""
DOCKER_DENIED = """Unable to find image 'mcp/nosuch:latest' locally
docker: Error response from daemon: pull access denied for mcp/nosuch, repository does not exist or may require 'docker login'

Run 'docker run --help' for more information
"""
DOCKER_DAEMON = """docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?

Run 'docker run --help' for more information
"""
UVX = """  \x1b[31m×\x1b[0m No solution found when resolving tool dependencies:
  \x1b[31m╰─▶ \x1b[0mBecause mcp-server-nosuch was not found in the package registry and you
      require mcp-server-nosuch, we can conclude that your requirements are
      unsatisfiable.
"""
UVX_OFFLINE = """error: Request failed after 3 retries
  Caused by: Failed to fetch: `https://index.example/simple/mcp-server-time/`
  Caused by: error sending request for url (https://index.example/simple/mcp-server-time/)
  Caused by: client error (Connect)
  Caused by: dns error: failed to lookup address information: Name or service not known
"""
DENO = """\x1b[0m\x1b[1m\x1b[31merror\x1b[0m: Uncaught (in promise) NotCapable: Requires env access to "TOKEN", run again with the --allow-env flag
const token = Deno.env.get("TOKEN");
                       ^
    at Object.getEnv [as get] (ext:deno_os/30_os.js:124:10)
    at file:///srv/server.ts:1:24
"""
JAVA = """Exception in thread "main" java.lang.IllegalStateException: cannot start
\tat com.example.Main.start(Main.java:20)
\tat com.example.Main.main(Main.java:8)
Caused by: java.net.ConnectException: Connection refused
\tat java.base/sun.nio.ch.Net.pollConnect(Native Method)
\t... 12 more
"""
JAVA_JAR = "Error: Unable to access jarfile server.jar\n"
GO_PANIC = """panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x47b2a4]

goroutine 1 [running]:
main.main()
\t/srv/main.go:8 +0x24
exit status 2
"""
GO_FATAL = (
    "2026/01/02 10:00:00 starting\n2026/01/02 10:00:00 cannot open db: no such file or directory\n"
)
RUST = """
thread 'main' (41231) panicked at src/main.rs:12:38:
called `Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, message: "No such file or directory" }
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""


@every_row(
    "said, reason",
    [
        (NODE_MODULE, "Error: Cannot find module '@sap-ux/store/dist/services/backend-system'"),
        (
            NODE_ESM,
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/a/index.js' imported from /b/index.js",
        ),
        (NODE_EROFS, "Error: EROFS: read-only file system, mkdir '/work/project/.cache'"),
        (NODE_SYNTAX, "SyntaxError: Unexpected token ';'"),
        (
            NPX_404,
            "npm error 404 Not Found - GET https://registry.npm.example/@mem0%2fmcp - Not found; "
            "npm error 404  '@mem0/mcp@*' is not in this registry",
        ),
        (
            NPX_OFFLINE,
            "npm error request to https://registry.npm.example/mcp-server failed, reason: getaddrinfo EAI_AGAIN registry.npm.example",
        ),
        (NOTICE_AFTER, "Error: GITHUB_TOKEN environment variable is required"),
        (PYTHON, "ModuleNotFoundError: No module named 'yaml'"),
        (PYTHON_CHAIN, "ValueError: no url in the settings"),
        (PYTHON_GROUP, "ConnectionRefusedError: [Errno 111] Connection refused"),
        (ARGPARSE, "mcp-server-sqlite: error: the following arguments are required: --db-path"),
        (
            DOCKER_DENIED,
            "docker: Error response from daemon: pull access denied for mcp/nosuch, repository does not exist or may require 'docker login'",
        ),
        (
            DOCKER_DAEMON,
            "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running",
        ),
        (
            UVX,
            "× No solution found when resolving tool dependencies:; ╰─▶ Because mcp-server-nosuch was not found in the package "
            "registry and you require mcp-server-nosuch, we can conclude that your requirements are unsatisfiable",
        ),
        (
            UVX_OFFLINE,
            "error: Request failed after 3 retries; Caused by: dns error: failed to lookup address information: "
            "Name or service not known",
        ),
        (
            DENO,
            'error: Uncaught (in promise) NotCapable: Requires env access to "TOKEN", run again with the --allow-env flag',
        ),
        (
            JAVA,
            'Exception in thread "main" java.lang.IllegalStateException: cannot start; '
            "Caused by: java.net.ConnectException: Connection refused",
        ),
        (JAVA_JAR, "Error: Unable to access jarfile server.jar"),
        (GO_PANIC, "panic: runtime error: invalid memory address or nil pointer dereference"),
        (GO_FATAL, "2026/01/02 10:00:00 cannot open db: no such file or directory"),
        (
            RUST,
            "thread 'main' (41231) panicked at src/main.rs:12:38: called `Result::unwrap()` on an `Err` value: "
            'Os { code: 2, kind: NotFound, message: "No such file or directory" }',
        ),
        ("starting\nlistening\nbye\n", "listening; bye"),
        ("}\n", "}"),
        ("\n \n", ""),
    ],
)
def test_the_lines_that_say_why_are_told(said: str, reason: str):
    assert reason_in(said) == reason


@every_row(
    "settings, said, words",
    [
        ({}, NODE_EROFS, ["--project write"]),
        ({"project": "write"}, NODE_EROFS, []),
        ({"project": "none"}, NODE_EROFS, []),
        (
            {},
            "PermissionError: [Errno 13] Permission denied: '/srv/data/x.db'",
            ["--write /srv/data"],
        ),
        (
            {},
            "sqlite3.OperationalError: unable to open database file",
            ["--project write", "--write PATH"],
        ),
        ({"network": False}, NPX_OFFLINE, ["--no-network"]),
        ({"network": False}, UVX_OFFLINE, ["--no-network"]),
        ({}, NPX_OFFLINE, []),
        ({"sandbox": False}, NODE_EROFS, []),
        ({}, PYTHON, []),
    ],
)
def test_what_the_sandbox_refused_is_said_with_the_setting_that_allows_it(settings, said, words):
    server = server_of("demo", {"command": "x", **settings})
    found = remedies_for(server, said, Path("/work/project"))
    assert len(found) == len(words)
    assert all(word in each.value for word, each in zip(words, found, strict=True))


def test_a_path_that_is_there_but_hidden_from_the_server_is_offered(tmp_path: Path):
    server = server_of("demo", {"command": "x"})
    (tmp_path / "data").mkdir()
    for said, word in (
        (
            f"Error: ENOENT: no such file or directory, mkdir '{tmp_path}/data/x'",
            f"--write {tmp_path}/data",
        ),
        (
            f"FileNotFoundError: [Errno 2] No such file or directory: '{tmp_path}/data'",
            f'"{tmp_path}/data"',
        ),
    ):
        (remedy,) = remedies_for(server, said, Path("/work/project"))
        assert word in remedy.value
    for said in (
        f"ENOENT: no such file or directory, open '{tmp_path}/nowhere/x'",
        "ENOENT: '/x'",
        "ENOENT",
    ):
        assert remedies_for(server, said, Path("/work/project")) == ()


def test_one_that_was_told_to_see_nothing_of_the_project_is_not_offered_it(tmp_path: Path):
    server = server_of("demo", {"command": "x", "project": "none"})
    project, other = tmp_path / "work/project", tmp_path / "other"
    for folder in (project, other):
        folder.mkdir(parents=True)
    for folder in (project, project / "gone", project.parent, other):
        said = f"FileNotFoundError: [Errno 2] No such file or directory: '{folder}'"
        assert bool(remedies_for(server, said, project)) is (folder == other)
