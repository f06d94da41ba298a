"""A real browser without a window (headless), controlled over its debugging pipe.

Chromium reads commands from descriptor 3 and answers on descriptor 4, each a JSON object that ends
with a zero byte (Chrome DevTools Protocol), so no driver and no package is needed.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
ANSWER_SECONDS = 60.0
READ_BYTES = 1 << 16


def find() -> str | None:
    """Find a browser on this machine."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of a browser with a profile of its own."""

    def __init__(self, program: str, folder: Path) -> None:
        """Start the browser; what it prints goes to `folder`."""
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        flags = [
            "--headless=new",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder / 'profile'}",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            # Without it no browser starts as root, nor where user namespaces are forbidden.
            "--no-sandbox",
        ]
        plug = f'exec "$@" 3<&{commands} 4>&{answers}'
        with (folder / "browser.log").open("wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", plug, "bash", program, *flags, "about:blank"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(commands, answers),
            )
        os.close(commands)
        os.close(answers)
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        self._loads = 0
        # What the page complained of: errors of scripts, refused loads, broken policies.
        self.complaints: list[str] = []
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        attached = self.tell("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.tell(f"{domain}.enable")

    def __enter__(self) -> Browser:
        """Be closed at the end of a block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def tell(self, method: str, **parameters: Any) -> Any:
        """Give a command: what it answers. It must succeed."""
        self._last += 1
        command = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        for message in self._messages():
            if message.get("id") == self._last:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self._note(message)
        raise AssertionError(f"the browser ended at {method}")

    def _messages(self) -> Iterator[dict[str, Any]]:
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            while b"\0" in self._buffer:
                message, _, self._buffer = self._buffer.partition(b"\0")
                yield json.loads(message)
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._answers], [], [], max(left, 0.0))
            assert ready, f"no answer of the browser within {ANSWER_SECONDS:g} s"
            read = os.read(self._answers, READ_BYTES)
            if not read:
                return
            self._buffer += read

    def _note(self, message: dict[str, Any]) -> None:
        said = message.get("params", {})
        match message.get("method"):
            case "Page.loadEventFired":
                self._loads += 1
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(said["exceptionDetails"]))
            case "Log.entryAdded":
                entry = said["entry"]
                self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
            case "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(said["args"]))

    def go(self, url: str) -> None:
        """Open a page and wait until it is there."""
        before = self._loads
        failed = self.tell("Page.navigate", url=url).get("errorText")
        assert not failed, f"{url}: {failed}"
        messages = self._messages()
        while self._loads == before:
            self._note(next(messages))

    def ask(self, script: str) -> Any:
        """Evaluate JavaScript in the page: its value, once it is there."""
        found = self.tell(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def text(self, selector: str) -> str:
        """Read what a person would of the first element that matches."""
        found = self.ask(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")
        assert found is not None, f"{selector} is not in the page"
        return str(found)

    def type(self, selector: str, text: str) -> None:
        """Type into a field."""
        self.ask(f"document.querySelector({json.dumps(selector)}).focus()")
        self.tell("Input.insertText", text=text)

    def press(self, selector: str) -> None:
        """Press a button."""
        self.ask(f"document.querySelector({json.dumps(selector)}).click()")

    def picture(self, path: Path) -> None:
        """Take a picture of the whole page."""
        taken = self.tell("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))
