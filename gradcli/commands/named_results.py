"""Results of several variables."""

from __future__ import annotations

from typing import Any


class ByName(dict[str, Any]):
    """Results by the names of their variables: a dict, which a notebook shows as what they are."""

    def _repr_html_(self) -> str:
        from html import escape

        rows = []
        for name, value in self.items():
            show = getattr(value, "_repr_html_", None) or getattr(value, "_repr_latex_", None)
            text = (show and show()) or f"<code>{escape(repr(value))}</code>"
            rows.append(f"<tr><th>{escape(name)}</th><td style='text-align:left'>{text}</td></tr>")
        return f"<table>{''.join(rows)}</table>"


__all__ = ["ByName"]
