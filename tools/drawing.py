"""Drawings as SVG text, for the scripts that draw for the documents: same calls, same text."""

from __future__ import annotations

from html import escape

INK, FAINT, PAPER, LINE = "#1c2733", "#5c6b7a", "#ffffff", "#c3ccd6"
# Told apart by those who see few colours, too; each has its label beside it all the same.
COLOURS = ("#2f6fb0", "#d9822b", "#2e8b6f", "#a4549b", "#8a7a1f", "#6b7785")
FONT = "ui-sans-serif, system-ui, sans-serif"


class Drawing:
    """Shapes on white paper, which is readable on a dark page too. One caller at a time."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._shapes = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'role="img" font-family="{FONT}">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>',
        ]

    def text(
        self, x: float, y: float, text: str, *, size: int = 14, fill: str = INK,
        anchor: str = "start", bold: bool = False,
    ) -> None:  # fmt: skip
        weight = ' font-weight="600"' if bold else ""
        self._shapes.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"'
            f"{weight}>{escape(text)}</text>"
        )

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, *, stroke: str = "none",
        label: str = "", label_fill: str = PAPER, dashed: bool = False,
    ) -> None:  # fmt: skip
        """label: in the middle of the box."""
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        self._shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" '
            f'fill="{fill}" stroke="{stroke}"{dashes}/>'
        )
        if label:
            self.text(x + width / 2, y + height / 2 + 5, label, fill=label_fill, anchor="middle")

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, stroke: str = LINE, width: float = 1.5
    ) -> None:
        self._shapes.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{stroke}" '
            f'stroke-width="{width:g}"/>'
        )

    def pointer(self, x: float, y: float, *, fill: str = INK) -> None:
        """A triangle whose tip points down at the place."""
        self._shapes.append(
            f'<path d="M{x - 6:g} {y - 10:g} h12 l-6 10 z" fill="{fill}" stroke="none"/>'
        )

    def svg(self) -> str:
        return "\n".join([*self._shapes, "</svg>", ""])
