"""The errors of pygrad: each is also the builtin that a user would expect. Knows nothing else of the package."""

from __future__ import annotations

__all__ = ["AnomalyError", "CaptureError", "CompilerError", "GradcheckError", "GraphError"]


class GraphError(RuntimeError):
    """The graph cannot be differentiated as asked: released, written to since, or without anything that requires it."""


class AnomalyError(ArithmeticError):
    """Under detect_anomaly(): the op at which the first nan or inf appeared, forward or backward."""


class CaptureError(TypeError):
    """A function that is to be replayed does what a replay could not do again: it takes a number out of its graph."""


class CompilerError(RuntimeError):
    """A program cannot be compiled: there is no C compiler, or it failed; the message has what it said."""


class GradcheckError(AssertionError):
    """gradcheck: a gradient differs from the numerical one by more than the tolerance."""
