# _core_replay.pxi: the call of a compiled function, as fast as it can be for the kinds of arguments that are common.
# pygrad/compile.py does the others, and everything that happens for the first time.


cdef class Replayer:
    """What a compiled function is a subclass of: calls with floats, lists and tuples of floats, and arrays of float64 go
    straight to the program of the last call with such a structure, as long as its guards hold."""

    cdef dict programs  # by structure: (Program, recipe of its result)

    def __cinit__(self, *args, **kwargs):
        self.programs = {}

    def __call__(self, *args, **kwargs):
        if not kwargs and not pg_is_capturing():
            found = self.programs.get(key_of_common(args))
            if found is not None:
                result = (<Program>(<tuple>found)[0]).replay(args, (<tuple>found)[1])
                if result is not None:
                    return result
        return self.call(args, kwargs)

    def remember(self, tuple args not None, Program program not None, recipe):
        """From now on calls with arguments like these go to `program`, whose outputs `recipe` puts in a structure.

        A recipe is None for one float, (list, n) or (tuple, n) for n of them, (ndarray, shape) for an array, and
        (tuple, (recipe, ...)) for a tuple of what recipes make.
        """
        key = key_of_common(args)
        if key is not None:
            self.programs[key] = program, recipe

    def forget(self):
        self.programs.clear()


cdef object key_of_common(tuple args):
    """What tells the structure of arguments of the common kinds; None where one is of another."""
    cdef list key = None
    for i in range(len(args)):
        arg = args[i]
        kind = type(arg)
        if kind is float:
            if key is not None:
                key.append(None)
            continue
        if kind is list or kind is tuple:
            for number in arg:
                if type(number) is not float:
                    return None
            size = len(arg)
        elif kind is ndarray and arg.dtype == float and arg.flags.c_contiguous:
            size = arg.shape
        else:
            return None
        if key is None:
            key = [None] * i
        key.append((kind, size))
    return len(args) if key is None else tuple(key)


cdef double *put_numbers(arg, double *at, const double *end) except? NULL:
    """Writes the numbers of an argument of a common kind; gives the place behind them.

    NULL without an error where it is no longer what its key said: the collector may have run code of the user's.
    """
    cdef Py_buffer view
    if type(arg) is float:
        if at == end:
            return NULL
        at[0] = <double>arg
        return at + 1
    if type(arg) is ndarray:
        PyObject_GetBuffer(arg, &view, PyBUF_C_CONTIGUOUS)
        fits = view.itemsize == sizeof(double) and view.len <= (end - at) * <Py_ssize_t>sizeof(double)
        if fits:
            memcpy(at, view.buf, <size_t>view.len)
            at += view.len // <Py_ssize_t>sizeof(double)
        PyBuffer_Release(&view)
        return at if fits else NULL
    for number in arg:
        if at == end or type(number) is not float:
            return NULL
        at[0] = <double>number
        at += 1
    return at


cdef object made_by(recipe, const double **at):
    """What a recipe makes of the outputs from `at` on, which it moves behind those it took."""
    cdef Py_buffer view
    cdef Py_ssize_t i, count
    cdef const double *outputs = at[0]
    if recipe is None:
        at[0] = outputs + 1
        return outputs[0]
    kind, size = <tuple>recipe
    if kind is ndarray:
        array = empty(size)
        PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
        memcpy(view.buf, outputs, <size_t>view.len)
        at[0] = outputs + view.len // <Py_ssize_t>sizeof(double)
        PyBuffer_Release(&view)
        return array
    if type(size) is tuple:
        return tuple([made_by(part, at) for part in <tuple>size])
    count = size
    at[0] = outputs + count
    made = [outputs[i] for i in range(count)]
    return made if kind is list else tuple(made)
