"""Programs compiled once: run again on new values, or over large arrays block by block."""

from __future__ import annotations

from gradcli.plan.compiled import Compiled, compile
from gradcli.plan.record import Recording, Untraceable, record

__all__ = ["Compiled", "Recording", "Untraceable", "compile", "record"]
