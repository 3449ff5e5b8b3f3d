"""The plots of the book: one finding each, drawn in the page's own colours.

Every function returns a :class:`Figure`: an inline SVG whose alt text and table of
numbers come from the data that were drawn. Needs matplotlib.
"""

from ._draw import Figure

__all__ = ["Figure"]
