# _core_replay.pxi: the call of a compiled function, as fast as it can be for the kinds of arguments that are common.
# pygrad/compile.py does the others, and everything that happens for the first time.


cdef class Replayer:
    """What a compiled function is a subclass of: calls with floats, and lists and tuples of floats, go straight to the
    program of the last call with such a structure, as long as its guards hold."""

    cdef dict programs  # by structure: (Program, kind of its result: float, list or tuple)

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

    def remember(self, args, program, kind):
        """From now on calls with arguments like these go to `program`, whose outputs make one float, a list or a tuple."""
        key = key_of_common(args)
        if key is not None:
            self.programs[key] = program, kind

    def forget(self):
        self.programs.clear()


cdef object key_of_common(tuple args):
    """What tells the structure of arguments that are floats, and lists and tuples of floats; None for anything else."""
    cdef list key = None
    for i in range(len(args)):
        arg = args[i]
        kind = type(arg)
        if kind is float:
            if key is not None:
                key.append(None)
            continue
        if kind is not list and kind is not tuple:
            return None
        for number in arg:
            if type(number) is not float:
                return None
        if key is None:
            key = [None] * i
        key.append((kind, len(arg)))
    return len(args) if key is None else tuple(key)
