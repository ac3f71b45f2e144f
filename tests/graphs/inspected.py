"""Graphs of fakes as the renderers get them."""

from __future__ import annotations

from typing import Any

import fakes

from gradcli.graphs.pictures import Picture, PictureOptions
from gradcli.graphs.traversal import Describer, Record, records, walk
from gradcli.graphs.tree_format import Tree
from gradcli.graphs.tree_lines import TreeOptions


def describer(name: str) -> Describer:
    root, source = fakes.build(name)
    return Describer(walk([root]), source or None)


def picture(name: str, **options: Any) -> Picture:
    return picture_of(describer(name), fakes.build(name)[1], **options)


def picture_of(known: Describer, title: str | None = None, **options: Any) -> Picture:
    chosen = PictureOptions(default_dtype="float64", title=title, **options)
    return Picture(known, known.probe.known_values(known.skeleton), chosen)


def described(name: str) -> list[Record]:
    return list(records(describer(name)))


def tree(name: str, **options: Any) -> Tree:
    options.setdefault("default_dtype", "float64")
    return tree_of(describer(name), **options)


def tree_of(known: Describer, **options: Any) -> Tree:
    options.setdefault("default_dtype", "float64")
    return Tree(known, known.probe.known_values(known.skeleton), TreeOptions(**options))
