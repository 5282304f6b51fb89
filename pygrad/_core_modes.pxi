# _core_modes.pxi: the modes of the running thread. Context managers are in pygrad/modes.py.


def is_grad_enabled():
    """Whether this thread records what it computes.

    >>> is_grad_enabled()
    True
    """
    return pg_thread.no_grad == 0


def set_no_grad(bint no_grad):
    """Sets whether this thread records nothing; returns what was set before."""
    before = pg_thread.no_grad != 0
    pg_set_no_grad(no_grad)
    return before


def enter_anomaly():
    pg_enter_anomaly()


def leave_anomaly():
    pg_leave_anomaly()


def is_anomaly_enabled():
    """Whether this thread looks for nan and inf."""
    return pg_thread.anomaly > 0


def enter_trace():
    """A transform begins: float(v) of a differentiated Value is an error until leave_trace(). Whether it is captured."""
    pg_thread.tracing += 1
    return pg_is_capturing()


def leave_trace():
    pg_thread.tracing -= 1


def is_tracing():
    """Whether a transform runs its function in this thread."""
    return pg_thread.tracing > 0
