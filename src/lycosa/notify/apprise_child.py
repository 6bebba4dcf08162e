"""The child that runs Apprise: `python apprise_child.py`, with {"url", "title", "body"} as JSON on its standard input.

Exit codes: 0 the service took it, 3 it did not, 4 the URL cannot be read. Plug-ins are looked for where the command
`apprise` looks. Started by `notify.services`; imports nothing of Lycosa.
"""

import json
import os
import re
import sys
from pathlib import Path

REFUSED, UNKNOWN = 3, 4
PLUGIN_FOLDERS = ("~/.apprise/plugins", "~/.config/apprise/plugins", "/var/lib/apprise/plugins")


def main() -> int:
    message = json.load(sys.stdin)
    import apprise  # the parent has checked that it is installed

    named = os.environ.get("APPRISE_PLUGIN_PATH", "")
    folders = re.split(r"[\r\n;]+", named.strip()) if named else PLUGIN_FOLDERS
    found = [str(path) for folder in folders if (path := Path(folder).expanduser()).exists()]
    service = apprise.Apprise(asset=apprise.AppriseAsset(plugin_paths=found))
    if not service.add(message["url"]):
        return UNKNOWN
    return 0 if service.notify(title=message["title"], body=message["body"]) else REFUSED


if __name__ == "__main__":
    sys.exit(main())
