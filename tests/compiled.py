"""Compiled functions for the tests: what the function gives on Values, and results compared with their structure."""

import dataclasses

import numpy as np
from conftest import bits

from pygrad import Value
from pygrad.structures import map_structure, nested_lists


def on_values(f, *args, **kwargs):
    """f(*args) on Values, arrays as nested lists of them; of the result the numbers."""

    def lifted(arg):
        return map_structure(lambda v: Value(float(v)), arg, array=nested_lists)

    result = f(*map(lifted, args), **{name: lifted(arg) for name, arg in kwargs.items()})
    return map_structure(lambda v: v.data if isinstance(v, Value) else v, result)


def same(a, b, exactly=True):
    """Whether two results are the same to the last bit (or ==), with nan equal to nan; types are compared too."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return bits(a) == bits(b) if exactly else a == b or (a != a and b != b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y, exactly) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key], exactly) for key in a)
    if dataclasses.is_dataclass(a):
        return same(vars(a), vars(b), exactly)
    if isinstance(a, np.ndarray):
        return (a.shape, a.dtype) == (b.shape, b.dtype) and same(a.tolist(), b.tolist(), exactly)
    return a == b


def counted(f):
    """f, and a list that grows by one at each run of it."""
    runs = []

    def counting(*args, **kwargs):
        runs.append(1)
        return f(*args, **kwargs)

    counting.__name__ = f.__name__
    return counting, runs
