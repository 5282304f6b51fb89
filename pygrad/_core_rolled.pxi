# _core_rolled.pxi: programs that hold a loop or a condition, and programs applied to Values. Captures and structures are
# in pygrad/loops.py; what loops mean, and how they are differentiated, is in csrc/program.h and csrc/sweep_regions.c.


cdef class Builder:
    """A program under construction, and lists of its values. Whatever is made is checked for memory."""

    cdef pg_program *raw

    def __cinit__(self, Py_ssize_t inputs):
        self.raw = pg_program_new(<size_t>inputs)
        if self.raw == NULL:
            raise MemoryError()

    def __dealloc__(self):
        pg_program_free(self.raw)

    cdef pg_index made(self, pg_index value) except? PG_NONE:
        if value == PG_NONE:
            raise MemoryError()
        return value

    cdef int put_out(self, pg_index value) except -1:
        if pg_program_output(self.raw, self.made(value)) < 0:
            raise MemoryError()
        return 0

    cdef Program taken(self):
        """The program, which is then no longer this builder's."""
        made = program_from(self.raw)
        self.raw = NULL
        return made


cdef pg_index *indices(Py_ssize_t count) except NULL:
    """Room for indices, to be freed by PyMem_Free."""
    cdef pg_index *room = <pg_index *>PyMem_Malloc((count + 1) * sizeof(pg_index))
    if room == NULL:
        raise MemoryError()
    return room


def reordered(Program program not None, list places not None, Py_ssize_t inputs, list outputs not None):
    """The program with `inputs` inputs, of which its own are those at `places`, and these outputs; its guards are left out.

    An output is a number of one, or a float that is put out itself.
    """
    cdef Builder builder = Builder(inputs)
    cdef pg_index *at = indices(len(places))
    cdef pg_index *found = NULL
    cdef double number
    try:
        found = indices(<Py_ssize_t>program.raw.output_count)
        for i in range(len(places)):
            at[i] = <pg_index><size_t>places[i]
        if pg_program_inline(builder.raw, program.raw, at, found) < 0:
            raise MemoryError()
        for output in outputs:
            if type(output) is float:
                number = output
                builder.put_out(pg_program_constant(builder.raw, number))
            else:
                builder.put_out(found[<size_t>output])
        return builder.taken()
    finally:
        PyMem_Free(at)
        PyMem_Free(found)


cdef int check_nested(Program body, str name) except -1:
    from pygrad.errors import CaptureError

    if body.raw.nested >= PG_MOST_NESTED:
        raise CaptureError(
            f"{name}: loops and conditions are nested more than {PG_MOST_NESTED} deep; write one of them as Python's own"
        )
    return 0


def rolled_loop(Program body not None, Py_ssize_t carries, Py_ssize_t shared, list arrays not None, Py_ssize_t length,
                bint backwards):
    """The program of a loop: inputs are what is carried, what is shared, and the elements of arrays, one array after another.

    Outputs are what is carried at the end, and the elements of what is stacked, one stack after another. In `arrays` stands
    None, or an array of float64 that is no input but constant.
    """
    cdef Py_ssize_t i, k, free = sum_of_none(arrays), at = carries + shared
    cdef Builder builder = Builder(at + free * length)
    cdef pg_index *operands = indices(at + len(arrays))
    cdef pg_index *elements = NULL
    cdef pg_index loop, stack
    cdef pg_region region
    cdef const double[::1] numbers
    check_nested(body, "scan")
    memset(&region, 0, sizeof(region))
    try:
        elements = indices(length)
        for i in range(carries + shared):
            operands[i] = <pg_index>i
        for i in range(len(arrays)):
            if arrays[i] is None:
                for k in range(length):
                    elements[k] = <pg_index>(at + k)
                at += length
                operands[carries + shared + i] = builder.made(pg_program_pack(builder.raw, elements, <size_t>length))
            else:
                numbers = arrays[i]
                operands[carries + shared + i] = builder.made(pg_program_array(builder.raw, &numbers[0], <size_t>length))
        region.body[0] = body.raw
        region.length, region.carries, region.shared, region.arrays = length, carries, shared, len(arrays)
        region.backwards = backwards
        loop = builder.made(pg_program_region(builder.raw, PG_OP_loop, &region, operands,
                                              <size_t>(carries + shared + len(arrays))))
        for i in range(carries):
            builder.put_out(pg_program_result(builder.raw, loop, <size_t>i))
        for i in range(<Py_ssize_t>body.raw.output_count - carries):
            stack = builder.made(pg_program_stack(builder.raw, loop, <size_t>i))
            for k in range(length):
                builder.put_out(pg_program_element(builder.raw, stack, <size_t>k))
        return builder.taken()
    finally:
        PyMem_Free(operands)
        PyMem_Free(elements)


cdef Py_ssize_t sum_of_none(list items):
    cdef Py_ssize_t count = 0
    for item in items:
        count += item is None
    return count


def rolled_cond(Program holds not None, Program holds_not not None, Py_ssize_t shared):
    """The program of a condition: its inputs are a truth and the inputs that both have, of which the last are shared with
    what is around; its outputs are those that both have."""
    cdef size_t inputs = holds.raw.input_count
    cdef Builder builder = Builder(<Py_ssize_t>inputs + 1)
    cdef pg_index *operands = indices(<Py_ssize_t>inputs + 1)
    cdef pg_region region
    cdef pg_index cond
    check_nested(holds, "cond")
    check_nested(holds_not, "cond")
    memset(&region, 0, sizeof(region))
    try:
        for i in range(inputs + 1):
            operands[i] = <pg_index>i
        region.body[0], region.body[1], region.shared = holds.raw, holds_not.raw, <size_t>shared
        cond = builder.made(pg_program_region(builder.raw, PG_OP_cond, &region, operands, inputs + 1))
        for i in range(holds.raw.output_count):
            builder.put_out(pg_program_result(builder.raw, cond, i))
        return builder.taken()
    finally:
        PyMem_Free(operands)


def rolled_call(function, Py_ssize_t inputs, Py_ssize_t outputs, Program gradient=None):
    """The program of a call of function.numbers(operands), a tuple of floats, with the program of its gradient if any."""
    cdef Builder builder = Builder(inputs)
    cdef pg_index *operands = indices(inputs)
    cdef pg_region region
    cdef pg_index call
    memset(&region, 0, sizeof(region))
    try:
        for i in range(inputs):
            operands[i] = <pg_index>i
        region.body[0] = NULL if gradient is None else gradient.raw
        region.callee = pg_callee_of(function)
        region.outputs = <size_t>outputs
        call = builder.made(pg_program_region(builder.raw, PG_OP_call, &region, operands, <size_t>inputs))
        for i in range(outputs):
            builder.put_out(pg_program_result(builder.raw, call, <size_t>i))
        return builder.taken()
    finally:
        PyMem_Free(operands)


def depending(Program program not None, list inputs not None):
    """For each guard whether it depends on one of these inputs."""
    cdef size_t i, k
    cdef uint8_t *depends = <uint8_t *>calloc(program.raw.count + 1, 1)
    if depends == NULL:
        raise MemoryError()
    try:
        for number in inputs:
            depends[<size_t>number] = 1
        for i in range(program.raw.count):
            for k in range(pg_operands_of(program.raw, <pg_index>i)):
                depends[i] |= depends[pg_operand_of(program.raw, <pg_index>i, k)]
        return [depends[program.raw.guards[i].value] != 0 for i in range(program.raw.guard_count)]
    finally:
        free(depends)


def record_applied(op, list operands not None, list numbers not None):
    """What op.program gives for these operands, Values of which one requires a gradient and floats: Values."""
    cdef Py_ssize_t i, count = len(operands)
    cdef pg_arg *args = <pg_arg *>PyMem_Malloc((count + 1) * sizeof(pg_arg))
    cdef pg_arg of[2]
    if args == NULL:
        raise MemoryError()
    try:
        for i in range(count):
            if pg_load(operands[i], &args[i]) == 0:
                raise TypeError(f"record_applied: operand {i} is no number")
        Py_INCREF(op)
        applied = pg_record_many(PG_OP_call, 0.0, args, count, <PyObject *>op)
        results = []
        for i in range(len(numbers)):
            of[0].node, of[0].data = <pg_node *><PyObject *>applied, 0.0
            of[1].node, of[1].data = NULL, <double>i
            results.append(pg_record(PG_OP_result, numbers[i], of, 2))
        return results
    finally:
        PyMem_Free(args)
