"""A trusted project's hook that runs more than plain commands of known programs only reads the project: played with the installed command."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from scripted import OpenAIServer
from security import swapping
from serving import serving

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: needs Linux"),
]
BEGIN = {
    "bubblewrap": "",
    "landlock": "from ybs.security.sandbox import choice\n"
    "choice.tried_bubblewrap = lambda: (None, (), 'there is no bubblewrap')\n",
}
#: Hooks by what they write, with the program that they need, and the files that change after trust.
HOOKS = {
    "tar": ("tar cf /dev/null *", "tar", {"--checkpoint=1": "", "--checkpoint-action=exec=sh evil": ""}),
    "wait": ("sh wait.sh", "make", {"Makefile": "all:\n\ttouch made/wait\n"}),
    "case": ("sh case.sh", "make", {"Makefile": "all:\n\ttouch made/wait\n"}),
    "names": ("bash names.sh", "bash", {"a[$(cd made; echo >names)]": ""}),
    "node": ("node .", "node", {"main.js": "require('fs').writeFileSync('made/node', '')\n"}),
}  # fmt: skip
FILES = {
    "wait.sh": "timeout 9 make\n",
    "case.sh": "case x in x) env -u X make;; esac\n",
    "names.sh": "for f in a*; do [[ $f -gt 1 ]] && echo $((f)); done\n",
    "Makefile": "all:\n\ttrue\n",
    "package.json": '{"main": "main.js"}',
    "main.js": "",
    "evil": "touch made/tar\n",
    "made/here": "",
}


@pytest.mark.parametrize("sandbox", BEGIN)
def test_what_changed_after_trust_writes_nothing(sandbox, project, tmp_path):
    swapping.SANDBOXES[sandbox](project, tmp_path)  # skips
    (project / "made").mkdir()
    for name, text in FILES.items():
        (project / name).write_text(text)
    there = {name: row for name, row in HOOKS.items() if shutil.which(row[1])}
    commands = ["touch made/control", *(row[0] for row in there.values())]
    entries = [{"hooks": [{"type": "command", "command": each}]} for each in commands]
    (project / ".ybs.json").write_text(json.dumps({"hooks": {"UserPromptSubmit": entries}}))

    def ybs(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", f"{BEGIN[sandbox]}import ybs.cli\nybs.cli.main()", *words],
            cwd=project,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "OPENAI_API_KEY": "k"},
            capture_output=True,
            text=True,
            timeout=50,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return done.stdout + done.stderr

    digest = json.loads(ybs("trust", "--json"))["digest"]
    assert "Trusted as it is now" in ybs("trust", "give", digest)
    for _, _, changes in there.values():
        for name, text in changes.items():
            (project / name).write_text(text)
    with serving(["done"] * 2, OpenAIServer) as server:
        said = ybs(
            "--print", "go", "--provider", "openai", "--endpoint", server.url, "--model", "m"
        )
    assert {each.name for each in (project / "made").iterdir()} == {"here", "control"}, said
    assert "Read-only file system" in said or "Permission denied" in said
