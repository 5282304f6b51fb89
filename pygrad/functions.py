"""The elementwise ops of the table as functions. Their docs are made from the rows; their types are in functions.pyi."""

from pygrad.ops import FUNCTIONS

globals().update(FUNCTIONS)

__all__ = sorted(FUNCTIONS)
