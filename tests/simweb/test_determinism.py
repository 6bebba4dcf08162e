"""Two processes with the same seed serve the same ten thousand pages, byte for byte."""

import hashlib
import os
import subprocess
import sys

import pytest

from tests.simweb.conftest import ROOT

SCRIPT = """
import hashlib, sys
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.vocabulary import mix
seed, backwards = int(sys.argv[1]), sys.argv[2] == "backwards"
web = SimWeb(SimSettings(seed=seed, hosts=200, pages=1_000_000))
total = hashlib.sha256()
digests = {}
for i in sorted(range(int(sys.argv[3])), reverse=backwards):
    host = mix(i, 0, 1) % 200
    number = mix(i, 1, 1) % web.layout.sizes[host]
    folder = web.layout.folder(host, number // 32)
    path = folder.path + folder.name(number % 32)
    time_s = (mix(i, 2, 1) % 400) * 86_400.0
    answer = web.answer(host, path, time_s)
    digests[i] = hashlib.sha256(repr((answer.status, answer.etag, answer.headers)).encode() + answer.body).digest()
print(hashlib.sha256(b"".join(digests[i] for i in range(int(sys.argv[3])))).hexdigest())
"""


def fingerprint(seed: int, order: str, hash_seed: str, pages: int = 600) -> str:
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": hash_seed}
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(seed), order, str(pages)],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.strip()


@pytest.mark.slow
def test_two_processes_with_one_seed_agree_on_every_page() -> None:
    first = fingerprint(1, "forwards", "1")
    assert len(first) == hashlib.sha256().digest_size * 2
    assert fingerprint(1, "backwards", "2") == first
    assert fingerprint(2, "forwards", "1", 100) != fingerprint(1, "forwards", "1", 100)
