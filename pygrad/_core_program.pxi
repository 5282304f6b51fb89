# _core_program.pxi: programs as Python objects. What they mean is in csrc/program.h; capture, variants and structures are
# in pygrad/compile.py.


ctypedef int (*native_function)(const double *inputs, double *outputs)
ctypedef int (*native_function_with)(const double *inputs, double *outputs, double *work)


cdef bint making = False  # whether program_from is at work


cdef class Program:
    """A static graph of scalars: captured, or a derivative of one that was. `print` shows it as it runs.

    It is optimised and planned at its first run. One thread runs it at a time; another that comes meanwhile gets slots
    of its own.
    """

    cdef pg_program *raw
    cdef pg_program *small
    cdef pg_plan *plan
    cdef double *slots
    cdef double *numbers
    cdef bint busy
    cdef native_function native            # compiled C in place of the interpreter, or NULL
    cdef native_function_with native_with  # the same, with room to work in
    cdef double *work
    cdef object library                    # which holds them
    cdef pg_optimise_report report
    cdef object blocks  # of the last run over lanes
    cdef object __weakref__  # custom.py

    def __cinit__(self):
        if not making:  # without a program in it any method would crash
            raise TypeError("Program: is made by pygrad.compile")

    def __dealloc__(self):
        pg_program_free(self.raw)
        pg_program_free(self.small)
        pg_plan_free(self.plan)
        free(self.slots)
        free(self.numbers)
        free(self.work)

    cdef int prepare(self) except -1:
        if self.numbers != NULL:
            return 0
        if self.small == NULL:
            self.small = pg_optimise(self.raw, &self.report)
        if self.small != NULL and self.plan == NULL:
            self.plan = pg_plan_make(self.small)
        if self.plan != NULL and self.slots == NULL:
            self.slots = pg_slots_new(self.plan)
        if self.slots != NULL:
            self.numbers = pg_numbers_new(self.plan)
        if self.numbers == NULL:
            raise MemoryError()
        return 0

    cdef Py_ssize_t execute(self, double *numbers, double *slots):
        """Runs once: -1; the number of the first guard that did not hold; or PG_CALL_FAILED. Inputs, behind them outputs."""
        cdef double *outputs = numbers + self.plan.input_count
        if self.native != NULL and self.native(numbers, outputs) < 0:
            return -1
        if self.native_with != NULL and slots == self.slots and self.native_with(numbers, outputs, self.work) < 0:
            return -1
        return pg_interpret(self.plan, numbers, slots, outputs)

    def capsule(self):
        """For py_program.c: the program as it was captured. It must not outlive this object."""
        return PyCapsule_New(self.raw, PG_PROGRAM_CAPSULE, NULL)

    def use_native(self, size_t address, size_t work, library):
        """From now on runs call the function at this address, of what to_c gave, which `library` keeps loaded.

        Where a guard fails, the interpreter says what it found.
        """
        self.prepare()
        free(self.work)
        self.work = <double *>calloc(work + 1, sizeof(double))
        if self.work == NULL:
            raise MemoryError()
        self.native = NULL if work else <native_function>address
        self.native_with = <native_function_with>address if work else NULL
        self.library = library

    def run(self, list inputs not None):
        """The outputs for a list of floats, as a list; or a tuple of the first guard that did not hold and what it found."""
        self.prepare()
        if len(inputs) != <Py_ssize_t>self.plan.input_count:
            raise ValueError(f"Program.run: needs {self.plan.input_count} numbers, found {len(inputs)}")
        cdef double *slots = self.slots
        cdef double *numbers = self.numbers
        cdef Py_ssize_t failed
        if self.busy:
            slots, numbers = pg_slots_new(self.plan), pg_numbers_new(self.plan)
        else:
            self.busy = True
        try:
            if slots == NULL or numbers == NULL:
                raise MemoryError()
            for i in range(len(inputs)):
                numbers[i] = inputs[i]
            failed = self.execute(numbers, slots)
            if failed == PG_CALL_FAILED:
                raise_of_call()
            if failed >= 0:
                return failed, slots[self.plan.guards[failed]]
            return [numbers[self.plan.input_count + i] for i in range(self.plan.output_count)]
        finally:
            if slots == self.slots:
                self.busy = False
            else:
                free(slots)
                free(numbers)

    cdef object replay(self, tuple args, recipe):
        """The outputs for arguments of the common kinds, made by a recipe: see _core_replay.pxi.

        None where a guard does not hold, or another run is under way.
        """
        if self.busy or self.prepare() < 0:
            return None
        cdef double *outputs = self.numbers
        cdef double *end = outputs + self.plan.input_count
        cdef Py_ssize_t failed
        self.busy = True  # what is made may set off the collector, and that code of the user's
        try:
            for arg in args:
                outputs = put_numbers(arg, outputs, end)
                if outputs == NULL:
                    return None
            if outputs != end:
                return None
            failed = self.execute(self.numbers, self.slots)
            if failed == PG_CALL_FAILED:
                raise_of_call()
            if failed >= 0:
                return None
            return made_by(recipe, <const double **>&outputs)
        finally:
            self.busy = False

    def run_lanes(self, list inputs not None, Py_ssize_t lanes, out=None, *, int threads=1, bint exact=False,
                  int level=PG_LEVELS):
        """(out, failed): the outputs of many runs at once, and for each the first guard that did not hold, or -1.

        An input is a float, which all lanes share, or a float64 array of `lanes` numbers with any stride; an array of
        shape (k, lanes) is k inputs, one of shape (k, 1) k numbers that all lanes share. `out`, of shape
        (outputs, lanes) or a list of such arrays which follow one another, is made where it is not given; it may be an
        input, lane for lane, but not overlap one otherwise. The outputs of a lane that failed are of no use.
        Transcendental rows come from NumPy's loops, which may differ from `run` by ulps; with `exact` they are those of
        `run`. A lane's outputs depend on its inputs alone, not on `threads` or on the other lanes. `level` limits the
        instruction set, and changes no bit.
        """
        return run_lanes(self, inputs, lanes, out, threads, exact, level)

    def run_sums(self, list inputs not None, Py_ssize_t lanes, Py_ssize_t segment, *, int threads=1, bint exact=False,
                 int level=PG_LEVELS):
        """The outputs of run_lanes summed over each `segment` of lanes, of shape (segments, outputs).

        None where a guard does not hold. The sums are those of sum_rows to the last bit: Note [Sums] in csrc/blocks.h.
        """
        return run_sums(self, inputs, lanes, segment, threads, exact, level)

    def gradient(self, list wrt not None, of=None):
        """The program that gives the same outputs, and then the gradients by the inputs of these numbers.

        Of output `of`, or without it of the sum of all outputs times further inputs, one an output.
        """
        if of is not None and not 0 <= of < <Py_ssize_t>self.raw.output_count:
            raise IndexError(f"gradient: output {of} is not one of {self.raw.output_count}")
        cdef pg_index *inputs = input_numbers(self, wrt)
        try:
            return program_from(pg_reverse(self.raw, inputs, len(wrt), PG_NONE if of is None else <pg_index>of))
        finally:
            PyMem_Free(inputs)

    def tangent(self, list wrt not None):
        """The program that gives the same outputs, and then their derivatives along further inputs, one a wrt."""
        cdef pg_index *inputs = input_numbers(self, wrt)
        try:
            return program_from(pg_forward_mode(self.raw, inputs, len(wrt)))
        finally:
            PyMem_Free(inputs)

    def jacobian(self, list wrt not None, bint forward):
        """(program, rows, columns): the same outputs, and then the entries that may differ from zero, row by row."""
        cdef pg_index *inputs = input_numbers(self, wrt)
        cdef pg_index *rows = NULL
        cdef pg_index *columns = NULL
        cdef size_t entries = 0
        try:
            made = program_from(pg_jacobian(self.raw, inputs, len(wrt), forward, &rows, &columns, &entries))
            return made, [rows[i] for i in range(entries)], [columns[i] for i in range(entries)]
        finally:
            PyMem_Free(inputs)
            free(rows)
            free(columns)

    def jacobian_pattern(self, list wrt not None, bint forward):
        """(rows, columns, work): where the Jacobian may differ from zero, and the instructions that its sweeps meet."""
        cdef pg_index *inputs = input_numbers(self, wrt)
        cdef pg_index *rows = NULL
        cdef pg_index *columns = NULL
        cdef size_t entries = 0, work = 0
        try:
            if pg_jacobian_pattern(self.raw, inputs, len(wrt), forward, &rows, &columns, &entries, &work) < 0:
                raise MemoryError()
            return index_array(rows, entries), index_array(columns, entries), work
        finally:
            PyMem_Free(inputs)
            free(rows)
            free(columns)

    def select(self, list outputs not None):
        """The program with these of its outputs alone, and the same guards; a float is an output that is constant."""
        cdef pg_program *copy = pg_program_copy(self.raw)
        cdef pg_index constant
        made = program_from(copy)
        copy.output_count = 0
        for number in outputs:
            if type(number) is float:
                constant = pg_program_constant(copy, number)
                if constant == PG_NONE or pg_program_output(copy, constant) < 0:
                    raise MemoryError()
                continue
            if not 0 <= number < <Py_ssize_t>self.raw.output_count:
                raise IndexError(f"select: output {number} is not one of {self.raw.output_count}")
            if pg_program_output(copy, self.raw.outputs[<size_t>number]) < 0:
                raise MemoryError()
        return made

    def with_guards_put_out(self, list guards not None):
        """The program with what these guards look at as further outputs."""
        cdef pg_program *copy = pg_program_copy(self.raw)
        made = program_from(copy)
        for number in guards:
            if pg_program_output(copy, self.raw.guards[<size_t>number].value) < 0:
                raise MemoryError()
        return made

    @property
    def counts(self):
        """(inputs, outputs, guards)."""
        return self.raw.input_count, self.raw.output_count, self.raw.guard_count

    @property
    def work(self):
        """About how many instructions a run goes through, a float: those of a loop once a step."""
        self.prepare()
        return pg_plan_work(self.plan)

    def expected(self):
        """What the guards must find, in their order."""
        return [self.raw.guards[i].expected for i in range(self.raw.guard_count)]

    def stats(self):
        """What the passes did, in instructions, and what a run needs: a dict."""
        self.prepare()
        return {
            "captured": self.report.before, "folded": self.report.folded, "simplified": self.report.simplified,
            "merged": self.report.merged, "dead": self.report.dead, "instructions": self.report.after,
            "fused": self.plan.fused_count, "runs": self.plan.run_count, "slots": self.plan.slot_count,
            "bytes": self.plan.slot_count * sizeof(double) + self.plan.word_count * sizeof(uint32_t),
            "inputs": self.plan.input_count, "outputs": self.plan.output_count, "guards": self.plan.guard_count,
            "block": pg_blocks_width(self.plan.slot_count - self.plan.constant_count, <size_t>-1),
        }

    def to_c(self, str name not None, list inputs=None, list outputs=None):
        """C99 source of `int name(const double *inputs, double *outputs)`, which computes what `run` does.

        `inputs` and `outputs` are names for its comments, one each. The source needs libm alone; `pygrad.cc.build` makes
        a function of it. Where it needs memory to work in, that is on the stack, or given by the caller of `name_with`;
        beyond 1 MiB there is `name_with` alone. A name that C, or the source itself, uses otherwise is a ValueError; a
        program that calls an op of the user's is a TypeError.
        """
        self.prepare()
        refuse_calls(self.small, "to_c")
        cdef bytes encoded = name.replace("\0", "?").encode()
        cdef const char *wrong = pg_emit_name_wrong(encoded)
        if wrong != NULL:
            raise ValueError(f"to_c: the name {name!r} {wrong.decode()}")
        cdef list held = []
        cdef const char **of_inputs = NULL
        cdef const char **of_outputs = NULL
        cdef char *text = NULL
        try:
            of_inputs = texts_of(inputs, self.small.input_count, "inputs", held)
            of_outputs = texts_of(outputs, self.small.output_count, "outputs", held)
            text = pg_emit_c(self.small, encoded, of_inputs, of_outputs)
            if text == NULL:
                raise MemoryError()
            return text.decode()
        finally:
            free(text)
            PyMem_Free(of_inputs)
            PyMem_Free(of_outputs)

    def to_bytes(self):
        """The program as bytes, which `from_bytes` reads on any machine, in this version of pygrad and later ones.

        TypeError where it calls an op of the user's.
        """
        refuse_calls(self.raw, "to_bytes")
        cdef size_t size = 0
        cdef unsigned char *data = pg_program_to_bytes(self.raw, &size)
        if data == NULL:
            raise MemoryError()
        try:
            return <bytes>data[:size]
        finally:
            free(data)

    @staticmethod
    def from_bytes(const unsigned char[::1] data not None):
        """The program that `to_bytes` wrote. ValueError says what is wrong with any other bytes."""
        cdef char message[256]
        cdef const unsigned char *start = &data[0] if data.shape[0] else <const unsigned char *>message
        cdef pg_program *raw = pg_program_from_bytes(start, <size_t>data.shape[0], message, sizeof(message))
        if raw == NULL and message[0]:
            raise ValueError(f"from_bytes: {message.decode()}")
        return program_from(raw)

    def __reduce__(self):
        return Program.from_bytes, (self.to_bytes(),)

    def __str__(self):
        self.prepare()
        return "\n".join(lines_of(self.small, ""))


cdef list lines_of(const pg_program *program, str indent):
    """The text of a program, the bodies of its regions below the instructions that run them."""
    cdef char text[512]
    cdef int op
    cdef list lines = []
    for value in range(program.count):
        pg_instruction_text(program, <pg_index>value, text, sizeof(text))
        lines.append(indent + text.decode())
        op = program.code[value].op
        if op == PG_OP_loop:
            lines += lines_of(program.regions[program.code[value].in_[2]].body[0], indent + "    ")
        elif op == PG_OP_cond:
            lines += lines_of(program.regions[program.code[value].in_[2]].body[0], indent + "    ")
            lines.append(indent + "else")
            lines += lines_of(program.regions[program.code[value].in_[2]].body[1], indent + "    ")
    for i in range(program.guard_count):
        lines.append(f"{indent}guard v{program.guards[i].value} == {program.guards[i].expected!r}")
    lines.append(" ".join([indent + "return", *(f"v{program.outputs[i]}" for i in range(program.output_count))]))
    return lines


cdef int refuse_calls(const pg_program *program, str what) except -1:
    """TypeError where the program, or a body of it, calls an op of the user's: that is Python, and stays here."""
    cdef const pg_callee *callee = pg_program_callee(program)
    if callee == NULL:
        return 0
    cdef PyObject *op = pg_object_of_callee(callee)
    name = "a function" if op == NULL else getattr(<object>op, "__name__", repr(<object>op))
    raise TypeError(
        f"{what}: the program calls {name}, an op of the user's, which is Python and cannot "
        "be written; make it of pygrad's functions, or capture the function anew where it is needed"
    )


cdef pg_index *input_numbers(Program program, list wrt) except NULL:
    """Numbers of inputs as an array, to be freed by PyMem_Free."""
    cdef pg_index *numbers = <pg_index *>PyMem_Malloc((len(wrt) + 1) * sizeof(pg_index))
    if numbers == NULL:
        raise MemoryError()
    cdef Py_ssize_t i, number
    try:
        for i, given in enumerate(tuple(wrt)):
            number = given
            if not 0 <= number < <Py_ssize_t>program.raw.input_count:
                raise IndexError(f"input {number} is not one of {program.raw.input_count}")
            numbers[i] = <pg_index>number
    except BaseException:
        PyMem_Free(numbers)
        raise
    return numbers


cdef object index_array(const pg_index *numbers, size_t count):
    array = empty(count, dtype=uint32)
    cdef pg_index[::1] places = array
    if count:
        memcpy(&places[0], numbers, count * sizeof(pg_index))
    return array


def colour_columns(rows, columns, size_t count):
    """A colour for each of `count` columns, so that those of one colour share no row: see csrc/colour.h."""
    cdef const pg_index[::1] row_of = ascontiguousarray(rows, dtype=uint32)
    cdef const pg_index[::1] column_of = ascontiguousarray(columns, dtype=uint32)
    colours = empty(count, dtype=uint32)
    cdef pg_index[::1] made = colours
    cdef size_t entries = len(row_of), i
    if <size_t>len(column_of) != entries:
        raise ValueError(f"colour_columns: found {entries} rows and {len(column_of)} columns")
    for i in range(entries):
        if column_of[i] >= count:
            raise IndexError(f"colour_columns: column {column_of[i]} is not one of {count}")
    if count and not pg_colour_columns(&row_of[0] if entries else NULL, &column_of[0] if entries else NULL, entries, count,
                                       &made[0]):
        raise MemoryError()
    return colours.astype(int)
cdef const char **texts_of(list names, size_t count, str what, list held) except? NULL:
    """Names as C strings, which `held` keeps alive, to be freed by PyMem_Free; NULL for None."""
    if names is None:
        return NULL
    if <size_t>len(names) != count:
        raise ValueError(f"to_c: needs {count} names of {what}, found {len(names)}")
    held.extend([str(name).replace("\0", "?").encode() for name in names])
    cdef const char **texts = <const char **>PyMem_Malloc((count + 1) * sizeof(char *))
    if texts == NULL:
        raise MemoryError()
    for i in range(count):
        texts[i] = <bytes>held[len(held) - count + i]
    return texts


cdef object program_from(pg_program *raw):
    """A Program that owns `raw`."""
    global making
    if raw == NULL:
        raise MemoryError()
    making = True
    cdef Program made
    try:
        made = Program.__new__(Program)
    finally:
        making = False
    made.raw = raw
    return made


cdef int raise_of_call() except -1:
    """Lets the error through that a call has set."""
    return -1


def capture(function, list inputs not None, bint rolled=False):
    """(program, outside, rest): the program of a run of function() with these leaves as inputs.

    function gives (outputs, rest), outputs a list of Values and floats. `outside` are the Values that the program takes
    as further inputs, after the others: what was there before and requires a gradient. Of a part that is `rolled`, rest
    is (rest, guards).
    """
    outside = []

    def run():
        outputs, rest = function()
        return program_from(pg_program_of_nodes(inputs, outputs, <list>pg_capture_guards(), outside)), rest

    (program, rest), guards = run_capture(run, inputs, rolled)
    return program, outside, (rest, guards) if rolled else rest


def program_of(list inputs not None, list outputs not None, guards=()):
    """For tests: the program of a graph that was not captured, over these leaves; all others are constants."""
    return program_from(pg_program_of_nodes(inputs, outputs, list(guards), []))
