"""What the code may never do: read pickles, call a shell, make a file with a secret that others may read."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from proof.ground.lock import EXTRAS

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "lycosa").rglob("*.py"))
# They run what they read: whoever can write the file, or answer the request, runs code.
UNSAFE_MODULES = {"pickle", "cPickle", "shelve", "marshal", "dill", "cloudpickle", "joblib"}
UNSAFE_CALLS = {
    "os.system",
    "os.popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "eval",
    "yaml.load",
    "asyncio.create_subprocess_shell",
}
# `lycosa shell -c` and the prompt run what their user types.
RUNS_CODE = {"api/shell.py", "api/script.py", "cli/shell.py"}
# These write what nobody else may read.
HOLD_SECRETS = ("identity/signing.py", "settings/credentials.py", "notify/webhook.py", "cli/cluster.py")


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def offences(tree: ast.AST, *, may_run_code: bool = False) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (f"imports {name}" for name in names if name.partition(".")[0] in UNSAFE_MODULES)
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            if (name in UNSAFE_CALLS or name == "exec") and not may_run_code:
                yield f"line {node.lineno} calls {name}"
            for keyword in node.keywords:
                value = keyword.value
                is_off = isinstance(value, ast.Constant) and not value.value
                starts_process = name.partition(".")[0] == "subprocess" or name.endswith("Popen")
                if not is_off and (keyword.arg == "allow_pickle" or (keyword.arg == "shell" and starts_process)):
                    yield f"line {node.lineno} sets {keyword.arg}"


def test_source_reads_no_pickle_and_calls_no_shell() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {offence}"
        for path in SOURCES
        for offence in offences(
            ast.parse(path.read_text()), may_run_code=str(path.relative_to(ROOT / "src" / "lycosa")) in RUNS_CODE
        )
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from cloudpickle import loads",
        "os.system('ls')",
        "subprocess.run('ls', shell=True)",
        "subprocess.Popen(words, shell=flag)",
        "numpy.load(path, allow_pickle=True)",
        "eval(text)",
    ],
)
def test_each_offence_is_seen(line: str) -> None:
    assert list(offences(ast.parse(line)))


@pytest.mark.parametrize("name", HOLD_SECRETS)
def test_files_with_secrets_are_made_for_their_owner_alone(name: str) -> None:
    text = (ROOT / "src" / "lycosa" / name).read_text()
    assert "0o600" in text
    assert not re.search(r"0o6[1-7][0-7]|0o64", text)


def test_lock_has_every_package_of_users_at_a_version_that_fits_and_with_its_digest() -> None:
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9.-]+==[^ ]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    locked = {name: rest.partition(" ")[0] for name, _, rest in (line.partition("==") for line in lines)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert set(extras) - set(EXTRAS.split(",")) == {"native", "docs", "dev"}  # built here, or for developers
    needed = [*project["dependencies"], *(word for extra in EXTRAS.split(",") for word in extras[extra])]
    for requirement in map(Requirement, needed):
        version = locked[requirement.name.lower().replace("_", "-")]
        assert requirement.specifier.contains(version), requirement


def test_crates_of_the_kernel_are_locked_with_digests() -> None:
    crates = tomllib.loads((ROOT / "native" / "Cargo.lock").read_text())["package"]
    assert all("checksum" in crate for crate in crates if "source" in crate)
    assert [crate["name"] for crate in crates if "source" not in crate] == ["lycosa-native"]
