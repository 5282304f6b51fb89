# _core_capture.pxi: captures, and what Python code of pygrad needs to know of one. See Note [Capture] in py_capture.h.


def begin_capture(list inputs not None, bint rolled=False):
    """Begins a capture in this thread, inside any that are under way. Inputs are leaves that require a gradient.

    Be sure to end it whatever happens; run_capture does.
    """
    pg_capture_begin(inputs, rolled)


def end_capture():
    """Ends the innermost capture: its guards (node, number, kind, place), in the order in which they were taken.

    A guard holds where the node has that number again, or both are nan; kind says what asked for it ("bool", "int", ...);
    place is (file, line, function) in a capture that is rolled, else None.
    """
    return pg_capture_end()


def capture_depth():
    """How many captures are under way in this thread."""
    return depth()


cdef int depth():
    cdef int count = 0
    cdef pg_capture *capture = pg_thread.capture
    while capture != NULL:
        count += 1
        capture = pg_capture_outer(capture)
    return count


def run_capture(function, list inputs not None, bint rolled=False):
    """(function(), guards), run as a capture with these inputs. Nothing is left behind, whatever it raises."""
    cdef int before = depth()
    pg_capture_begin(inputs, rolled)
    try:  # no signal handler runs between these lines
        result = function()
    finally:
        while depth() > before + 1:
            pg_capture_end()
        guards = pg_capture_end()
    return result, guards


def is_capturing():
    """Whether a capture is under way in this thread."""
    return pg_is_capturing()


def depends_on_outside(value):
    """Whether a capture is under way, and the Value depends on its inputs, or on what was there before it began."""
    return PG_IS_VALUE(value) and is_outside(<pg_node *><PyObject *>value)


cdef bint is_outside(pg_node *node) except -1:
    return pg_is_captured(node) and pg_capture_depends(node)


cdef refuse(value, str what, str instead):
    cdef pg_node *node = <pg_node *><PyObject *>value
    if pg_is_captured(node):
        pg_capture_refuse(node, what.encode(), PG_WOULD_REUSE, instead.encode())


def refuse_leaving(value, str what, str instead):
    """CaptureError where `what` would take a number out of the graph that is being captured; `instead` is the way out."""
    if PG_IS_VALUE(value):
        refuse(value, what, instead)


def numbers_of(operands):
    """A tuple with the numbers of the Values among the operands, during a capture too: for what cannot leak them."""
    return tuple([(<pg_node *><PyObject *>o).data if PG_IS_VALUE(o) else o for o in operands])


def guarded_number(value, str row, str kind):
    """The number of a Value, of which Python code makes an int: during a capture the result of `row` is guarded."""
    cdef pg_node *node = <pg_node *><PyObject *>value
    if pg_is_captured(node):
        pg_capture_guard(node, pg_op_find(row.encode()), kind.encode())
    return node.data


def guard(value, str kind):
    """Guards the number of a Value in the captures under way."""
    if PG_IS_VALUE(value):
        pg_capture_guard(<pg_node *><PyObject *>value, PG_OP_leaf, kind.encode())


def pass_on(tuple guard not None):
    """A guard of a part that has ended becomes one of the captures under way, where it depends on what they follow."""
    if not PG_IS_VALUE(guard[0]):
        raise TypeError(f"pass_on: needs a guard of a capture, found {guard!r}")
    pg_capture_pass_on(guard)
