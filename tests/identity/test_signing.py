"""Signed requests: vectors of the drafts, signatures that a verifier of its own accepts, and a crawl that is signed."""

import json
import re
import subprocess
import sys
from base64 import b64decode, urlsafe_b64decode
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from lycosa.errors import SettingsError
from lycosa.frontier import RequestKind
from lycosa.identity import BotKey, RequestSigner, key_directory
from lycosa.identity.signing import SignatureForm
from lycosa.records import Request
from tests.cli.command import lycosa
from tests.crawl.small_site import FIRST, SmallSite, crawl_site

# RFC 9421, appendix B.1.4: test-key-ed25519.
PRIVATE, PUBLIC = "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU", "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"
KEY_ID = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"


def decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def rfc_key() -> BotKey:
    return BotKey(Ed25519PrivateKey.from_private_bytes(decoded(PRIVATE)))


def signer(form: SignatureForm, agent: str = "https://bot.example", now: float = 1_800_000_000.7) -> RequestSigner:
    return RequestSigner(rfc_key(), agent, form, lambda: now)


def test_key_id_is_the_thumbprint_of_the_rfc_key() -> None:
    key = rfc_key()
    assert (key.x, key.key_id) == (PUBLIC, KEY_ID)


def test_signature_reproduces_rfc_9421_b_2_6() -> None:
    base = (
        '"date": Tue, 20 Apr 2021 02:07:55 GMT\n"@method": POST\n"@path": /foo\n"@authority": example.com\n'
        '"content-type": application/json\n"content-length": 18\n"@signature-params": ("date" "@method" "@path" '
        '"@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"'
    )
    expected = "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
    assert rfc_key().sign(base.encode()) == b64decode(expected)


def test_string_form_reproduces_the_vector_of_the_earlier_draft() -> None:
    nonce = "e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg=="
    made = signer(SignatureForm.CLOUDFLARE, "https://signature-agent.test").signature(
        "example.com", created=1735689600, lifetime_s=3600, nonce=nonce, label="sig2"
    )
    assert made[2] == (
        "Signature",
        "sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:",
    )


def test_key_reproduces_the_vector_of_the_draft_with_a_dictionary() -> None:
    nonce = "n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA=="
    base = (
        '"@authority": example.com\n"signature-agent";key="agent2": "https://signature-agent.test"\n'
        '"@signature-params": ("@authority" "signature-agent";key="agent2");created=1735689600'
        f';keyid="{KEY_ID}";alg="ed25519";expires=4889289600;nonce="{nonce}";tag="web-bot-auth"'
    )
    expected = "RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg=="
    assert rfc_key().sign(base.encode()) == b64decode(expected)


def verify(fields: dict[str, str], authority: str) -> dict[str, str]:
    """A verifier by RFC 9421, written apart from the signer: the parameters of a signature that is right."""
    label, _, rest = fields["Signature-Input"].partition("=")
    inner = re.match(r"\(([^)]*)\)", rest)
    assert inner is not None
    agent = fields["Signature-Agent"]
    lines = []
    for component in inner[1].split(" "):
        name, _, key = component.partition(";key=")
        if name == '"@authority"':
            lines.append(f"{component}: {authority}")
        elif key:
            members = dict(member.split("=", 1) for member in agent.split(", "))
            lines.append(f"{component}: {members[key.strip(chr(34))]}")
        else:
            lines.append(f"{component}: {agent}")
    lines.append(f'"@signature-params": {rest}')
    signed = b64decode(fields["Signature"].removeprefix(f"{label}=:").removesuffix(":"))
    Ed25519PublicKey.from_public_bytes(decoded(PUBLIC)).verify(signed, "\n".join(lines).encode())
    return dict(re.findall(r";(\w+)=\"?([^\";]*)", rest))


@pytest.mark.parametrize("form", SignatureForm)
@pytest.mark.parametrize(("url", "authority"), [(FIRST, "127.0.0.1:9"), ("https://example.org/a?b", "example.org")])
def test_signature_covers_authority_and_agent_and_is_fresh(form: SignatureForm, url: str, authority: str) -> None:
    request = Request(url, "h", 1, "a", (("User-Agent", "lycosa"),))
    one, two = (signer(form).prepare(request, RequestKind.PAGE) for _ in range(2))

    assert one.headers[0] == ("User-Agent", "lycosa")
    said = verify(dict(one.headers), authority)
    assert (said["created"], said["tag"], said["keyid"]) == ("1800000000", "web-bot-auth", KEY_ID)
    assert 60 <= int(said["expires"]) - int(said["created"]) <= 300
    assert said["nonce"] != verify(dict(two.headers), authority)["nonce"]
    with pytest.raises(InvalidSignature):
        verify(dict(one.headers), "other.example")


def test_every_request_of_a_crawl_is_signed_and_archived_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Request] = []
    start = SmallSite.start
    monkeypatch.setattr(
        SmallSite, "start", lambda site, request, done: (sent.append(request), start(site, request, done))
    )
    BotKey.make(tmp_path / "bot.key")

    settings = {"bot_key": str(tmp_path / "bot.key"), "bot_agent": "https://bot.example/"}
    crawl_site(tmp_path / "c", {FIRST: "<p>x"}.get, **settings)

    assert {request.url for request in sent} == {FIRST, f"{FIRST}robots.txt"}
    assert all(dict(request.headers)["Signature-Agent"] == 'sig1="https://bot.example"' for request in sent)


def test_key_file_is_for_its_owner_and_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "bot.key"
    key = BotKey.make(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert BotKey.read(path).key_id == key.key_id
    path.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        BotKey.read(path)
    (tmp_path / "other").write_text("no key")
    (tmp_path / "other").chmod(0o600)
    with pytest.raises(SettingsError, match="holds no private key"):
        BotKey.read(tmp_path / "other")
    with pytest.raises(SettingsError, match="lycosa identity"):
        BotKey.read(tmp_path / "none")


def test_command_makes_key_and_directory_once(tmp_path: Path) -> None:
    first = lycosa("identity", str(tmp_path / "bot.key"), "--out", str(tmp_path))
    path = tmp_path / ".well-known" / "http-message-signatures-directory"
    (entry,) = json.loads(path.read_bytes())["keys"]
    again = lycosa("identity", str(tmp_path / "bot.key"))

    assert first.code == again.code == 0, first.err
    assert json.loads(again.out)["keys"] == [entry]
    assert entry["kid"] == BotKey.read(tmp_path / "bot.key").key_id
    assert set(entry) == {"kty", "crv", "kid", "x", "use"} and "d" not in entry
    assert "application/http-message-signatures-directory+json" in first.err
    assert lycosa("identity", str(tmp_path / "new.key"), "--out", str(tmp_path / "none")).code == 2
    assert not (tmp_path / "new.key").exists()
    assert json.loads(key_directory(rfc_key()))["keys"][0]["x"] == PUBLIC


def test_crawl_without_a_whole_identity_ends_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--bot-key FILE and --bot-agent URL"):
        crawl_site(tmp_path / "c", {FIRST: "<p>x"}.get, bot_agent="https://bot.example")
    with pytest.raises(SettingsError, match="without a path"):
        crawl_site(tmp_path / "d", {FIRST: "<p>x"}.get, bot_agent="http://bot.example/x")


def test_crawl_that_signs_nothing_imports_nothing_of_it() -> None:
    code = "import sys, lycosa.api.assembly, lycosa.crawl.loop; print('lycosa.identity' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
