"""Write the examples' outputs anew: python -m tests.examples.record [NAME...]; read the difference."""

from __future__ import annotations

import sys

from tests.examples.running import PROGRAMS, SCRIPTS, output, stored

if __name__ == "__main__":
    wanted = sys.argv[1:]
    for path in [*SCRIPTS, *PROGRAMS]:
        if not wanted or path.stem in wanted:
            text = output(path)
            if "fault in gradcli" in text or "not found" in text:
                raise SystemExit(f"{path.name}: {text}")
            stored(path).write_text(text, encoding="utf-8")
            print(path.name)
