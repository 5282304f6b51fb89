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


cdef Blocks blocks_of(Program program, bytes shared, bint exact, int level, size_t segment):
    """Those of the last run if it was of the same kind; made anew otherwise."""
    cdef tuple key = (shared, exact, level, segment)
    cdef Blocks blocks = program.blocks
    if blocks is None or blocks.key != key:
        blocks = Blocks.__new__(Blocks)
        blocks.key = key
        blocks.raw = pg_blocks_new(program.plan, <const uint8_t *><char *>shared,
                                   NULL if exact else pg_numpy_loops, level, segment)
        if blocks.raw == NULL:
            raise MemoryError()
        program.blocks = blocks
    return blocks


cdef class LaneRun:
    """A run: what its threads share. It holds the arrays until the last thread is done."""

    cdef Program program
    cdef Blocks blocks
    cdef str name
    cdef Py_buffer *views
    cdef Py_ssize_t view_count
    cdef pg_lanes *inputs
    cdef pg_lanes *outputs
    cdef double *numbers
    cdef uint8_t *shared
    cdef object holds  # what `failed` points into: a thread may outlive the call, if that is interrupted
    cdef int32_t *failed
    cdef size_t width
    cdef bint out_of_memory, spoiled
    cdef object error  # of a call

    def __cinit__(self, Program program, str name, list inputs, Py_ssize_t lanes, Py_ssize_t arrays):
        cdef Py_ssize_t needed = program.plan.input_count, count = 0
        self.program, self.name = program, name
        self.views = <Py_buffer *>calloc(len(inputs) + arrays + 1, sizeof(Py_buffer))
        self.inputs = <pg_lanes *>calloc(needed + 1, sizeof(pg_lanes))
        self.outputs = <pg_lanes *>calloc(program.plan.output_count + 1, sizeof(pg_lanes))
        self.numbers = <double *>calloc(needed + 1, sizeof(double))
        self.shared = <uint8_t *>calloc(needed + 1, 1)
        if self.views == NULL or self.inputs == NULL or self.outputs == NULL or self.numbers == NULL \
                or self.shared == NULL:
            raise MemoryError()
        for found in inputs:
            count += self.place_input(count, needed, found, lanes)
        if count != needed:
            raise ValueError(f"{name}: needs {needed} inputs, found {count}")

    def __dealloc__(self):
        for i in range(self.view_count):
            PyBuffer_Release(&self.views[i])
        free(self.views)
        free(self.inputs)
        free(self.outputs)
        free(self.numbers)
        free(self.shared)

    cdef Py_buffer *view(self, array, int flags, str what) except NULL:
        cdef Py_buffer *view = &self.views[self.view_count]
        PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_STRIDES | flags)
        self.view_count += 1
        if view.itemsize != sizeof(double) or view.format == NULL or view.format not in (b"d", b"@d", b"=d", b"^d"):
            raise TypeError(f"{self.name}: {what} needs numbers of type float64")
        return view

    cdef Py_ssize_t place_input(self, Py_ssize_t i, Py_ssize_t needed, found, Py_ssize_t lanes) except -1:
        """From the i-th on: how many inputs it is."""
        cdef Py_buffer *view
        cdef Py_ssize_t count = 1, length, k
        if isinstance(found, float) or not PyObject_CheckBuffer(found) or getattr(found, "ndim", 1) == 0:
            if i < needed:
                self.numbers[i] = found
                self.inputs[i].at, self.shared[i] = <char *>&self.numbers[i], True
            return 1
        view = self.view(found, 0, f"input {i}")
        length = view.shape[view.ndim - 1]
        if view.ndim > 2 or (length != lanes and (view.ndim == 1 or length != 1)):
            shape = tuple([view.shape[k] for k in range(view.ndim)])
            raise ValueError(f"{self.name}: input {i} has shape {shape}, needs ({lanes},), or (k, {lanes}) of k inputs")
        if view.ndim == 2:
            count = view.shape[0]
        for k in range(i, min(i + count, needed)):
            self.inputs[k].at = <char *>view.buf + (k - i) * view.strides[0]
            self.inputs[k].stride = 0 if length != lanes else view.strides[view.ndim - 1]
            self.shared[k] = self.inputs[k].stride == 0 and length > 0
        return count

    cdef Py_ssize_t place_output(self, Py_ssize_t i, array, Py_ssize_t lanes) except -1:
        """From the i-th on: how many outputs it takes."""
        cdef Py_buffer *view = self.view(array, PyBUF_WRITABLE, "out")
        cdef Py_ssize_t k, count = 1 if view.ndim == 1 else view.shape[0], left = self.program.plan.output_count - i
        if view.ndim > 2 or count > left or view.shape[view.ndim - 1] != lanes:
            shape = tuple([view.shape[k] for k in range(view.ndim)])
            raise ValueError(f"{self.name}: out has shape {shape}, needs ({left}, {lanes})")
        for k in range(count):
            self.outputs[i + k].at = <char *>view.buf + k * view.strides[0]
            self.outputs[i + k].stride = view.strides[view.ndim - 1]
        return count

    def piece(self, Py_ssize_t start, Py_ssize_t stop):
        """Runs these lanes, in memory of its own."""
        if self.blocks is None or self.out_of_memory or self.spoiled or self.error is not None:  # not begun, or in vain
            return
        if self.program.plan.calls:
            self.piece_by_lanes(start, stop)
            return
        cdef void *memory = malloc(pg_blocks_bytes(self.blocks.raw, self.width))
        cdef bint held
        if memory == NULL:
            self.out_of_memory = True
            return
        with nogil:
            held = pg_blocks_run(self.blocks.raw, memory, self.width, self.inputs, self.outputs, self.failed,
                                 start, stop)
        free(memory)
        self.spoiled |= not held

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

    cdef int run(self, Py_ssize_t lanes, int threads, bint exact, int level, Py_ssize_t segment) except -1:
        cdef bytes shared = (<char *>self.shared)[:self.program.plan.input_count]
        cdef Blocks blocks = blocks_of(self.program, shared, exact, level, segment)
        cdef Py_ssize_t unit, share, start
        self.width = pg_blocks_width(pg_blocks_rows(blocks.raw), (lanes + threads - 1) // threads)
        self.blocks = blocks
        unit = segment or self.width
        share = (lanes + unit * threads - 1) // (unit * threads) * unit
        others = [Thread(target=self.piece, args=(start, min(start + share, lanes)))
                  for start in range(share, lanes, share or 1)]
        for other in others:
            other.start()
        self.piece(0, min(share, lanes))
        for other in others:
            other.join()
        if self.error is not None:
            raise self.error
        if self.out_of_memory:
            raise MemoryError()
        return 0


cdef int check_counts(str name, Py_ssize_t lanes, int threads) except -1:
    if lanes < 0 or threads < 1:
        raise ValueError(f"{name}: needs lanes >= 0 and threads >= 1, found {lanes} and {threads}")
    return 0


cdef tuple run_lanes(Program program, list inputs, Py_ssize_t lanes, out, int threads, bint exact, int level):
    """See Program.run_lanes."""
    program.prepare()
    check_counts("Program.run_lanes", lanes, threads)
    cdef Py_ssize_t outputs = program.plan.output_count, count = 0
    if out is None:
        out = empty((outputs, lanes))
    arrays = list(out) if type(out) is list else [out]  # which nobody else changes
    cdef LaneRun run = LaneRun(program, "Program.run_lanes", list(inputs), lanes, len(arrays))
    for array in arrays:
        count += run.place_output(count, array, lanes)
    if count != outputs:
        raise ValueError(f"Program.run_lanes: out has room for {count} outputs, needs it for {outputs}")
    failed = empty(lanes, int32)
    cdef int32_t[::1] numbers = failed
    run.holds, run.failed = failed, &numbers[0] if lanes else NULL
    run.run(lanes, threads, exact, level, 0)
    return out, failed


cdef object run_sums(Program program, list inputs, Py_ssize_t lanes, Py_ssize_t segment, int threads, bint exact,
                     int level):
    """See Program.run_sums."""
    program.prepare()
    check_counts("Program.run_sums", lanes, threads)
    if segment < 1:
        raise ValueError(f"Program.run_sums: needs a segment of at least one lane, found {segment}")
    if program.plan.calls:
        rows, failed = run_lanes(program, inputs, lanes, None, threads, exact, level)
        return None if (failed >= 0).any() else sum_rows(rows, segment)
    cdef LaneRun run = LaneRun(program, "Program.run_sums", list(inputs), lanes, 1)
    cdef Py_ssize_t outputs = program.plan.output_count, i
    sums = empty(((lanes + segment - 1) // segment, outputs))
    cdef Py_buffer *view = run.view(sums, PyBUF_WRITABLE, "out")
    for i in range(outputs):
        run.outputs[i].at, run.outputs[i].stride = <char *>view.buf + i * sizeof(double), outputs * sizeof(double)
    run.run(lanes, threads, exact, level, segment)
    return None if run.spoiled else sums


def sum_rows(rows, Py_ssize_t segment):
    """The sums of rows of lanes, a segment of lanes each, as Program.run_sums adds them: of shape (segments, rows)."""
    cdef const double[:, :] given = rows
    cdef Py_ssize_t count = given.shape[0], lanes = given.shape[1], segments = (lanes + segment - 1) // segment, i, k
    sums = empty((segments, count))
    cdef double[:, ::1] made = sums
    cdef pg_lanes row
    with nogil:
        for i in range(count):
            row.at, row.stride = <char *>&given[i, 0], given.strides[1]
            for k in range(segments):
                made[k, i] = pg_sum_row(&row, k * segment, min((k + 1) * segment, lanes))
    return sums


def pack(x):
    """A list or tuple of floats alone as an array; None of anything else."""
    if type(x) is not list and type(x) is not tuple:
        return None
    cdef Py_ssize_t i = 0
    for number in x:
        if type(number) is not float:
            return None
    array = empty(len(x))
    cdef double[::1] made = array
    for number in x:
        made[i] = <double>number
        i += 1
    return array
