"""Chromium driven through chromedriver's own protocol; nothing to install besides the two."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--hide-scrollbars",
)
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Up": "\ue013", "Down": "\ue015"}
KEYS |= {"Left": "\ue012", "Right": "\ue014", "Tab": "\ue004"}


class Browser:
    """One window; `with Browser() as browser:`."""

    def __init__(self, width: int = 1280, height: int = 800, *flags: str) -> None:
        self.profile = tempfile.mkdtemp()
        assert DRIVER is not None
        # Port 0: the system picks one, and chromedriver says which.
        self.process = subprocess.Popen(
            [DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.base = f"http://127.0.0.1:{self._port()}"
        arguments = [*FLAGS, f"--user-data-dir={self.profile}", f"--window-size={width},{height}"]
        chrome = {"binary": CHROMIUM, "args": [*arguments, *flags]}
        wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{made['sessionId']}"

    def _port(self) -> int:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "successfully on port" in line:
                return int(line.rstrip(".\n").rpartition(" ")[2])
        raise RuntimeError("chromedriver did not start")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *error: object) -> None:
        self._call("DELETE", self.session)
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.base + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def open(self, path: Path) -> None:
        """Load a file."""
        self._call("POST", f"{self.session}/url", {"url": path.as_uri()})

    def resize(self, width: int, height: int) -> None:
        """Give the page a window of so many pixels, however small."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        body = {"cmd": "Emulation.setDeviceMetricsOverride", "params": size}
        self._call("POST", f"{self.session}/goog/cdp/execute", body)

    def dark(self, dark: bool) -> None:
        """Prefer dark colours, or light ones."""
        media = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        body = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": [media]}}
        self._call("POST", f"{self.session}/goog/cdp/execute", body)

    def thumbnail(self, width: int, height: int, scale: float) -> bytes:
        """A small PNG of the window."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
        body = {"cmd": "Page.captureScreenshot", "params": {"clip": clip, "format": "png"}}
        found = self._call("POST", f"{self.session}/goog/cdp/execute", body)
        return base64.b64decode(found["data"])

    def open_at(self, path: Path, fragment: str) -> None:
        """Load a file at a place in it, from anew."""
        self._call("POST", f"{self.session}/url", {"url": "about:blank"})
        self._call("POST", f"{self.session}/url", {"url": path.as_uri() + fragment})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript; returns what it returns."""
        body = {"script": script, "args": list(arguments)}
        return self._call("POST", f"{self.session}/execute/sync", body)

    def find(self, selector: str) -> str:
        """The first element that a CSS selector matches."""
        body = {"using": "css selector", "value": selector}
        return str(self._call("POST", f"{self.session}/element", body)[ELEMENT])

    def click(self, selector: str) -> None:
        """Click where the element is, as a person would."""
        self._call("POST", f"{self.session}/element/{self.find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        """Type into a field; names of KEYS in angle brackets: "x<Enter>"."""
        for name, key in KEYS.items():
            text = text.replace(f"<{name}>", key)
        body = {"text": text}
        self._call("POST", f"{self.session}/element/{self.find(selector)}/value", body)

    def press(self, *keys: str) -> None:
        """Press keys wherever the focus is."""
        actions = [
            {"type": kind, "value": KEYS.get(key, key)}
            for key in keys
            for kind in ("keyDown", "keyUp")
        ]
        body = {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}
        self._call("POST", f"{self.session}/actions", body)

    def hover(self, selector: str) -> None:
        """Move the pointer over an element."""
        origin = {ELEMENT: self.find(selector)}
        move = {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": origin}
        pointer = {"type": "pointer", "id": "mouse", "actions": [move]}
        self._call("POST", f"{self.session}/actions", {"actions": [pointer]})

    def text(self, selector: str) -> str:
        """The text of an element, its white space collapsed."""
        found = self.run("return document.querySelector(arguments[0]).textContent", selector)
        return " ".join(str(found).split())

    def count(self, selector: str) -> int:
        """How many elements match."""
        return int(self.run("return document.querySelectorAll(arguments[0]).length", selector))

    def wait(self, condition: str, seconds: float = 10) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.run(f"return Boolean({condition})"):
            assert time.monotonic() < end, f"still not: {condition}"
            time.sleep(0.05)

    def console(self) -> list[str]:
        """What the page, or the browser about it, has written on the console."""
        return [
            entry["message"]
            for entry in self._call("POST", f"{self.session}/se/log", {"type": "browser"})
        ]
