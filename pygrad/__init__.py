"""pygrad: records what a Python program computes as a graph, and differentiates it.

>>> from pygrad import Value
>>> x, w, b = Value(2.0), Value(-0.5), Value(0.3)
>>> y = (x * w + b).tanh()
>>> y.backward()
>>> print(f"{y:.4f} {w.grad:.4f}")
-0.6044 1.2695
"""

import builtins

from pygrad import _core, functions, modes, numpy_protocol, value
from pygrad import math as math
from pygrad._core import Value, dot
from pygrad._core import sum as sum
from pygrad.compile import Compiled
from pygrad.compile import compile as compile
from pygrad.custom import custom_op
from pygrad.errors import AnomalyError, CaptureError, CompilerError, GradcheckError, GraphError
from pygrad.explain import explain
from pygrad.functions import *  # noqa: F403
from pygrad.gradcheck import gradcheck
from pygrad.loops import cond, scan
from pygrad.modes import detect_anomaly, enable_grad, is_grad_enabled, no_grad
from pygrad.saving import load
from pygrad.transforms import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from pygrad.value import stop_gradient

__version__ = "0.1.0"

__all__ = [
    "AnomalyError",
    "CaptureError",
    "Compiled",
    "CompilerError",
    "GradcheckError",
    "GraphError",
    "Value",
    "cond",
    "custom_op",
    "detect_anomaly",
    "dot",
    "enable_grad",
    "explain",
    "grad",
    "gradcheck",
    "hessian",
    "hvp",
    "is_grad_enabled",
    "jacobian",
    "jvp",
    "load",
    "no_grad",
    "scan",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    *(name for name in functions.__all__ if not hasattr(builtins, name)),
]
# pygrad.abs, compile, pow, round and sum are public too, and pygrad.math; a star import would shadow the builtins and
# the standard library's math, so it leaves them out.

_core.set_hooks(
    real=value.real,
    place=modes.place,
    arrays=numpy_protocol.array_operands,
    anomaly=modes.raise_anomaly,
    graph_error=GraphError,
    capture_error=CaptureError,
)
