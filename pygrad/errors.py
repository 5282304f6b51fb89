"""The errors of pygrad: each is also the builtin that a user would expect. Knows nothing else of the package."""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["AnomalyError", "ExtraMissingError", "GradcheckError", "GraphError"]


class GraphError(RuntimeError):
    """The graph cannot be differentiated as asked: released, written to since, or without anything that requires it."""


class AnomalyError(ArithmeticError):
    """Under detect_anomaly(): the op at which the first nan or inf appeared, forward or backward."""


class GradcheckError(AssertionError):
    """gradcheck: a gradient differs from the numerical one by more than the tolerance."""


class ExtraMissingError(ImportError):
    """A package that pygrad does not require at run time is missing; the text names the extra that installs it."""


def require(module: str, extra: str) -> ModuleType:
    """Imports `module`, or raises ExtraMissingError that names the extra.

    >>> require("math", "scipy").pi > 3
    True
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ExtraMissingError(f"{module} is not installed; pip install 'pygrad[{extra}]' installs it") from error
