"""Record what torch answers to the programs of `level_programs`.

python -m tests.transforms.record_levels
"""

from __future__ import annotations

import json
import warnings

import torch

from tests.transforms.level_programs import ANSWERS, combinations, programs, value


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)
    found = {name: value(text, torch) for name, text in (programs() | combinations()).items()}
    ANSWERS.write_text(json.dumps(found, indent=0) + "\n")


if __name__ == "__main__":
    main()
