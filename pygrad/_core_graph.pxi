# _core_graph.pxi: gradients, n-ary sums, ops of the user's.


def sum(values):
    """Sum of Values and real numbers as one node, added from left to right from 0.0; a float without a Value.

    Raises TypeError for an element that is neither.

    >>> from pygrad import Value, sum
    >>> x = Value(2.0)
    >>> sum([x, 1.0, x]).data
    5.0
    """
    return pg_sum(values)


def dot(left, right):
    """Sum of products of two equally long sequences as one node, added from left to right from 0.0.

    Raises ValueError where the lengths differ, TypeError for an element that is no Value or real number.

    >>> from pygrad import Value, dot
    >>> w = [Value(1.0), Value(2.0)]
    >>> dot(w, [3.0, 4.0]).data
    11.0
    """
    return pg_dot(left, right)


def gradients(root, list targets, double grad=1.0, uint64_t run=0, out=None):
    """The gradients of `root` with respect to `targets` times `grad`, as floats; no other leaf's .grad is touched.

    With `run`, None where `root` was computed from other leaves too that are outside of that run. With `out`, a C-contiguous array of float64
    with an element a target, they are written there, and `out` is returned. `root` may be a list of one: where nothing
    else holds what is in it, the graph is freed on the way, faster than afterwards, and None is left in the list.
    """
    if out is not None:
        return pg_gradients_buffer(root, targets, grad, run, out)
    return pg_gradients_list(root, targets, grad, run)


def lift_flat(sequence):
    """New Values for a list, tuple or vector of nothing but floats, as a list or tuple; None for anything else."""
    kind = type(sequence)
    if kind is list:
        return pg_lift_floats(sequence)
    if kind is tuple:
        values = pg_lift_floats(list(sequence))
        return None if values is None else tuple(values)
    if kind is ndarray and sequence.ndim == 1 and sequence.dtype == float:
        return pg_lift_buffer(ascontiguousarray(sequence))
    return None


def gradients_graph(root, list targets, grad=1.0):
    """The same as nodes, to be differentiated again; a float where a gradient is constant."""
    if not PG_IS_VALUE(root):
        return [0.0] * len(targets)
    cdef pg_node **nodes = pg_nodes_of(targets)
    try:
        return pg_gradients_graph(<pg_node *><PyObject *>root, grad if PG_IS_VALUE(grad) else float(grad), nodes,
                                  len(targets))
    finally:
        PyMem_Free(nodes)


def as_float(number, str what):
    """A real number as a float; TypeError that opens with `what` for anything else."""
    cdef pg_arg arg
    if PG_IS_VALUE(number) or pg_load(number, &arg) == 0:
        raise TypeError(f"{what}: must be a real number, found {number!r} of type {type(number).__name__}")
    return arg.data


def record_custom(op, y, tuple operands):
    """The result of an op of the user's as a node."""
    cdef Py_ssize_t count = len(operands)
    cdef double number = as_float(y, op.__name__)
    cdef pg_arg *args = <pg_arg *>PyMem_Malloc((count + 1) * sizeof(pg_arg))
    if args == NULL:
        raise MemoryError()
    try:
        for i in range(count):
            if pg_load(operands[i], &args[i]) == 0:
                raise TypeError(f"{op.__name__}: operand {i} must be a Value or a real number, found {operands[i]!r} "
                                f"of type {type(operands[i]).__name__}")
        Py_INCREF(op)
        return pg_record_many(PG_OP_custom, number, args, count, <PyObject *>op)
    finally:
        PyMem_Free(args)


def settled(list numbers not None, uint64_t run, list inputs not None):
    """The list with floats for its Values, but for those that were computed from leaves outside of a run.

    Where there are such, which may hold the run's inputs, the run ends.
    """
    return pg_settled(numbers, run, inputs)


def begin_run():
    """The number of a new run: see Note [Runs] in py_order.h."""
    global pg_last_run
    pg_last_run += 1
    return pg_last_run


def end_run(list inputs not None):
    """From now on the leaves among these Values are outside of no run."""
    pg_end_run(inputs)


def tangents(list outputs, list targets, list directions, bint graph):
    """Forward mode: the derivative of each output along `directions`, one a target. With `graph`, as nodes."""
    cdef Py_ssize_t count = len(targets)
    cdef pg_node **nodes = pg_nodes_of(targets)
    try:
        return pg_tangents(outputs, nodes, count, directions, graph)
    finally:
        PyMem_Free(nodes)


def operands(node):
    """All operands of a Value, Values and floats."""
    if not PG_IS_VALUE(node):
        raise TypeError(f"operands: needs a Value, found {node!r}")
    return pg_value_operands(node)


def set_epoch(unsigned int epoch):
    """For tests: the number of the last walk."""
    global pg_last_epoch
    pg_last_epoch = epoch


def heap_stats():
    """(regions of 2 MiB mapped, nodes alive)."""
    cdef size_t regions = 0, live = 0
    pg_heap_stats(&regions, &live)
    return regions, live
