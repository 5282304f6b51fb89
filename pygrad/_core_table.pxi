# _core_table.pxi: the op table as Python objects. pygrad/ops.py makes functions, methods and docs of it.


def table():
    """The rows of the op table, as dicts in the table's order."""
    rows = []
    for op in range(1, PG_OP_TABLE_END):
        info = pg_ops[op]
        rows.append({
            "name": info.name.decode(),
            "arity": info.arity,
            "value": info.value.decode(),
            "gradients": tuple([info.gradient[i].decode() for i in range(info.arity)]),
            "domain": tuple(info.domain.decode().split("; ")),
            "summary": info.summary.decode(),
            "defaults": tuple([(info.keyword[i].decode(), info.fallback[i])
                               for i in range(info.arity) if info.keyword[i] != NULL]),
        })
    return rows


def aliases():
    """{spelling: name} of the table's aliases."""
    return {pg_op_aliases[i].spelling.decode(): pg_ops[pg_op_aliases[i].op].name.decode()
            for i in range(pg_op_alias_count)}


def functions():
    """{name: callable} of every row and alias: function and method at once."""
    made = {pg_ops[op].name.decode(): pg_op_new(op, pg_ops[op].name) for op in range(1, PG_OP_TABLE_END)}
    for i in range(pg_op_alias_count):
        made[pg_op_aliases[i].spelling.decode()] = pg_op_new(pg_op_aliases[i].op, pg_op_aliases[i].spelling)
    return made


def add_to_type(str name, attribute):
    """Puts a method or attribute, written in Python, on Value."""
    pg_type_add(name.encode(), attribute)


def set_hooks(*, real, place, arrays, anomaly, graph_error, capture_error):
    """What the core calls back: see pg_hooks_table in csrc/py_record.h."""
    pg_set_hooks(real, place, arrays, anomaly, graph_error, capture_error)


def evaluate(str name, *operands):
    """The compiled value of a row on floats."""
    cdef double values[3]
    values[0] = values[1] = values[2] = 0
    for i, operand in enumerate(operands):
        values[i] = operand
    return pg_forward(pg_op_find(name.encode()), values[0], values[1], values[2])


def evaluate_vjp(str name, double g, double y, *operands):
    """The compiled gradients of a row on floats, one an operand."""
    cdef double values[3]
    cdef double partial[3]
    values[0] = values[1] = values[2] = 0
    for i, operand in enumerate(operands):
        values[i] = operand
    pg_vjp(pg_op_find(name.encode()), g, y, values[0], values[1], values[2], partial)
    return tuple([partial[i] for i in range(len(operands))])


def build_info():
    """How this module was built: compiler, flags, bytes of a node."""
    return {"compiler": PG_COMPILER.decode(), "flags": PG_FLAGS.decode(), "node_bytes": sizeof(pg_node)}
