"""Record how results lie in memory: `python record_strides.py` where torch and gradcli are.

Each sample of the operator table, and the same of more dimensions, of operands that lie in memory in other
ways than row by row. strides.json holds the strides of its results for each of LAYOUTS.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from golden.record_samples import texts  # noqa: E402
from sampling import SEED, take_apart, tensors  # noqa: E402

RECORDED = HERE / "strides.json"


def _reversed(x: Any) -> Any:
    back = list(range(x.ndim))[::-1]
    return x.permute(back).contiguous().permute(back)


def _turned(x: Any) -> Any:
    return x.transpose(-1, -2).contiguous().transpose(-1, -2)


def _expanded(x: Any) -> Any:
    return x[:1].expand(x.shape) if x.shape[0] > 1 else x


def _sliced(x: Any) -> Any:
    return x.repeat_interleave(2, -1)[..., ::2]


def _last(x: Any) -> Any:
    return x.movedim(1, -1).contiguous().movedim(-1, 1)


# By name: what lays out an operand of two or more dimensions, and which of them is laid out so.
LAYOUTS: dict[str, tuple[Callable[[Any], Any], int | None]] = {
    "by row": (lambda x: x, None),
    "reversed": (_reversed, None),
    "turned": (_turned, None),
    "expanded": (_expanded, None),
    "sliced": (_sliced, None),
    "channels last": (_last, None),
    "first turned": (_turned, 0),
    "second turned": (_turned, 1),
    "first expanded": (_expanded, 0),
}
# Whose memory is what was there before, or a number of another kind.
_LEFT = ("empty", "set_", "resize_", "as_strided", "new_empty")


def calls() -> list[str]:
    """The samples, and those that are made of them with more dimensions."""
    own = [text for text in texts() if not text.startswith(_LEFT) and "empty" not in text]
    wider = [re.sub(r"\b(randn?)\(2, ?3\)", r"\1(2,3,4)", text) for text in own]
    broad = [re.sub(r"\b(randn?)\(3\)", r"\1(2,3)", text) for text in own]
    return sorted({*own, *wider, *broad})


def answer(text: str, layout: str, module: Any) -> str | None:
    """The strides of a sample's results; None where no operand has dimensions to lay out, or no result."""
    lay, only = LAYOUTS[layout]
    before = module.get_default_dtype()
    module.set_default_dtype(module.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sample = take_apart(text, module)
            deep = [i for i, leaf in enumerate(sample.leaves) if leaf.ndim > 1]
            if only is not None:
                deep = deep[only : only + 1] if len(deep) > 1 else []
            leaves = [lay(x) if i in deep else x for i, x in enumerate(sample.leaves)]
            if layout != "by row" and all(
                x.stride() == y.stride() for x, y in zip(leaves, sample.leaves, strict=True)
            ):
                return None
            module.manual_seed(SEED)
            found = tensors(sample.function(*leaves), module.Tensor)
            if all(t.ndim < 2 for t in found):
                return None
            return " ".join(",".join(map(str, t.stride())) for t in found)
    finally:
        module.set_default_dtype(before)


def main() -> None:
    import torch

    rows, count = [], 0
    for text in calls():
        found = {}
        for layout in LAYOUTS:
            try:
                strides = answer(text, layout, torch)
            except Exception:  # what is no sample with a dimension more, or shares memory
                continue
            if strides is not None:
                found[layout] = strides
        if found:
            count += len(found)
            rows.append(f"{json.dumps(text)}: {json.dumps(found)}")
    RECORDED.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    print(f"{count} results of {len(rows)} calls")


if __name__ == "__main__":
    main()
