"""A compiled program as text: regions, buffers, bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gradcli.columns.compiler.executor import Executor, RegionStep, WholeStep
from gradcli.transforms.tracing.numpy_program import Operation, live, operands


def size_text(count: float) -> str:
    """A number of bytes, readable."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def shape_text(o: Operation) -> str:
    """`float64[3, 4]`."""
    return f"{o.dtype.name}[{', '.join(map(str, o.shape))}]"


def _word(o: Operation) -> str:
    function = o.function
    name = getattr(function, "__name__", "") or str(function)
    if name == "reduce":
        name = f"{function.__self__.__name__}.{name}"
    return {"add_reduce": "sum", "maximum.reduce": "max", "minimum.reduce": "min"}.get(name, name)


def _bytes(operations: Iterable[Operation]) -> int:
    return sum(o.size * o.dtype.itemsize for o in operations)


def straight_text(outputs: Sequence[Operation], native: bool = False) -> list[str]:
    """The listing of a straight-line program."""
    count = sum(o.function is not None for o in live(outputs))
    s = "" if count == 1 else "s"
    if native:
        return [f"one C function: {count} operation{s}"]
    return [f"straight line: {count} operation{s} on whole arrays"]


def executor_text(executor: Executor, roles: Mapping[int, str]) -> list[str]:
    """The listing of a program that runs by blocks: one line a step."""
    lines = []
    for number, step in enumerate(executor.steps, 1):
        if isinstance(step, WholeStep):
            o = step.op
            given = ", ".join(_name(a, roles) for a in operands(o.args))
            role = f" = {roles[o.index]}" if o.index in roles else ""
            lines.append(f"{number}. {_word(o)}({given}) -> {shape_text(o)}{role}")
        else:
            lines += _region_lines(number, step, executor.threads, roles)
    inputs, results = _bytes(executor.inputs), _bytes(executor.outputs)
    lines.append(
        f"memory: inputs {size_text(inputs)}, results {size_text(results)}, peak "
        f"{size_text(peak(executor))}"
    )
    return lines


def _region_lines(
    number: int, step: RegionStep, threads: int, roles: Mapping[int, str]
) -> list[str]:
    region, kernel = step.region, step.kernel
    unit = "elements" if region.flat else "rows"
    used = threads if step.is_threaded() else 1
    used = min(used, len(step.blocks))
    s, t = "" if len(step.blocks) == 1 else "s", "" if used == 1 else "s"
    native = f", {kernel.native} operations as C" if kernel.native else ""
    lines = [
        f"{number}. region of {len(region.body)} operations over {region.rows} {unit}: "
        f"{len(step.blocks)} block{s} of up to {step.most}, {used} thread{t}{native}",
    ]
    count = len(kernel.buffers)
    buffers = f"{count} buffer{'' if count == 1 else 's'}"
    lines.append(f"   {buffers}, {size_text(step.buffer_bytes())} a thread")
    words = " ".join(_word(o) for o in region.body)
    lines.append(f"   {words}" if len(words) < 200 else f"   {words[:196]} ...")
    made = [f"{_name(o, roles)}: {shape_text(o)}" for o in region.sinks]
    lines.append(f"   makes {', '.join(made)}")
    return lines


def _name(o: Operation, roles: Mapping[int, str]) -> str:
    if o.index in roles:
        return roles[o.index]
    if o.kind == "constant" and not o.shape:
        return str(o.args[0])
    return o.name or f"v{o.index}"


def peak(executor: Executor) -> int:
    """Peak memory in bytes: inputs, constants, values kept between steps, and buffers."""
    # What the executor would hold, step by step: results are counted from the step that makes them to the
    # one after which nobody reads them; buffers of a region for each thread, while it runs. Inputs are
    # the caller's and are counted throughout.
    operations: dict[int, Operation] = {o.index: o for o in executor.schedule.order}
    always = _bytes(o for o in executor.schedule.order if o.kind == "constant")
    always += _bytes(executor.inputs)
    held: dict[int, int] = {}
    most = 0
    inputs = {o.index for o in executor.inputs}
    for step, dying in zip(executor.steps, executor.dying, strict=True):
        extra = 0
        made: list[Operation]
        if isinstance(step, RegionStep):
            made = step.region.sinks
            extra = step.buffer_bytes() * (executor.threads if step.is_threaded() else 1)
        else:
            made = [] if step.op.kind == "view" else [step.op]
        for o in made:
            held[o.index] = _bytes([o])
        most = max(most, sum(held.values()) + extra)
        for index in dying:
            if index not in inputs and index in operations:
                held.pop(index, None)
    return always + most


def described(names: Mapping[str, Operation], lines: Sequence[str], title: str) -> str:
    """A compiled program under its title and the shapes that it is for."""
    shapes = ", ".join(f"{n}: {shape_text(o)}" for n, o in names.items())
    return "\n".join([f"{title}  {shapes}".rstrip(), *[f"  {line}" for line in lines]])


def reason_text(reason: Any) -> list[str]:
    """Why there is no compiled program, and what would be one."""
    lines = [f"no plan: {reason}; every call runs on the tape"]
    if "numbers" in f"{reason}" and "random" not in f"{reason}":
        lines.append(
            "(what is compiled: np.where(condition, a, b) in place of `if`, max and min; np.stack([…]) "
            "in place of an array that is filled)"
        )
    return lines


__all__ = ["described", "executor_text", "peak", "reason_text", "size_text", "straight_text"]
