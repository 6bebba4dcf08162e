"""Sessions: what is sent to whom, and how a crawl logs in.

    credentials       secrets of the environment and of the credentials file, bound to scheme, host and port
    authentication    answers to Basic and Digest challenges
    jars              cookies, by libcurl's engine, kept in the collection
    login             form logins, again when a session is lost
    hook              adds credentials to the requests of a crawl, and looks at answers that ask for them

The room is imported by crawls whose settings name credentials, and by no other. Nothing here sends anything: requests
go through the frontier, the guard and the downloader like all others, and the archive gets names in place of secrets.
"""

from lycosa.sessions.hook import add_sessions, require_secrets

__all__ = ["add_sessions", "require_secrets"]
