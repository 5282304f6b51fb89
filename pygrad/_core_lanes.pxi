# _core_lanes.pxi: a program over many lanes. Owns how arrays become lanes, and the threads; the run itself is in
# csrc/blocks.h, without the GIL.

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_CheckBuffer
from cpython.buffer cimport PyObject_GetBuffer


cdef class Blocks:
    """The blocks of one plan for one choice of width, shared inputs and loops."""

    cdef pg_blocks *raw
    cdef tuple key

    def __dealloc__(self):
        pg_blocks_free(self.raw)


cdef Blocks blocks_of(Program program, size_t width, bytes shared, bint exact, int level):
    """Those of the last run if it was of the same kind; made anew otherwise."""
    cdef tuple key = (width, shared, exact, level)
    cdef Blocks blocks = program.blocks
    if blocks is None or blocks.key != key:
        blocks = Blocks.__new__(Blocks)
        blocks.key = key
        blocks.raw = pg_blocks_new(program.plan, width, <const uint8_t *><char *>shared,
                                   NULL if exact else pg_numpy_loops, level)
        if blocks.raw == NULL:
            raise MemoryError()
        program.blocks = blocks
    return blocks


cdef class LaneRun:
    """A run: what its threads share. It holds the arrays until the last thread is done."""

    cdef Program program
    cdef Blocks blocks
    cdef Py_buffer *views
    cdef Py_ssize_t view_count
    cdef pg_lanes *inputs
    cdef pg_lanes *outputs
    cdef double *numbers
    cdef object holds  # what `failed` points into: a thread may outlive the call, if that is interrupted
    cdef int32_t *failed
    cdef bint out_of_memory
    cdef object error  # of a call

    def __cinit__(self, Program program, Py_ssize_t inputs, Py_ssize_t outputs):
        self.program = program
        self.views = <Py_buffer *>calloc(inputs + 2, sizeof(Py_buffer))
        self.inputs = <pg_lanes *>calloc(inputs + 1, sizeof(pg_lanes))
        self.outputs = <pg_lanes *>calloc(outputs + 1, sizeof(pg_lanes))
        self.numbers = <double *>calloc(inputs + 1, sizeof(double))
        if self.views == NULL or self.inputs == NULL or self.outputs == NULL or self.numbers == NULL:
            raise MemoryError()

    def __dealloc__(self):
        for i in range(self.view_count):
            PyBuffer_Release(&self.views[i])
        free(self.views)
        free(self.inputs)
        free(self.outputs)
        free(self.numbers)

    cdef Py_buffer *view(self, array, int flags, str name) except NULL:
        cdef Py_buffer *view = &self.views[self.view_count]
        PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_STRIDES | flags)
        self.view_count += 1
        if view.itemsize != sizeof(double) or view.format == NULL or view.format not in (b"d", b"@d", b"=d", b"^d"):
            raise TypeError(f"Program.run_lanes: {name} needs numbers of type float64")
        return view

    cdef bint place_input(self, Py_ssize_t i, found, Py_ssize_t lanes) except -1:
        """Whether it is shared."""
        cdef Py_buffer *view
        if not isinstance(found, float) and PyObject_CheckBuffer(found) and getattr(found, "ndim", 1) > 0:
            view = self.view(found, 0, f"input {i}")
            if view.ndim != 1 or view.shape[0] != lanes:
                shape = tuple([view.shape[k] for k in range(view.ndim)])
                raise ValueError(f"Program.run_lanes: input {i} has shape {shape}, needs ({lanes},)")
            self.inputs[i].at, self.inputs[i].stride = <char *>view.buf, view.strides[0]
            if view.strides[0] != 0 or lanes == 0:
                return False
            self.numbers[i] = (<double *>view.buf)[0]
        else:
            self.numbers[i] = found
        self.inputs[i].at, self.inputs[i].stride = <char *>&self.numbers[i], 0
        return True

    cdef int place_outputs(self, out, Py_ssize_t outputs, Py_ssize_t lanes) except -1:
        cdef Py_buffer *view = self.view(out, PyBUF_WRITABLE, "out")
        cdef Py_ssize_t i
        if view.ndim != 2 or view.shape[0] != outputs or view.shape[1] != lanes:
            shape = tuple([view.shape[k] for k in range(view.ndim)])
            raise ValueError(f"Program.run_lanes: out has shape {shape}, needs ({outputs}, {lanes})")
        for i in range(outputs):
            self.outputs[i].at = <char *>view.buf + i * view.strides[0]
            self.outputs[i].stride = view.strides[1]
        return 0

    def piece(self, Py_ssize_t start, Py_ssize_t stop):
        """Runs these lanes, in memory of its own."""
        if self.holds is None or self.out_of_memory or self.error is not None:  # not begun
            return
        if self.blocks is None:
            self.piece_by_lanes(start, stop)
            return
        cdef void *memory = malloc(pg_blocks_bytes(self.blocks.raw))
        if memory == NULL:
            self.out_of_memory = True
            return
        with nogil:
            pg_blocks_run(self.blocks.raw, memory, self.inputs, self.outputs, self.failed, start, stop)
        free(memory)


    cdef int piece_by_lanes(self, Py_ssize_t start, Py_ssize_t stop) except -1:
        cdef int status
        with nogil:
            status = pg_lane_by_lane_run(self.program.plan, self.inputs, self.outputs, self.failed, start, stop)
        self.out_of_memory |= status == -1
        if status == PG_CALL_FAILED:
            try:
                raise_of_call()
            except BaseException as error:  # it is raised in the thread that waits for all
                self.error = error
        return 0


cdef tuple run_lanes(Program program, list inputs, Py_ssize_t lanes, out, int threads, bint exact, int level):
    """See Program.run_lanes."""
    program.prepare()
    inputs = list(inputs)  # which nobody else changes
    cdef Py_ssize_t outputs = program.plan.output_count, width, share, start
    if len(inputs) != <Py_ssize_t>program.plan.input_count:
        raise ValueError(f"Program.run_lanes: needs {program.plan.input_count} inputs, found {len(inputs)}")
    if lanes < 0 or threads < 1:
        raise ValueError(f"Program.run_lanes: needs lanes >= 0 and threads >= 1, found {lanes} and {threads}")
    cdef LaneRun run = LaneRun(program, len(inputs), outputs)
    shared = bytes([run.place_input(i, found, lanes) for i, found in enumerate(inputs)])
    if out is None:
        out = empty((outputs, lanes))
    run.place_outputs(out, outputs, lanes)
    failed = empty(lanes, int32)
    cdef int32_t[::1] numbers = failed
    run.holds, run.failed = failed, &numbers[0] if lanes else NULL
    width = pg_blocks_width(program.plan, (lanes + threads - 1) // threads)
    if not program.plan.calls:
        run.blocks = blocks_of(program, width, shared, exact, level)
    share = (lanes + width * threads - 1) // (width * threads) * width
    others = [Thread(target=run.piece, args=(start, min(start + share, lanes)))
              for start in range(share, lanes, share or 1)]
    for other in others:
        other.start()
    run.piece(0, min(share, lanes))
    for other in others:
        other.join()
    if run.error is not None:
        raise run.error
    if run.out_of_memory:
        raise MemoryError()
    return out, failed
