"""Answers to challenges: Basic (RFC 7617) and Digest (RFC 7616). Pure but for the nonces of the client.

A password is never sent before the origin asks for it. Of several schemes the strongest is taken: Digest, by the better
hash, before Basic. A Digest challenge is answered ahead of time for all further requests, with a count that grows; when
its nonce is stale, the origin sends another one. Kept by `sessions.credentials`, used by `sessions.hook`.
"""

import hashlib
import re
import secrets
from base64 import b64encode
from collections.abc import Callable

import msgspec

# Hash functions for Digest by name, the best first.
_HASHES: dict[str, Callable[[bytes], str]] = {
    "sha-512-256": lambda data: hashlib.new("sha512_256", data).hexdigest(),
    "sha-256": lambda data: hashlib.sha256(data).hexdigest(),
    "md5": lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest(),
}
if "sha512_256" not in hashlib.algorithms_available:  # not every OpenSSL has it
    del _HASHES["sha-512-256"]
_STRENGTH = {name: len(_HASHES) - at for at, name in enumerate(_HASHES)}
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
# A scheme, or one of its parameters; quoted values may hold commas. It begins where a word does: to try every letter of
# a long word would take time by its square.
_PART = re.compile(
    rf'(?<!{_TOKEN.removesuffix("+")})(?:({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|({_TOKEN}))|({_TOKEN})(?=\s|,|$))'
)


class Challenge(msgspec.Struct, frozen=True):
    """What an origin asks for: the scheme, lower-case, and its parameters."""

    scheme: str
    parameters: dict[str, str] = {}

    @property
    def strength(self) -> int:
        """The better, the higher; 0 for what cannot be answered."""
        if self.scheme == "basic":
            return 1
        if self.scheme != "digest" or not self.parameters.get("nonce"):
            return 0
        qop = self.parameters.get("qop")
        if qop is not None and "auth" not in re.split(r"[\s,]+", qop.lower()):
            return 0
        return 1 + _STRENGTH.get(self.hash_name, 0) if self.hash_name in _HASHES else 0

    @property
    def hash_name(self) -> str:
        return self.parameters.get("algorithm", "MD5").lower().removesuffix("-sess")


def parse_challenges(value: str) -> list[Challenge]:
    """The challenges of a WWW-Authenticate field, or of several that are joined."""
    found: list[Challenge] = []
    for name, quoted, plain, scheme in _PART.findall(value[:8192]):
        if scheme:
            found.append(Challenge(scheme.lower(), {}))
        elif found:
            found[-1].parameters.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) or plain)
    return found


class PasswordAnswers:
    """A user name and a password for one origin, and what it asked for last."""

    def __init__(self, name: str, password: str) -> None:
        self._name, self._password = name, password
        self._challenge: Challenge | None = None
        self._count = 0
        self.has_worked = False  # since the challenge: then a new nonce says that the old one is stale

    def learn(self, value: str, *, was_answered: bool) -> bool:
        """Takes in a challenge; returns whether it is worth another request. One that refuses the answer to the one
        before is not, unless it says that the nonce is stale, or brings a new one after answers that were good."""
        best = max(parse_challenges(value), key=lambda challenge: challenge.strength, default=None)
        if best is None or not best.strength:
            return False
        known = self._challenge
        is_new = known is None or known.parameters.get("nonce") != best.parameters.get("nonce")
        is_stale = best.parameters.get("stale", "").lower() == "true" or (is_new and self.has_worked)
        if was_answered and not is_stale:
            return False
        if is_new:  # requests that were under way together may all be answered with the same nonce
            self._count, self.has_worked = 0, False
        self._challenge = best
        return True

    def answer(self, method: str, target: str) -> str | None:
        """The Authorization field of a request for this path and query; None before the first challenge."""
        challenge = self._challenge
        if challenge is None:
            return None
        if challenge.scheme == "basic":
            return "Basic " + b64encode(f"{self._name}:{self._password}".encode()).decode()
        self._count += 1
        return self._digest(challenge, method, target, secrets.token_hex(16))

    def _digest(self, challenge: Challenge, method: str, target: str, cnonce: str) -> str:
        given, hash_of = challenge.parameters, _HASHES[challenge.hash_name]

        def digest(*parts: str) -> str:
            return hash_of(":".join(parts).encode())

        realm, nonce, count = given.get("realm", ""), given["nonce"], f"{self._count:08x}"
        secret = digest(self._name, realm, self._password)
        if given.get("algorithm", "").lower().endswith("-sess"):
            secret = digest(secret, nonce, cnonce)
        request = digest(method, target)
        fields = {"username": self._name, "realm": realm, "nonce": nonce, "uri": target}
        if "qop" in given:
            fields["response"] = digest(secret, nonce, count, cnonce, "auth", request)
        else:
            fields["response"] = digest(secret, nonce, request)
        if "opaque" in given:
            fields["opaque"] = given["opaque"]
        quoted = [f'{name}="{_quoted(value)}"' for name, value in fields.items()]
        if "algorithm" in given:
            quoted.append(f"algorithm={given['algorithm']}")
        if "qop" in given:
            quoted += ["qop=auth", f"nc={count}", f'cnonce="{cnonce}"']
        return "Digest " + ", ".join(quoted)


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
