"""Programs compiled once: run again on new values, or over large arrays block by block."""

from __future__ import annotations

from gradcli.columns.compiler.compiled_function import CompiledFunction, compile
from gradcli.transforms.tracing.numpy_tracer import NumpyTracer, Untraceable, trace_numpy

__all__ = ["CompiledFunction", "NumpyTracer", "Untraceable", "compile", "trace_numpy"]
