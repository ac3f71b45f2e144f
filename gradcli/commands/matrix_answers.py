"""The tape's answers about matrices: Jacobians, Hessians, derivatives along a direction.

The program runs, is looked at, and runs again in `transforms.removable`, whose power series have what the
tape misses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.array_output import TABLES
from gradcli.commands.command_errors import usage
from gradcli.commands.progress import Bar
from gradcli.commands.question import ALONG, HESSIAN, JACOBIAN, Answer, Question
from gradcli.commands.request_evaluation import (
    Look,
    again,
    cannot_require_grad,
    check_scalar,
    kinks_of,
    note_of_random_kinks,
    read_variables,
    run,
    tell,
)
from gradcli.commands.vector_option import (
    no_direction,
    nothing_to_differentiate_by,
    vectors_of,
)
from gradcli.language.located_errors import LanguageError
from gradcli.language.no_derivative import without_derivative

if TYPE_CHECKING:
    from gradcli.transforms.removable import Remarks

Found = Mapping[str, Any]  # results by the names of their variables
Lines = Sequence[tuple[str | None, Any]]


class Again:
    """A run of the program whose value is to be differentiated by running it again.

    wanted: the variables that require grad. tensors: all variables, for the program to run again as it
    ran before. Raises LanguageError where the value has no such derivative.
    """

    def __init__(self, question: Question) -> None:
        from gradcli.transforms.traced_matrices import Start

        self.like, self.rules = question.like, _rules(question.like)
        request = question.request
        variables, integers = read_variables(question.ctx, request)
        self.start, self.asked, self.request = Start(), question.asked, request
        with Look() as self.look:
            self.evaluation = evaluation = run(request, variables, integers)
        self.value = evaluation.tensor(question.asked)
        if question.asked == HESSIAN:
            check_scalar(evaluation, "gradcli jacobian")
            note_of_random_kinks(evaluation, self.look)
        self.tensors = evaluation.tensors()
        self.wanted = [n for n, t in evaluation.variables.items() if t.requires_grad]
        if not self.wanted:
            for name in evaluation.integers:
                raise cannot_require_grad(request, name, evaluation.variables[name])
            raise nothing_to_differentiate_by()
        if (error := without_derivative(request.program, self.value, question.asked)) is not None:
            raise error

    def find(self, derivative: Callable[..., Any], by: Any, *how: Any) -> Any:
        """The derivative of this run, for which the program runs once more."""
        with Bar(None, ""), self.rules:
            try:
                return again(self.evaluation, self.start, derivative, by, *how)
            except MemoryError as error:
                if self.asked == ALONG:
                    raise
                raise _too_large(error) from error

    def filled(self, results: Found, remarks: Remarks) -> Found:
        """Results that are not finite, from the formula that `diff` proves."""
        if self.like is not None or not (remarks.open or remarks.undecided):
            return {}
        from gradcli.commands.formula_values import fill

        program, order = self.request.program, 2 if self.asked == HESSIAN else 1
        return fill(
            results, remarks, program, self.tensors, self.wanted, self.request.loaded, order
        )

    def answer(self, lines: Lines, **keys: Any) -> Answer:
        """The answer with these lines, and with these keys in JSON."""
        order = 2 if self.asked == HESSIAN else 1
        if self.request.style.form in ("text", "plain"):
            lines = [result for line in lines for result in _elements(*line)]
        found = Answer(self.request, lines, lambda p: _to_json(keys, p), self.value)
        found.kinks = kinks_of(self.evaluation, self.look, order=order, rows=True)
        return found


def jacobian(question: Question) -> Answer:
    """The Jacobian by every variable, or its product with a vector."""
    from gradcli.transforms import removable, traced_matrices

    mode = None if question.mode == "auto" else question.mode
    _check_sparse(question, "--mode forward" * (mode == "forward"))
    question.raise_on_anomalies(1)
    run = Again(question)
    if question.vector:
        vectors = _vectors(question.vector, run)
        (_, product), remarks = run.find(removable.jvp, vectors)
        tell(remarks)
        return run.answer([("jvp", product)], jvp=product, wrt=_each("vector", vectors))
    if question.sparse:
        found = run.find(traced_matrices.sparse_jacobian, run.wanted)
        tell(removable.noted({f"{n}.jacobian": a for n, a in found.by.items()}))
    else:
        found, remarks = run.find(removable.jacobian, run.wanted, mode)
        filled = run.filled({f"{n}.jacobian": a for n, a in found.by.items()}, remarks)
        found.by.update((n.rpartition(".")[0], a) for n, a in filled.items())
        tell(remarks)
    _note_slow(found.slow)
    lines = [(f"{n}.jacobian", j) for n, j in found.by.items()]
    return run.answer(lines, wrt=_each("jacobian", found.by), method=found.method)


def hessian(question: Question) -> Answer:
    """The Hessian by every pair of variables, or its product with a vector."""
    from gradcli.transforms import removable

    _check_sparse(question)
    question.raise_on_anomalies(2)
    run = Again(question)
    if question.vector:
        products, remarks = run.find(removable.hvp, _vectors(question.vector, run))
        tell(remarks)
        lines = [(f"{n}.hvp", v) for n, v in products.items()]
        # hvp: the name of 0.1.0
        return run.answer(lines, wrt=_each("hvp", products), hvp=products)
    found, remarks = run.find(removable.hessian, run.wanted, question.sparse)
    several = len(found) > 1
    called = {
        f"{n}.{m}.hessian" if several else f"{n}.hessian": (n, m) for n in found for m in found
    }
    if not question.sparse:
        filled = run.filled({name: found[n].by[m] for name, (n, m) in called.items()}, remarks)
        for name, block in filled.items():
            n, m = called[name]
            found[n].by[m] = block
        _make_symmetric({n: row.by for n, row in found.items()})
    tell(remarks)
    _note_slow(name for row in found.values() for name in row.slow)
    blocks = {n: row.by for n, row in found.items()}  # the name of 0.1.0
    whole = several and not question.sparse and run.request.style.form in TABLES
    each = [(name, blocks[n][m]) for name, (n, m) in called.items()]
    lines = _whole(blocks, run.tensors) if whole else each
    return run.answer(lines, wrt=_each("hessian", blocks), blocks=blocks)


def _make_symmetric(blocks: dict[str, dict[str, Any]]) -> None:
    """Give both blocks of a pair of variables the same digits, where they differ by rounding alone.

    By x and then by y the same number is computed in another order than by y and then by x.
    """
    import numpy as np

    for k, n in enumerate(blocks):
        for m in list(blocks)[k:]:
            one, two = np.asarray(blocks[n][m]), np.asarray(blocks[m][n])
            own = np.ndim(blocks[n][n]) // 2
            order = [*range(own, one.ndim), *range(own)]
            turned = one.transpose(order)
            if one.dtype.kind not in "fc" or turned.shape != two.shape:
                continue
            close = 64 * np.finfo(one.dtype).eps
            largest = np.max(np.abs(one), initial=0.0, where=np.isfinite(one))
            if not np.allclose(turned, two, close, close * float(largest), equal_nan=True):
                continue
            if n == m:
                size = int(np.prod(one.shape[:own]))
                upper = np.triu(np.ones((size, size), bool)).reshape(one.shape)
                blocks[n][n] = np.where(upper, one, turned)
            else:
                blocks[m][n] = turned.copy()


def _whole(blocks: Mapping[str, Found], tensors: Found) -> Lines:
    """The blocks as one matrix: a row and a column for each element of the variables, in their order."""
    import numpy as np

    sizes = {n: tensors[n].numel() for n in blocks}
    made = []
    for m in blocks:
        own = [output.as_array(blocks[n][m]).reshape(sizes[n], sizes[m]) for n in blocks]
        column = np.concatenate(own)
        made.append((f"{m}.hessian", column if tensors[m].shape else column[:, 0]))
    return made


def along(question: Question) -> Answer:
    """The derivative along a direction, in forward mode."""
    from gradcli.transforms import removable

    question.raise_on_anomalies(1)
    run = Again(question)
    if not question.vector:
        raise no_direction(run.wanted)
    vectors = _vectors(question.vector, run)
    (value, product), remarks = run.find(removable.jvp, vectors)
    tell(remarks)
    lines = [*[("value", value)] * question.value, ("jvp", product)]
    # vector: the name of 0.1.0
    return run.answer(lines, jvp=product, wrt=_each("vector", vectors), vector=vectors)


def _rules(word: str | None) -> AbstractContextManager[None]:
    """The rules of --like: PyTorch's as they are stated; those of others are known for gradients."""
    if word is None:
        return nullcontext()
    from gradcli.commands.kink_notes import Others

    others = Others(word)
    rules = others.rules()
    if isinstance(rules, nullcontext):
        hint = f"gradcli grad --like {word} has gradients"
        raise usage("--like: matrices and directions are available for PyTorch only", hint=hint)
    return rules


def _too_large(error: MemoryError) -> LanguageError:
    """A matrix that does not fit, with its size."""
    from gradcli.engine.system.budget import out_of_memory

    hint = "--sparse keeps only elements that are not zero; --vector computes the product with a vector"
    return LanguageError(out_of_memory(error), kind="memory", hint=hint, usage=False)


ANSWERS = {JACOBIAN: jacobian, HESSIAN: hessian, ALONG: along}


def _each(key: str, found: Found) -> dict[str, Found]:
    return {name: {key: value} for name, value in found.items()}


def _check_sparse(question: Question, other: str = "") -> None:
    """Refuse what --sparse cannot be used with: arrays, which have all elements, vectors, another mode."""
    style = question.request.style
    if not question.sparse:
        return
    if style.form in ("npy", "lines"):
        option = f"-o {style.path}" if style.path is not None else f"--{style.form}"
        hint = "--plain, --json, --csv and -o FILE.npz write the indices"
        raise usage(f"--sparse cannot be used with {option}", hint=hint)
    if question.vector or other:
        other = "--vector" if question.vector else other
        raise usage(f"--sparse cannot be used with {other}", hint="leave one of them out")


def _vectors(texts: Iterable[str], run: Again) -> Found:
    """The vectors of --vector, of their variables' shapes and dtypes."""
    return vectors_of(texts, run.wanted, run.tensors, run.request, run.evaluation.integers)


def _note_slow(names: Iterable[str]) -> None:
    """Say which operators ran entry by entry, where all could have been done at once."""
    for name in dict.fromkeys(names):
        output.note(f"{name} cannot take many seeds at once, so it ran once for each")


def _to_json(value: Any, precision: int | None) -> Any:
    """Dicts of values; of a sparse matrix its shape, the places of its elements, and they."""
    if isinstance(value, dict):
        return {name: _to_json(one, precision) for name, one in value.items()}
    if not output.is_sparse(value):
        return output.to_json(value, precision)
    values = output.to_json(value.values, precision)
    return {"shape": list(value.shape), "indices": value.indices.tolist(), "values": values}


def _elements(name: str | None, found: Any) -> list[tuple[str | None, Any]]:
    """The elements of a sparse matrix as results of their own: `x.jacobian[0, 1]`; others as they are."""
    if not output.is_sparse(found):
        return [(name, found)]
    if not len(found.values):
        output.note(f"{name}: every element is zero")
    return [
        (f"{name}[{', '.join(map(str, place))}]" if place else name, value)
        for place, value in zip(found.indices.tolist(), found.values, strict=True)
    ]
