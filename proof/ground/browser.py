"""Chromium without a window, driven through a pipe by the DevTools protocol.

`Browser` opens a page and tells what it asked for, what it shows in all its frames, and how it looks. It needs Chromium
on the path, and no other package.
"""

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lycosa.errors import LycosaError

NAMES = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--window-size=1200,800"),
    "--remote-debugging-pipe",
)
ANSWER_S = 60.0
# Chromium reads from descriptor 3 and writes to 4.
_EXEC = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3), os.dup2(ends[1], 4), [os.close(end) for end in ends]
os.execv(sys.argv[3], sys.argv[3:])
"""


def chromium() -> str:
    """The path of Chromium."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise LycosaError("there is no Chromium on the path: apt-get install chromium")
    return found


class Browser:
    """One page of a running Chromium. `requests` are the URLs that it and its frames asked for, `problems` what the
    page complained of: errors, refusals of its policy, failed requests. `dialogs` are all confirmed."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._number, self._rest = 0, b""
        self._answers: dict[int, dict[str, Any]] = {}
        self.requests: list[str] = []
        self.problems: list[str] = []
        self.dialogs: list[str] = []
        self._loaded = set[str]()  # documents that are there, with all that they need
        self._sessions: dict[str, str] = {}  # of the page and of each frame with a process of its own: its URL
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._page = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._prepare(self._page)

    def _prepare(self, session: str) -> None:
        self._sessions[session] = ""
        for method in ("Page.enable", "Network.enable", "Runtime.enable", "Log.enable"):
            self._send(method, session)
        self._send("Page.setLifecycleEventsEnabled", session, enabled=True)
        self._send("Target.setAutoAttach", session, autoAttach=True, waitForDebuggerOnStart=True, flatten=True)
        self._send("Runtime.runIfWaitingForDebugger", session)

    def _send(self, method: str, session: str = "", **params: object) -> int:
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        return self._number

    def call(self, method: str, session: str = "", **params: object) -> dict[str, Any]:
        """The result of a method; raises LycosaError for an error, or where none comes."""
        number = self._send(method, session, **params)
        self.wait(lambda: number in self._answers, ANSWER_S)
        answer = self._answers.pop(number, {"error": "no answer"})
        if "error" in answer:
            raise LycosaError(f"Chromium on {method}: {answer['error']}")
        found: dict[str, Any] = answer["result"]
        return found

    def wait(self, is_done: Any, seconds: float) -> bool:
        """Reads what Chromium says until `is_done`, or until so long has passed; returns whether it is done."""
        deadline = time.monotonic() + seconds
        while not is_done():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if select.select([self._reading], [], [], min(left, 0.1))[0]:
                data = os.read(self._reading, 1 << 20)
                if not data:
                    raise LycosaError("Chromium has ended")
                *messages, self._rest = (self._rest + data).split(b"\0")
                for message in messages:
                    self._heard(json.loads(message))
        return True

    def _heard(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers[message["id"]] = message
            return
        method, params = message["method"], message["params"]
        if method == "Target.attachedToTarget" and params["targetInfo"]["type"] in ("page", "iframe"):
            self._prepare(params["sessionId"])
        elif method == "Target.attachedToTarget":
            self._send("Runtime.runIfWaitingForDebugger", params["sessionId"])
        elif method == "Target.detachedFromTarget":
            self._sessions.pop(params["sessionId"], None)
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Log.entryAdded":
            self.problems.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(params["exceptionDetails"]))
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(params["message"])
            self._send("Page.handleJavaScriptDialog", message.get("sessionId", ""), accept=True)
        elif method == "Page.lifecycleEvent" and params["name"] == "load":
            self._loaded.add(params["loaderId"])

    def open(self, url: str, *, settle_s: float = 0.5) -> None:
        """Goes to a URL, and waits until it is loaded and nothing more is asked for."""
        document = self.call("Page.navigate", self._page, url=url).get("loaderId")  # none within the same document
        self.wait(lambda: document is None or document in self._loaded, ANSWER_S)
        self.settle(settle_s)

    def settle(self, seconds: float = 0.5) -> None:
        """Waits until nothing was asked for in so long."""
        seen = -1
        while len(self.requests) != seen:
            seen = len(self.requests)
            self.wait(lambda: False, seconds)

    @property
    def url(self) -> str:
        frame = self.call("Page.getFrameTree", self._page)["frameTree"]["frame"]
        return f"{frame['url']}{frame.get('urlFragment', '')}"

    def texts(self) -> dict[str, str]:
        """The markup of the page and of each of its frames as it is now, by URL."""
        found: dict[str, str] = {}
        for session in tuple(self._sessions):
            with contextlib.suppress(LycosaError):  # a frame that has gone
                tree = self.call("DOM.getDocument", session, depth=-1, pierce=True)["root"]
                for node in _documents(tree):
                    html = self.call("DOM.getOuterHTML", session, nodeId=node["nodeId"])["outerHTML"]
                    found[node["documentURL"]] = html
        return found

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", self._page, expression=expression, returnByValue=True, awaitPromise=True)
        return found["result"].get("value")

    def click(self, x: int, y: int) -> None:
        """A click of a reader, with whatever it leads to."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", self._page, type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def resize(self, width: int, height: int = 800, *, is_dark: bool = False) -> None:
        """The size of the window in CSS pixels, and the theme that the page is asked for."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", self._page, **size)
        theme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", self._page, features=[theme])

    def screenshot(self, path: Path) -> None:
        path.write_bytes(b64decode(self.call("Page.captureScreenshot", self._page)["data"]))


def _documents(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if node["nodeName"] == "#document":
        yield node
    for child in (
        *node.get("children", ()),
        *filter(None, (node.get("contentDocument"),)),
        *node.get("shadowRoots", ()),
    ):
        yield from _documents(child)


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A Chromium of its own, ended with the block."""
    there, back = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [sys.executable, "-c", _EXEC, str(there[0]), str(back[1]), chromium(), *SWITCHES]
        process = subprocess.Popen(
            [*command, f"--user-data-dir={profile}"],
            pass_fds=(there[0], back[1]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(there[0])
        os.close(back[1])
        try:
            opened = Browser(back[0], there[1])
            yield opened
            with contextlib.suppress(LycosaError, OSError):
                opened._send("Browser.close")
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait()
            os.close(there[1])
            os.close(back[0])
