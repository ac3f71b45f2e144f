"""Record torch.nn's modules, torch.optim's steps and schedules, and the order of batches.

python tests/golden/record_modules.py writes modules.json and registrations.json, with the version of torch
(2.13.0, CPU).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import torch.utils.data

sys.path.insert(0, str(Path(__file__).parent))
from module_cases import (
    CASES,
    GRAPHS,
    HOOKS,
    OPTIMIZERS,
    PROGRAMS,
    REGISTRATIONS,
    SCHEDULES,
    answer,
    batches,
    hooked,
    nodes,
    rates,
    registered,
    told,
    trained,
)

found = {
    "torch": torch.__version__.partition("+")[0],
    "modules": {f"{m} <- {i}": answer(torch, m, i) for m, i in CASES},
    "nodes": {f"{m} <- {i}": nodes(torch, m, i) for m, i in GRAPHS},
    "optimizers": {o: trained(torch, o) for o in OPTIMIZERS},
    "schedules": {s: rates(torch, s) for s in SCHEDULES},
    "batches": batches(torch),
    "programs": {program: told(torch, program) for program in PROGRAMS},
    "hooks": {program: hooked(torch, program) for program in HOOKS},
}
Path(__file__).with_name("modules.json").write_text(json.dumps(found))
registrations = {
    "torch": found["torch"],
    "answers": [registered(torch, start, change) for start, change in REGISTRATIONS],
}
Path(__file__).with_name("registrations.json").write_text(
    json.dumps(registrations, indent=0) + "\n"
)
