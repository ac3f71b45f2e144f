"""The page in a real browser: nothing on the console, clicks, keys, steps, folding, size."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="chromium and chromedriver are not installed"
    ),
]
