"""Write index.py, the module of each name in the table: `python -m gradcli.engine.registry.make_index`.

With the index, a command that uses one function imports one family, not all.
"""

from __future__ import annotations

from pathlib import Path

from gradcli.engine.registry import table


def text() -> str:
    """The source of index.py."""
    modules, methods, inplace, whole, attributes = table.collect()
    homes: dict[str, list[str]] = {}
    for name, module in sorted(modules.items()):
        homes.setdefault(module, []).append(name)
    lines = [
        '"""Where each name of the table is. Made by make_index; do not edit."""',
        "",
        "HOMES = {",
        *(f"    {module!r}: {' '.join(names)!r}," for module, names in sorted(homes.items())),
        "}",
        "MODULES = {name: module for module, names in HOMES.items() for name in names.split()}",
        f"METHODS = frozenset({' '.join(sorted(methods))!r}.split())",
        f"INPLACE = frozenset({' '.join(sorted(inplace))!r}.split())",
        f"WHOLE = frozenset({' '.join(sorted(whole))!r}.split())",
        f"ATTRIBUTES = {attributes!r}",
        f"PROPERTIES = frozenset({' '.join(sorted(table.PROPERTIES))!r}.split())",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    Path(__file__).with_name("index.py").write_text(text())
