"""Graphs of fakes as the renderers get them."""

from __future__ import annotations

from typing import Any

import fakes

from gradcli.graphs.forward import known_values
from gradcli.graphs.records import Describer, Record, records, walk
from gradcli.graphs.tree import Tree
from gradcli.graphs.tree_lines import Options


def describer(name: str) -> Describer:
    root, source = fakes.build(name)
    return Describer(walk([root]), source or None)


def described(name: str) -> list[Record]:
    return list(records(describer(name)))


def tree(name: str, **options: Any) -> Tree:
    options.setdefault("default_dtype", "float64")
    return tree_of(describer(name), **options)


def tree_of(known: Describer, **options: Any) -> Tree:
    options.setdefault("default_dtype", "float64")
    return Tree(known, known_values(known.skeleton), Options(**options))
