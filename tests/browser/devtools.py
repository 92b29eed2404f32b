"""A headless Chromium driven through DevTools over a pipe: no port, no driver program, no package.

::

    with Browser.start() as browser:
        page = browser.open(path)
        page.evaluate("document.title")

Everything the page logs, throws or asks of the network is kept. Modify this file when a test needs another DevTools call.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)


def find() -> str | None:
    """Where Chromium is; None where it is not installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One running Chromium."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._buffer = b""
        self._last = 0
        self.events: list[dict[str, Any]] = []

    @classmethod
    @contextmanager
    def start(cls, width: int = 1400, height: int = 900) -> Iterator[Browser]:
        """Start Chromium with a fresh profile; it ends with the block."""
        program = find()
        if program is None:
            raise FileNotFoundError("no Chromium; install it with: bash .ci/browser-setup.sh")
        to_child, from_us = os.pipe()
        to_us, from_child = os.pipe()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            command = [program, *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank"]
            # Chromium reads commands on descriptor 3 and writes answers on 4.
            wrapped = ["bash", "-c", f'exec 3<&{to_child} 4>&{from_child}; exec "$@"', "chromium", *command]
            process = subprocess.Popen(
                wrapped, pass_fds=(to_child, from_child), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            os.close(to_child)
            os.close(from_child)
            browser = cls(from_us, to_us)
            try:
                yield browser
            finally:
                with suppress(Exception):
                    browser.call("Browser.close")
                os.close(from_us)
                os.close(to_us)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                if process.poll() is None:
                    process.kill()
                    process.wait()

    def call(self, method: str, session: str | None = None, timeout: float = 60.0, **parameters: Any) -> dict[str, Any]:
        """Send one command and wait for its answer; events that come meanwhile are kept."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + timeout
        while True:
            answer = self._read(until)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _read(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._receive], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError("Chromium does not answer")
            received = os.read(self._receive, 1 << 20)
            if not received:
                raise RuntimeError("Chromium has ended")
            self._buffer += received
        message, _, self._buffer = self._buffer.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed

    def open(self, path: Path, *, dark: bool = False) -> Page:
        """Open a file in a new tab and wait until its script has drawn."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.prefer("dark" if dark else "light")
        page.call("Page.navigate", url=path.resolve().as_uri())
        page.wait_for("document.documentElement?.dataset.ready")
        return page


class Page:
    """One tab."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A DevTools command for this tab."""
        return self._browser.call(method, self._session, **parameters)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait_for(self, expression: str, timeout: float = 30.0) -> Any:
        """Wait until the expression is truthy; gives its value."""
        until = time.monotonic() + timeout
        while not (value := self.evaluate(expression)):
            if time.monotonic() > until:
                raise TimeoutError(f"{expression} stayed false; {self.complaints()}")
            time.sleep(0.02)
        return value

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def prefer(self, scheme: str) -> None:
        """What the page is told about the reader's colour scheme."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def hover(self, x: float, y: float) -> None:
        """Move the mouse."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def wheel(self, x: float, y: float, by: float) -> None:
        """Turn the wheel."""
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=by)
        self.settle()

    def click(self, selector: str) -> None:
        """Click the middle of an element."""
        place = self.evaluate(
            f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)
        self.settle()

    def key(self, key: str) -> None:
        """Press and release a key, by its name in JavaScript."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
                 "ArrowDown": 40}
        code = codes.get(key, ord(key[0]))
        text = {"text": key} if len(key) == 1 else ({"text": "\r"} if key == "Enter" else {})
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        self.settle()

    def write(self, text: str) -> None:
        """Type text into what has the focus."""
        self.call("Input.insertText", text=text)
        self.settle()

    def screenshot(self) -> bytes:
        """The window as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def complaints(self) -> list[str]:
        """Everything logged or thrown so far."""
        self.evaluate("0")  # events that are on their way arrive before this answer
        shown = []
        for event in self._mine():
            parameters = event["params"]
            if event["method"] == "Runtime.consoleAPICalled":
                shown.append(f"console.{parameters['type']}: {parameters['args']}")
            elif event["method"] == "Runtime.exceptionThrown":
                shown.append(f"thrown: {parameters['exceptionDetails']}")
            elif event["method"] == "Log.entryAdded":
                shown.append(f"log: {parameters['entry']['text']}")
        return shown

    def requests(self) -> list[str]:
        """Every address that the page asked for."""
        return [event["params"]["request"]["url"] for event in self._mine() if event["method"] == "Network.requestWillBeSent"]

    def _mine(self) -> list[dict[str, Any]]:
        return [event for event in self._browser.events if event.get("sessionId") == self._session]
