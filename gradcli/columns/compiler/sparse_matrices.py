"""Jacobians and Hessians of compiled functions without their zeros."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.core.tensor import Tensor
from gradcli.transforms import coloured
from gradcli.transforms.batched_passes import Sparse
from gradcli.transforms.grad import grad
from gradcli.transforms.tracing.numpy_tracer import NumpyTracer, Untraceable, trace_numpy

if TYPE_CHECKING:
    from gradcli.columns.compiler.compiled_function import CompiledProgram

Compiler = Callable[[NumpyTracer], "CompiledProgram"]


class SparseProgram:
    """The elements of a matrix of derivatives that may differ from zero, for inputs of certain shapes.

    shape: the value's, then the variable's. indices: of the elements, a row for each. colours: how many
    directions tell them. direct: the program as one C function, or None.
    """

    __slots__ = ("colours", "direct", "indices", "run", "shape")

    def __init__(
        self,
        function: Callable[..., Any],
        variables: Mapping[str, Any],
        by: str,
        second: bool,
        compiler: Compiler,
    ) -> None:
        """by: the variable. second: the Hessian of a scalar, else the Jacobian.

        Raises Untraceable, and RuntimeError where the value is no real tensor or the matrix has no pattern.
        """
        # The program that is traced computes the elements of the matrix themselves: a push for each
        # colour, and the indexing that takes elements out of the pushed directions. So after compiling,
        # nothing of the colouring is left at run time, and the pattern is what the one traced run found.
        plans: list[coloured.Entries] = []

        def entries(**tensors: Tensor) -> Tensor:
            def of(x: Tensor) -> Any:
                return function(**{**tensors, by: x})

            found = coloured.entries(grad(of) if second else of, tensors[by], second)
            plans.append(found)
            return found.values

        trace = trace_numpy(entries, variables, backward=False)
        (made,) = plans
        self.shape, self.colours = made.shape, len(made.plan.seeds)
        self.indices = _indices(made)
        program = compiler(trace)
        self.run, self.direct = program.run, program.direct

    def __call__(self, *arrays: Any) -> Sparse:
        return Sparse(self.shape, self.indices, self.run(*arrays)[0])


def _indices(found: coloured.Entries) -> Any:
    rows, columns = found.plan.rows, found.plan.columns
    outer, inner = found.shape[: found.split], found.shape[found.split :]
    return np.stack([*np.unravel_index(rows, outer), *np.unravel_index(columns, inner)], -1)


__all__ = ["SparseProgram", "Untraceable"]
