"""Programs compiled once: run again on new values, or over large arrays block by block."""

from __future__ import annotations

from gradcli.compiler.compiled_function import Compiled, compile
from gradcli.tracing.numpy_tracer import NumpyTracer, Untraceable, trace_numpy

__all__ = ["Compiled", "NumpyTracer", "Untraceable", "compile", "trace_numpy"]
