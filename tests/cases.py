"""Cases: faults that users of other libraries ran into, under ids such as EDGE-01, which tests carry in their names.

Owns what test_cases_*.py share, leaves and their gradients; and, at the end, the list of the cases that no test reads,
or not in full, with the reasons. Next: test_cases_edge.py, test_cases_stability.py, test_cases_graph.py,
test_cases_protocols.py and test_cases_programs.py, which own the numbers, worked out independently of this library.
"""

import numpy as np

from pygrad import Value


def gradients(f, *numbers):
    """(value, gradients) of f on fresh leaves, by backward."""
    leaves = [Value(number) for number in numbers]
    y = f(*leaves)
    y.backward()
    return y.data, [leaf.grad for leaf in leaves]


def values(*numbers):
    """Leaves, and an object array of them."""
    leaves = [Value(number) for number in numbers]
    array = np.empty(len(leaves), dtype=object)
    array[:] = leaves
    return leaves, array


def chain(length):
    """The first and the last Value of a chain of products."""
    x = Value(1.0)
    y = x
    for _ in range(length):
        y = y * 1.00001
    return x, y


# Cases that need arrays with a gradient of their own, or functions that are not there yet:
#   STAB-06 and -07 with axis=, PROD-01 as one op, PROD-04 on Tensors: read on object arrays.
#   EDGE-12, last part (70,000 ties in float16), STAB-01 in float32: no dtype but float64 for a Value.
#   GRAPH-07, -08 as to shared memory: a Value's gradient is a number.
#   GRAPH-19, GRAPH-20: checkpoint is not there yet.
#   PROTO-01 "never dtype=object" for an ndarray on the left: an array of Values until there are Tensors.
#   DTYPE-01 Tensor of ints: needs Tensors.
#   BCAST, INDEX (but INDEX-04), LINALG, ALIAS-03 and -04: arrays.
#   TRACE-06, dtype of the result, Tensors whose strides matter: a compiled function gets Values, float64 throughout.
#   TRACE-10 on a Tensor's data: read on the data of a Value.
