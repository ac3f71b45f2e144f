"""What the tests of graphs share: small graphs of fakes, inspected."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
