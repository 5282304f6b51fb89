# _core_copy.pxi: copies and pickles of graphs. Nothing here recurses: a graph is sorted, then written out or made anew.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcpy, memset


cdef object node_object(pg_node *node):
    return <object><PyObject *>node


cdef list graph_nodes(pg_node *root):
    """All nodes under `root` and itself, operands before what is computed from them."""
    cdef pg_order order
    cdef pg_map met
    cdef pg_node *node
    cdef pg_node *operand
    cdef list nodes = []
    memset(&met, 0, sizeof(met))
    try:
        pg_order_make(&order, root, NULL, 0, 0)
        if order.count == 0:
            return [node_object(root)]
        for i in range(<Py_ssize_t>order.count):
            node = order.nodes[i]
            for k in range(pg_operand_count(node)):
                operand = pg_operand_node(node, k)
                if operand != NULL and operand.op == PG_OP_leaf and pg_map_get(&met, operand) < 0:
                    pg_map_set(&met, operand, 0)
                    nodes.append(node_object(operand))
            nodes.append(node_object(node))
        return nodes
    finally:
        pg_order_free(&order)
        pg_map_clear(&met)


cdef bint stands_for(operand, double data):
    """Whether a stand-in with this number may stand for the operand: a leaf that has the number still."""
    return PG_IS_VALUE(operand) and (<pg_node *><PyObject *>operand).op == PG_OP_leaf and operand.data == data


cdef bint is_stale(pg_node *node):
    """Whether an operand of an n-ary node has been written since the node was made."""
    cdef unsigned long long seen = 0
    for i in range(pg_operand_count(node)):
        if pg_operand_node(node, i) != NULL:
            seen += pg_operand_node(node, i).version
    return seen != node.in_[0].many.seen


cdef object remade(int op, double data, double grad, bint requires_grad, list operands, closure):
    """A node from its parts. Operands are Values and floats."""
    cdef Py_ssize_t count = len(operands)
    cdef list frozen = []
    cdef pg_arg *args
    cdef pg_node *leaf
    if op == PG_OP_stand_in and stands_for(operands[0], data):
        leaf = <pg_node *><PyObject *>operands[0]
        node = node_object(pg_stand_in_of(leaf))
        Py_DECREF(node)  # a new reference
    elif op == PG_OP_leaf or op == PG_OP_stand_in:  # a stand-in for a number that its leaf no longer has is a leaf
        node = node_object(pg_leaf(data, requires_grad))
        Py_DECREF(node)  # pg_leaf gave a new reference
    else:
        args = <pg_arg *>PyMem_Malloc((count + 1) * sizeof(pg_arg))
        if args == NULL:
            raise MemoryError()
        before = set_no_grad(False)
        anomaly = pg_thread.anomaly
        pg_thread.anomaly = 0  # what was made once is not looked at again
        try:
            for i in range(count):
                if pg_load(operands[i], &args[i]) == 0:
                    raise TypeError(f"an operand must be a Value or a real number, found {operands[i]!r}")
                if PG_IS_VALUE(operands[i]) and args[i].node == NULL:  # a leaf that was frozen after its first use
                    args[i].node = <pg_node *><PyObject *>operands[i]
                    args[i].node.flags |= PG_REQUIRES_GRAD
                    frozen.append(operands[i])
            if op < PG_OP_TABLE_END:
                node = pg_record(op, data, args, <int>count)
            else:
                if closure is not None:
                    Py_INCREF(closure)
                node = pg_record_many(op, data, args, count, <PyObject *>closure if closure is not None else NULL)
        finally:
            for operand in frozen:
                (<pg_node *><PyObject *>operand).flags &= ~PG_REQUIRES_GRAD
            set_no_grad(before)
            pg_thread.anomaly = anomaly
            PyMem_Free(args)
    (<pg_node *><PyObject *>node).grad = grad
    return node


cdef object closure_of(pg_node *node):
    if node.flags & PG_MANY and node.in_[0].many.closure != NULL:
        return <object>node.in_[0].many.closure
    return None


def custom_of(value):
    """The custom op that made a Value, or None."""
    cdef pg_node *node = <pg_node *><PyObject *>value
    return closure_of(node) if PG_IS_VALUE(value) and node.op == PG_OP_custom else None


cdef object copied(pg_node *node, list operands):
    """A copy of a node over these operands; a backward_fn of the user's is left out."""
    cdef object copy = remade(node.op, node.data, node.grad, node.flags & PG_REQUIRES_GRAD, operands,
                              closure_of(node) if node.op == PG_OP_custom else None)
    keep_versions(<pg_node *><PyObject *>copy, node.version, is_stale(node) if node.flags & PG_MANY else node.seen)
    return copy


cdef void keep_versions(pg_node *copy, uint8_t version, uint8_t seen):
    """What was written since the graph was made stays known: backward of a copy notices it as well.

    `seen` is that of the node, or of an n-ary node whether it is stale.
    """
    pg_note_write()
    copy.version = version
    if copy.flags & PG_MANY:
        if seen:
            copy.in_[0].many.seen = ~copy.in_[0].many.seen
    else:
        copy.seen = seen


def copy_node(value):
    """copy.copy(value): a new node with the same number, gradient, op and parents."""
    from pygrad.value import copied_closure
    cdef pg_node *node = <pg_node *><PyObject *>value
    if node.op == PG_OP_released:
        raise_released("copy")
    copy = copied(node, list(pg_value_operands(value)))
    if node.op == PG_OP_closure and closure_of(node) is not None:
        copy.backward_fn = copied_closure(closure_of(node), lambda v: copy if v is value else v)
    return copy


cdef raise_released(str what):
    from pygrad.errors import GraphError
    raise GraphError(f"{what}: the graph of this Value has been released by backward(retain_graph=False)")


cdef class NodeMap:
    """From the nodes of a graph to their copies, or to their places in a pickle. Keeps the nodes alive."""

    cdef pg_map map
    cdef readonly list nodes
    cdef readonly list copies
    cdef object __weakref__

    def __cinit__(self):
        memset(&self.map, 0, sizeof(self.map))
        self.nodes = []
        self.copies = []

    def __dealloc__(self):
        pg_map_clear(&self.map)

    cdef long long find(self, pg_node *node):
        return pg_map_get(&self.map, node)

    def copy_of(self, value):
        """The copy of a Value of the graph; of another one itself."""
        cdef long long at = self.find(<pg_node *><PyObject *>value)
        return self.copies[at] if at >= 0 else value

    cdef add(self, node, copy):
        pg_map_set(&self.map, <pg_node *><PyObject *>node, len(self.nodes))
        self.nodes.append(node)
        self.copies.append(copy)


def copy_graph(value, dict memo):
    """copy.deepcopy(value): the graph under it anew; nodes shared within one deepcopy stay shared."""
    from pygrad.value import copied_closure
    cdef NodeMap made = memo.setdefault(NodeMap, NodeMap())
    cdef pg_node *node
    cdef pg_node *operand
    cdef list closures = []
    cdef long long at = made.find(<pg_node *><PyObject *>value)
    if at >= 0:
        return made.copies[at]
    for item in graph_nodes(<pg_node *><PyObject *>value):
        node = <pg_node *><PyObject *>item
        if made.find(node) >= 0:
            continue
        operands = []
        for k in range(pg_operand_count(node)):
            operand = pg_operand_node(node, k)
            operands.append(pg_operand_data(node, k) if operand == NULL else made.copies[made.find(operand)])
        made.add(item, copied(node, operands))
        if node.op == PG_OP_closure and closure_of(node) is not None:
            closures.append((made.copies[len(made.copies) - 1], closure_of(node)))
    for copy, closure in closures:  # last, since a closure may hold any node of the graph
        copy.backward_fn = copied_closure(closure, made.copy_of)
    return made.copies[made.find(<pg_node *><PyObject *>value)]


# Note [Pickle]. A Value pickles as (bundle, place): the bundle is the graph under it as flat arrays, ops by name. Values
# pickled together share nodes: while a bundle lives (the pickler keeps it for the time of one dump), a later bundle
# refers to its nodes instead of writing them again.

cdef list live_bundles = []  # weak references; index is the bundle's number
cdef size_t bundled_at = 0   # what pg_writes was
cdef pg_map bundled          # node -> number of its bundle << 40 | place in it
memset(&bundled, 0, sizeof(bundled))
PLACE_BITS = 40


class Bundle:
    """A graph on its way into a pickle. A backward_fn may hold nodes of the bundle, so it comes after that is made."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.state = None
        self.closures = None

    def __reduce__(self):
        if not self.closures:
            return load_bundle, self.state
        return load_bundle, self.state, self.closures, None, None, load_closures


cdef void collect_bundles():
    """Forgets the nodes of the bundles, once none is alive, or something was written since they were made."""
    global live_bundles, bundled_at
    if bundled_at == pg_writes:
        for reference in live_bundles:
            if reference() is not None:
                return
    live_bundles = []
    bundled_at = pg_writes
    pg_map_clear(&bundled)


cdef long long bundle_holding(pg_node *node, long long *place):
    """The number of the live bundle that holds a node, and its place there; -1 where there is none."""
    cdef long long entry = pg_map_get(&bundled, node)
    if entry < 0:
        return -1
    place[0] = entry & ((<long long>1 << PLACE_BITS) - 1)
    entry >>= PLACE_BITS
    return entry if entry < len(live_bundles) and live_bundles[entry]() is not None else -1


def reduce_graph(value):
    """The pickle of a Value: see Note [Pickle]."""
    import weakref
    cdef long long place = 0
    cdef pg_node *node = <pg_node *><PyObject *>value
    collect_bundles()
    if node.op == PG_OP_released:
        raise_released("pickle")
    number = bundle_holding(node, &place)
    if number >= 0:
        return load_node, (live_bundles[number](), place)
    number = len(live_bundles)
    live_bundles.append(lambda: None)  # the number is taken, whatever other threads do meanwhile
    bundle = make_bundle(value, number)
    live_bundles[number] = weakref.ref(bundle)
    return load_node, (bundle, len(bundle.nodes) - 1)


cdef object make_bundle(value, long long number):
    """Writes the graph under `value` out, but for the nodes that live bundles hold."""
    cdef pg_node *node
    cdef pg_node *operand
    cdef long long place = 0, entry
    cdef list everything = graph_nodes(<pg_node *><PyObject *>value)
    cdef list nodes = [], outside = [], closures = [], customs = [], counts = []
    cdef dict outside_index = {}
    cdef Py_ssize_t total = 0, at = 0, count
    for item in everything:
        node = <pg_node *><PyObject *>item
        if bundle_holding(node, &place) < 0:
            nodes.append(item)
            total += pg_operand_count(node)
    for i, item in enumerate(nodes):
        pg_map_set(&bundled, <pg_node *><PyObject *>item, (number << PLACE_BITS) | <long long>i)
    count = len(nodes)
    heads = PyBytes_FromStringAndSize(NULL, count * 4)
    numbers = PyBytes_FromStringAndSize(NULL, count * 16)
    kinds = PyBytes_FromStringAndSize(NULL, total)
    operands = PyBytes_FromStringAndSize(NULL, total * 8)
    cdef unsigned char *head = <unsigned char *>PyBytes_AS_STRING(heads)
    cdef double *pair = <double *>PyBytes_AS_STRING(numbers)
    cdef unsigned char *kind = <unsigned char *>PyBytes_AS_STRING(kinds)
    cdef char *slot = PyBytes_AS_STRING(operands)
    cdef double constant
    for i in range(count):
        node = <pg_node *><PyObject *>nodes[i]
        head[4 * i] = node.op
        head[4 * i + 1] = node.flags & PG_REQUIRES_GRAD
        head[4 * i + 2] = node.version
        head[4 * i + 3] = is_stale(node) if node.flags & PG_MANY else node.seen
        pair[2 * i] = node.data
        pair[2 * i + 1] = node.grad
        if node.flags & PG_MANY:
            counts.append((i, pg_operand_count(node)))
            if closure_of(node) is not None:
                (customs if node.op == PG_OP_custom else closures).append((i, closure_of(node)))
        for k in range(pg_operand_count(node)):
            operand = pg_operand_node(node, k)
            if operand == NULL:
                kind[at] = 0
                constant = pg_operand_data(node, k)
                memcpy(slot + 8 * at, &constant, 8)
            else:
                kind[at] = 1
                entry = pg_map_get(&bundled, operand)
                place = entry & ((<long long>1 << PLACE_BITS) - 1)
                if entry >> PLACE_BITS != number:
                    kind[at] = 2
                    key = entry
                    if key not in outside_index:
                        outside_index[key] = len(outside)
                        outside.append((live_bundles[entry >> PLACE_BITS](), place))
                    place = outside_index[key]
                entry = place
                memcpy(slot + 8 * at, &entry, 8)
            at += 1
    bundle = Bundle(nodes)
    names = [pg_ops[op].name.decode() if op != PG_OP_closure else "closure" for op in range(PG_OP_COUNT)]
    bundle.state = (1, names, heads, numbers, kinds[:at], operands[:8 * at], counts, customs, outside)
    bundle.closures = closures
    return bundle


def load_node(list nodes not None, Py_ssize_t place):
    """The Value at a place of a loaded bundle."""
    if not 0 <= place < len(nodes) or not PG_IS_VALUE(nodes[place]):
        damaged("a node is not there")
    return nodes[place]


cdef damaged(str how):
    raise ValueError(f"this pickle of a Value is damaged: {how}")


def load_bundle(version, list names not None, bytes heads not None, bytes numbers not None, bytes kinds not None,
                bytes operands not None, list counts not None, list customs not None, list outside not None):
    """The nodes of a bundle, made anew. Raises ValueError where the pickle is damaged or of a later version."""
    from pygrad.custom import CustomOp
    cdef Py_ssize_t count = len(heads) // 4, at = 0, total = len(kinds), arity
    cdef const double *pair = <const double *>PyBytes_AS_STRING(numbers)
    cdef const char *slot = PyBytes_AS_STRING(operands)
    cdef double constant
    cdef long long entry
    cdef list nodes = []
    cdef dict many = dict(counts), custom = dict(customs)
    if version != 1:
        raise ValueError(f"this pickle of a Value is of version {version}; this pygrad reads version 1")
    if len(heads) % 4 or len(numbers) != 16 * count or len(operands) != 8 * total:
        damaged("its arrays do not fit together")
    for item in many.values():
        if type(item) is not int or not 0 <= item <= total:
            damaged("operands are missing")
    for item in custom.values():
        if not isinstance(item, CustomOp):
            damaged(f"{item!r} is no custom op")
    codes = {name: op for op, name in enumerate([pg_ops[op].name.decode() if op != PG_OP_closure else "closure"
                                                 for op in range(PG_OP_COUNT)])}
    for i in range(count):
        if heads[4 * i] >= len(names) or names[heads[4 * i]] not in codes:
            raise ValueError("this pickle of a Value has an op that this pygrad does not know")
        op = codes[names[heads[4 * i]]]
        arity = many[i] if i in many else pg_ops[op].arity
        if arity > total - at:
            damaged("operands are missing")
        if (i in many) != (op >= PG_OP_TABLE_END and op != PG_OP_stand_in) or op == PG_OP_released:
            damaged("an op does not fit its operands")
        if (op == PG_OP_custom) != (i in custom):
            damaged("an op does not fit its operands")
        if op == PG_OP_dot and arity % 2:
            damaged("dot needs pairs")
        taken = []
        for k in range(arity):
            memcpy(&entry, slot + 8 * at, 8)
            if kinds[at] == 0:
                memcpy(&constant, slot + 8 * at, 8)
                taken.append(constant)
            elif kinds[at] == 1 and 0 <= entry < i:
                taken.append(nodes[entry])
            elif kinds[at] == 2 and 0 <= entry < len(outside):
                taken.append(load_node(*outside[entry]))
            else:
                damaged("an operand is not there")
            at += 1
        node = remade(op, pair[2 * i], pair[2 * i + 1], heads[4 * i + 1], taken, custom.get(i))
        keep_versions(<pg_node *><PyObject *>node, heads[4 * i + 2], heads[4 * i + 3])
        nodes.append(node)
    return nodes


def load_closures(list nodes not None, list closures not None):
    """Gives the nodes of a loaded bundle the backward_fn that they had."""
    for i, closure in closures:
        nodes[i].backward_fn = closure
