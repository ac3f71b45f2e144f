"""`gradcli diff EXPR`: the derivative as an expression of the same language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gradcli.commands import output
from gradcli.commands.errors import refused, usage
from gradcli.commands.options import Request, expression_options
from gradcli.commands.points import (
    OpenCommand,
    Point,
    note_guesses,
    point,
    shape_option,
    wanted_names,
)

if TYPE_CHECKING:
    from gradcli.calculus.derivative import Derivatives

FORMATS = ("text", "latex", "python", "numpy", "torch", "json")
LONGEST = 20_000  # characters of a derivative that is printed without names for its shared parts


@click.command("diff", cls=OpenCommand, epilog='Example: gradcli diff "sin(x)*y" --wrt x')
@expression_options
@shape_option
@click.option(
    "--order", metavar="N", type=click.IntRange(1, 20), default=1, help="Differentiate N times."
)
@click.option("--at", "show_value", is_flag=True, help="Print its value at the given point too.")
@click.option("--cse", is_flag=True, help="Give names to what occurs more than once.")
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    type=click.Choice(FORMATS),
    default="text",
    help=f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}.",
)
@click.pass_context
def command(
    ctx: click.Context,
    request: Request,
    shapes: tuple[str, ...],
    order: int,
    show_value: bool,
    cse: bool,
    form: str,
) -> None:
    """Print the derivative of EXPR as an expression of the same language.

    A variable x of EXPR is a scalar, unless --x VALUE or --shape x=3,4 says otherwise. With several
    variables each has its line, `x.grad = …`.
    """
    from gradcli.calculus.derivative import differentiate
    from gradcli.calculus.reading import NoExpression

    if request.style.form == "json":
        form = "json"
    where = point(ctx, request, shapes)
    wanted = wanted_names(request, where)
    if show_value and (missing := [n for n in where.arrays if n not in where.given]):
        raise usage(f"--at: no value for {missing[0]}", hint=f"add --{missing[0]} VALUE")
    try:
        found = differentiate(
            request.program,
            where.arrays,
            wanted,
            order=order,
            follow=not set(where.arrays) - set(where.given),
            names=request.loaded,
        )
    except NoExpression as error:
        raise refused(
            error, source=request.source, hint="gradcli grad has its value, without an expression"
        ) from error
    _notes(found, where)
    values = _values(request, where, found) if show_value else {}
    if form == "json":
        _write_json(request, found, where, values)
    elif form == "text":
        _write_text(request, found, values, cse)
    elif form == "latex":
        from gradcli.calculus.latex import to_latex

        _write_lines(request, {n: to_latex(e) for n, e in found.by.items()}, {})
    else:
        from gradcli.calculus.code import to_code

        try:
            output.write(to_code(found, form))
        except NoExpression as error:
            raise refused(error, source=request.source) from error


def _notes(found: Derivatives, where: Point) -> None:
    note_guesses(where)
    if found.branched:
        output.note(
            "the program asks for the truth of a value: this holds on the path of these values"
        )
    if (
        found.shape
        and found.value.op == "call"
        and found.value.data[0] in ("matmul", "stack", "cat")
    ):
        output.note("the value is no scalar: this is the derivative of its sum")


def _values(request: Request, where: Point, found: Derivatives) -> dict[str, Any]:
    """The derivatives at the given point, by running what is printed."""
    from gradcli import language
    from gradcli.calculus.text import to_text

    return {
        n: language.run(language.parse(to_text(e)), {**request.loaded, **where.tensors}).value
        for n, e in found.by.items()
    }


def _write_text(request: Request, found: Derivatives, values: dict[str, Any], cse: bool) -> None:
    from gradcli.calculus.sharing import shared_parts, size_of
    from gradcli.calculus.text import Printer

    roots = list(found.by.values())
    if not cse and max(map(size_of, roots)) > LONGEST:
        output.note("this is long: what occurs more than once has a name, as with --cse")
        cse = True
    names: dict[int, str] = {}
    lines = []
    if cse:
        parts = shared_parts(roots, taken=found.variables)
        for word, part in parts:
            lines.append(f"{word} = {Printer(names).text(part)}")
            names[id(part)] = word
    if lines:
        output.write("\n".join(lines))
    printer = Printer(names)
    texts = {n: names.get(id(e)) or printer.text(e) for n, e in found.by.items()}
    _write_lines(request, texts, values)


def _write_lines(request: Request, texts: dict[str, str], values: dict[str, Any]) -> None:
    """A line a variable; without its name where there is only one."""
    style = request.style
    lines = []
    for name, text in texts.items():
        if style.form == "plain":
            fields = [name, text] if len(texts) > 1 else [text]
            if name in values:
                fields.append(output.to_plain(values[name], style.precision))
            lines.append("\t".join(fields))
            continue
        if name in values:
            text += f" = {output.to_text(values[name], style)}"
        lines.append(output.labelled(f"{name}.grad" if len(texts) > 1 else None, text, style))
    output.write("\n".join(lines), styled=style.form != "plain")


def _write_json(request: Request, found: Derivatives, where: Point, values: dict[str, Any]) -> None:
    from gradcli.calculus.text import to_text

    made: dict[str, Any] = {
        "expression": request.source,
        "derivatives": {n: to_text(e) for n, e in found.by.items()},
        "shapes": {n: list(a.shape) for n, a in where.arrays.items()},
    }
    if values:
        precision = request.style.precision
        made["values"] = {n: output.to_json(v, precision) for n, v in values.items()}
    output.write_json(made)
