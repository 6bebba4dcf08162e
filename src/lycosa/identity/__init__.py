"""Who is asking: keys, signed requests (Web Bot Auth) and the directory by which others check them.

The room is imported by crawls that sign their requests and by `lycosa identity`, and by nothing else. Ed25519 comes
from the extra `lycosa[identity]`.
"""

from lycosa.identity.signing import DIRECTORY_PATH, DIRECTORY_TYPE, BotKey, RequestSigner, key_directory, sign_requests

__all__ = ["DIRECTORY_PATH", "DIRECTORY_TYPE", "BotKey", "RequestSigner", "key_directory", "sign_requests"]
