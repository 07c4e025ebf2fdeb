"""Headless Chromium, driven over its DevTools protocol: a page as a reader sees and clicks it."""

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LOCAL = ("file:", "data:", "blob:", "about:")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"),
)
PATIENCE_SECONDS = 120.0


def executable() -> str | None:
    """Return the path of Chromium or Chrome, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


class Page:
    """One open page; `errors` and `requests` collect what it throws and asks the network for."""

    def __init__(self, send: int, receive: int) -> None:
        """Attach to the only page of a browser; the arguments are its two pipes."""
        self._out, self._in = os.fdopen(send, "wb", 0), os.fdopen(receive, "rb", 0)
        self._rest, self._id, self._session = b"", 0, None
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the answer to one command; events that come before it are noted."""
        self._id += 1
        message = {"id": self._id, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._id:
            self._note(answer.get("method"), answer.get("params", {}))
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = self._in.read(1 << 20)
            assert part, "the browser ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _note(self, method: str | None, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, path: Path, width: int, height: int) -> None:
        """Open a local file in a window of this size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.until("document.readyState == 'complete'")

    def value(self, script: str, frame: str | None = None) -> Any:
        """Return the value of a JavaScript expression, in the page or in one of its frames."""
        where = {}
        if frame is not None:
            made = self.call("Page.createIsolatedWorld", frameId=frame)
            where = {"contextId": made["executionContextId"]}
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, **where)
        assert "exceptionDetails" not in done, (script, done["exceptionDetails"])
        return done["result"].get("value")

    def until(self, script: str, frame: str | None = None) -> Any:
        """Return the value of an expression as soon as it is true."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not (value := self.value(script, frame)):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.05)
        return value

    def frame(self) -> str:
        """Return the id of the page's only frame."""
        (child,) = self.call("Page.getFrameTree")["frameTree"]["childFrames"]
        return child["frame"]["id"]

    def click(self, element: str) -> None:
        """Click the middle of the element that a JavaScript expression gives, once it is there."""
        self.until(f"{element} != null")
        script = (
            f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect();"
            " return {x: b.x + b.width / 2, y: b.y + b.height / 2} })()"
        )
        box = None
        while box != (box := self.value(script)):
            time.sleep(0.1)  # the layout still moves
        for kind in ("mousePressed", "mouseReleased"):
            mouse = {"type": kind, "button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", **mouse, **box)

    def screenshot(self, path: Path) -> None:
        """Write what the window shows as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


@contextmanager
def page(profile: Path) -> Iterator[Page]:
    """Start Chromium with a fresh profile and yield its page."""
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    command = [executable(), *FLAGS, f"--user-data-dir={profile}"]
    # Chromium reads commands from descriptor 3 and answers on 4
    start = ["bash", "-c", f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}', *command]
    browser = subprocess.Popen(
        start, pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL, start_new_session=True
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Page(ours_out, ours_in)
    finally:
        browser.kill()
        browser.wait()
