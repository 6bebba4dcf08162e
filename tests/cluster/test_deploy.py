"""The files in `deploy/`: they parse, say what Ray and its operator want to hear, and their commands are ours."""

import configparser
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from lycosa.cli.commands import app
from lycosa.cluster.ray import ENVIRONMENT, OBJECT_STORE_BYTES

yaml = pytest.importorskip("yaml", reason="comes with the extra cluster")

DEPLOY = Path(__file__).parents[2] / "deploy"
COMMAND = re.compile(r"(?:^|[\s'\"/])lycosa (cluster .*)")
QUICK = {name for name in ENVIRONMENT if name.startswith("RAY_health_check")}


def commands() -> list[tuple[str, list[str]]]:
    """Every command line of ours, with its file; lines that end in a backslash or are folded are one."""
    found = []
    for file in sorted(DEPLOY.rglob("*")):
        if not file.is_file():
            continue
        text = re.sub(r"\\\n#?\s*", " ", file.read_text())
        lines = [*text.splitlines(), *(folded(file) if file.suffix == ".yaml" else [])]
        for line in lines:
            match = COMMAND.search(line)
            if match and "..." not in line:
                words = re.split(r"[\"']", match[1])[0].replace("$(hostname -i)", "192.0.2.1")
                words = re.sub(r"\$\{?HEAD\}?", "192.0.2.1:6379", words)
                found.append((file.name, shlex.split(re.sub(r"\$\{?[A-Z_]+\}?", "192.0.2.1", words))))
    return found


def folded(file: Path) -> list[str]:
    return [str(one.get("spec", {}).get("entrypoint", "")) for one in yaml.safe_load_all(file.read_text())]


def parse(command: Any, words: list[str], parent: Any = None) -> None:
    """As the command line is read, without doing anything."""
    context = command.make_context(command.name, list(words), parent=parent)
    if hasattr(command, "resolve_command"):  # a group
        rest = [*context._protected_args, *context.args]
        _, inner, left = command.resolve_command(context, rest)
        assert inner is not None, rest
        parse(inner, left, context)


def test_commands_in_the_files_are_accepted() -> None:
    found = [words for name, words in commands() if not (name == "job.yaml" and "crawl" not in words)]
    assert {words[-1] for words in found} and len(found) >= 5
    for words in found:
        parse(typer.main.get_command(app), words)


def test_command_with_a_slip_is_not_accepted() -> None:
    with pytest.raises(Exception, match="No such option"):
        parse(typer.main.get_command(app), ["cluster", "start", "--heda"])


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text()))


@pytest.mark.parametrize(("name", "kind"), [("cluster.yaml", "RayCluster"), ("job.yaml", "RayJob")])
def test_kubernetes_nodes_are_as_a_crawl_wants_them(name: str, kind: str) -> None:
    (one,) = [document for document in documents(name) if document["kind"] == kind]
    assert one["apiVersion"] == "ray.io/v1"
    spec = one["spec"]["rayClusterSpec"] if kind == "RayJob" else one["spec"]
    assert spec["authOptions"] == {"mode": "token"}
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        assert group["rayStartParams"]["object-store-memory"] == str(OBJECT_STORE_BYTES)
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        environment = {each["name"]: each["value"] for each in container["env"]}
        assert {name: environment[name] for name in QUICK} == {name: ENVIRONMENT[name] for name in QUICK}
        assert [mount["name"] for mount in container["volumeMounts"]] == [volume["name"] for volume in pod["volumes"]]


def test_launcher_file_is_one_of_rays() -> None:
    ray_util = pytest.importorskip("ray.autoscaler._private.util", reason="needs the extra cluster")
    config = yaml.safe_load((DEPLOY / "ray-cluster.yaml").read_text())
    ray_util.validate_config(ray_util.prepare_config(config))
    (head,) = [line for line in config["head_start_ray_commands"] if "ray start" in line]
    assert all(f"{name}={ENVIRONMENT[name]}" in head for name in QUICK | {"RAY_AUTH_MODE"})


@pytest.mark.parametrize("name", ["lycosa-head.service", "lycosa-node.service"])
def test_units_start_a_node_again(name: str) -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "systemd" / name)
    assert unit["Service"]["Restart"] == "on-failure"
    assert " start " in unit["Service"]["ExecStart"]


def test_compose_file_crawls_into_a_volume_and_shows_it_on_loopback_only() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for service in services.values():
        parse(typer.main.get_command(app), shlex.split(re.sub(r"\$\{[^}]*\}", "a-token", service["command"])))
        assert service["volumes"] == ["data:/data"]
    assert " --into /data/example " in services["crawl"]["command"]
    assert services["serve"]["command"].startswith("serve /data/example ")
    assert all(port.startswith("127.0.0.1:") for port in services["serve"]["ports"])
    assert (DEPLOY.parent / services["crawl"]["build"]["dockerfile"]).is_file()


def test_images_get_all_that_the_packages_are_built_from() -> None:
    kept = {line[1:] for line in (DEPLOY.parent / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", (DEPLOY / "crawl.Dockerfile").read_text(), re.MULTILINE)
    assert {name for line in copied for name in line.split()} == kept
    assert all((DEPLOY.parent / name).exists() for name in kept)


def test_unit_of_a_crawl_is_accepted_and_continues_it() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "systemd" / "lycosa-crawl@.service")
    program, *words = shlex.split(unit["Service"]["ExecStart"].replace("%i", "example"))
    assert program.endswith("/lycosa")
    parse(typer.main.get_command(app), words)
    assert unit["Service"]["Restart"] == "on-failure"
    assert unit["Service"]["RestartPreventExitStatus"].split() == ["2", "4"]
