"""The files of `examples/deploy` are whole, and what stands in them is what ybs understands and serves."""

import json
import re
import shlex
import shutil
import subprocess
from argparse import Namespace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from rows import every_row
from ybs.cli.parser import parse
from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.frontends.gateway.gateway import make_channels
from ybs.frontends.gateway.store import shared_engine

pytestmark = pytest.mark.integration
DEPLOY = Path(__file__).parents[2] / "examples" / "deploy"
COMPOSE: Any = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
MANIFESTS: Any = {
    each["kind"]: each for each in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
}
POD = MANIFESTS["Deployment"]["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
UNITS = [*DEPLOY.glob("*.service")]
COMMANDS = [
    json.loads(re.findall(r"^CMD (.+)$", CONTAINERFILE, re.M)[0]),
    CONTAINER["args"],
    *(shlex.split(re.findall(r"^ExecStart=\S*/ybs (.+)$", u.read_text(), re.M)[0]) for u in UNITS),
]
SAID = [
    shlex.split(words)
    for file in DEPLOY.iterdir()
    for words in re.findall(
        r"^#.*\bybs (gateway (?:pair|doctor|start)\b[^#;\n]*)", file.read_text(), re.M
    )
]
SETTINGS = [
    COMPOSE["configs"]["settings"]["content"],
    MANIFESTS["ConfigMap"]["data"]["config.json"],
]


@every_row("words", [*COMMANDS, *SAID], ids=" ".join)
def test_commands_are_those_of_ybs(words: list[str]):
    arguments: Namespace = parse(words)
    assert arguments.subcommand == "gateway"
    assert words in SAID or arguments.action == "start"


def test_ports_and_probes_are_those_that_the_gateway_serves():
    for words in COMMANDS:
        assert "--metrics" not in words or parse(words).metrics.endswith("9464")
    assert "9464" in re.findall(r"^EXPOSE (.+)$", CONTAINERFILE, re.M)
    assert "127.0.0.1:9464/healthz" in CONTAINERFILE
    assert CONTAINER["ports"] == [{"name": "metrics", "containerPort": 9464}]
    assert CONTAINER["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    assert CONTAINER["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}
    annotations = MANIFESTS["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == "9464"
    for probe in ("livenessProbe", "readinessProbe"):  # the gateway may take five seconds
        assert CONTAINER[probe]["timeoutSeconds"] > 5


@every_row("text", SETTINGS)
def test_settings_are_valid_and_name_variables_that_are_set(text: str):
    settings = msgspec.json.decode(text, type=Config, strict=True).gateway
    assert shared_engine(settings.database).url.get_backend_name() == "postgresql"
    environ = COMPOSE["services"]["one"]["environment"]
    host = Host.of({"HOME": "/home/ybs", **dict.fromkeys(environ, "1:x")})
    assert [*make_channels(settings, host)] == ["telegram"]


def test_both_gateways_share_what_they_have_to_and_the_database_is_kept():
    services = COMPOSE["services"]
    assert services["one"] == services["two"]
    assert {each.partition(":")[0] for s in services.values() for each in s["volumes"]} == {
        *COMPOSE["volumes"]
    }
    homes = {each.partition(":")[2] for each in services["one"]["volumes"]}
    assert homes <= {each["mountPath"] for each in CONTAINER["volumeMounts"]}
    assert all(home in CONTAINERFILE for home in homes)
    assert {each["name"] for each in CONTAINER["volumeMounts"]} == {
        each["name"] for each in POD["volumes"]
    }
    build = (DEPLOY / services["one"]["build"]["context"]).resolve()
    assert (build / services["one"]["build"]["dockerfile"]).samefile(DEPLOY / "Containerfile")
    copied = re.findall(r"^COPY (.+) \S+$", CONTAINERFILE, re.M)
    assert all((build / name).exists() for names in copied for name in names.split())


def test_what_a_deployment_selects_is_what_it_makes():
    spec = MANIFESTS["Deployment"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels
    assert MANIFESTS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert spec["replicas"] == 2
    claim = POD["volumes"][1]["persistentVolumeClaim"]["claimName"]
    assert claim == MANIFESTS["PersistentVolumeClaim"]["metadata"]["name"]
    assert POD["volumes"][0]["configMap"]["name"] == MANIFESTS["ConfigMap"]["metadata"]["name"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_the_units(unit: Path, tmp_path: Path):
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.M)
    copy = tmp_path / unit.name
    copy.write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    copy.write_text(text.replace("Restart=always", "Restart=sometimes"))
    assert "sometimes" in subprocess.run(command, capture_output=True, text=True, check=False).stderr  # fmt: skip
