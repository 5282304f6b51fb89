"""The elementwise ops of the table as functions. Docs are made from the rows, types are in functions.pyi."""

from pygrad.ops import FUNCTIONS

globals().update(FUNCTIONS)

__all__ = sorted(FUNCTIONS)
