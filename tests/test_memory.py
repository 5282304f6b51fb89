"""Depth, teardown, cycles, threads, interrupts and leaks of the C core: nothing recurses, nothing stays."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import needs_timer

import pygrad
from pygrad import Value, _core, no_grad

MILLION = 1_000_000


def chain(length: int, x: Value) -> Value:
    y = x
    for _ in range(length):
        y = y * 1.0000001
    return y


def resident() -> int:
    """Resident bytes of this process; 0 where /proc does not tell."""
    if not os.path.exists("/proc/self/statm"):
        return 0
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def live_nodes() -> int:
    return _core.heap_stats()[1]


SANITIZED = "sanitize" in _core.build_info()["flags"]  # then freed memory is kept for a while, on purpose
needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/statm") or SANITIZED,
    reason="needs /proc to read resident memory from, and an allocator that keeps none of what is freed",
)


# ---------------------------------------------------------------- depth


def everything_on_a_chain(length: int) -> None:
    x = Value(1.0)
    y = chain(length, x)
    y.backward()
    assert x.grad == y.data
    assert len(repr(y)) < 100 and len(str(y)) < 100 and len(f"{y:.3f}") < 20
    z = copy.deepcopy(y)
    z.backward()
    z = None
    twin = pickle.loads(pickle.dumps(y))
    assert twin.data == y.data
    twin = None
    assert copy.copy(y).parents[0] is y.parents[0]
    y = None


def test_a_million_deep():
    everything_on_a_chain(MILLION)


def test_a_million_deep_in_a_thread_with_a_small_stack():
    before = threading.stack_size(128 * 1024)
    failures = []

    def run():
        try:
            everything_on_a_chain(MILLION // 4)
        except BaseException as error:
            failures.append(error)

    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert not failures


def test_a_deep_chain_dropped_before_and_after_backward():
    x = Value(1.0)
    y = chain(MILLION, x)
    del y
    y = chain(MILLION, x)
    y.backward()
    del y
    y = chain(MILLION // 10, x)
    y.backward(retain_graph=False)
    del y
    assert x.grad > 0


def test_deep_gradients_as_nodes():
    x = Value(1.0)
    y = chain(100_000, x)
    (first,) = _core.gradients_graph(y, [x])
    assert first == pytest.approx(1.01005, rel=1e-4)
    z = x
    for _ in range(100_000):
        z = (z * x).sin()
    (first,) = _core.gradients_graph(z, [x])
    _core.gradients(first, [x])


def test_a_deep_chain_of_closures():
    x = Value(1.0)
    y = x
    for _ in range(200_000):
        out = Value(y.data, (y,))
        out.backward_fn = int  # a callable that does nothing
        y = out
    y.backward()
    del y, out
    gc.collect()


# ---------------------------------------------------------------- freeing


def test_freed_at_once_without_the_collector():
    gc.disable()
    try:
        x = Value(2.0)
        references = sys.getrefcount(x)
        y = (x * x).exp() + x
        assert sys.getrefcount(x) > references
        y.backward()
        del y
        assert sys.getrefcount(x) == references
    finally:
        gc.enable()


def test_create_graph_leaves_no_cycle():
    gc.collect()
    gc.disable()
    try:
        with pytest.MonkeyPatch.context():
            kept = Value(2.0)
            references = sys.getrefcount(kept)
            for _ in range(3):
                (kept * kept * kept).backward(create_graph=True)
            kept.zero_grad()
            assert sys.getrefcount(kept) == references
    finally:
        gc.enable()


def test_a_gradient_outlives_its_leaf():
    x = Value(2.0)
    (x**3).backward(create_graph=True)
    first = x.grad
    del x
    first.backward()
    assert first.data == 12.0


def test_plain_nodes_are_not_tracked_and_closures_are():
    x = Value(1.0)
    out = Value(2.0, (x,))
    assert not gc.is_tracked(x) and not gc.is_tracked(x * 2)
    assert gc.is_tracked(out) and gc.is_tracked(out * 2) and gc.is_tracked((out * 2).exp())


def test_a_cycle_through_a_closure_is_collected():
    class Witness:
        pass

    import weakref

    x = Value(1.0)
    references = sys.getrefcount(x)
    witness = Witness()
    seen = weakref.ref(witness)

    def make(witness):
        out = Value(2.0, (x,))
        later = out * 3

        def step():
            return out, later, witness

        out.backward_fn = step

    make(witness)
    del witness
    gc.collect()
    assert seen() is None
    assert sys.getrefcount(x) == references


# ---------------------------------------------------------------- errors and interrupts


@needs_timer
@pytest.mark.parametrize("phase", ["backward", "closures"])
def test_interrupted_backward(phase):
    x = Value(1.0)
    if phase == "backward":
        y = chain(3 * MILLION, x)
    else:
        y = x
        for _ in range(50):
            out = Value(y.data, (y,))
            out.backward_fn = lambda: time.sleep(0.01)
            y = out
    raised = []

    def handler(signum, frame):
        raised.append(time.perf_counter())
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        with pytest.raises(KeyboardInterrupt) as caught:
            for _ in range(100):
                y.backward()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert (
        any("backward stopped after" in note for note in getattr(caught.value, "__notes__", [])) or phase == "backward"
    )
    x.zero_grad()
    (x * 2).backward()
    assert x.grad == 2.0


def test_an_interrupt_is_noticed_within_100_ms():
    """The handler's exception leaves the C walk soon after the handler ran."""
    x = Value(1.0)
    y = chain(3 * MILLION, x)
    ran = []

    def handler(signum, frame):
        ran.append(time.perf_counter())
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        began = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(KeyboardInterrupt):
            for _ in range(100):
                y.backward()
        assert ran[0] - began < 0.11 + 0.1  # a second tenth for a machine with other work
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_the_note_says_how_far_backward_came():
    x, w = Value(1.0), Value(2.0)
    out = Value(1.0, (x,))

    def step():
        raise ZeroDivisionError("mine")

    out.backward_fn = step
    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        ((out * w) + w).backward()
    (note,) = caught.value.__notes__
    assert "stopped after 2 node(s)" in note and ".grad of leaves holds part" in note


# ---------------------------------------------------------------- release while other walks run


def test_release_inside_a_walk_over_the_same_graph():
    x = Value(2.0)
    shared = x * x * x
    out = Value(1.0, (shared,))

    def step():
        (shared * 1.0).backward(retain_graph=False)  # frees what the outer walk is about to visit

    out.backward_fn = step
    y = (out * shared) * 2
    with pytest.raises((pygrad.GraphError, AssertionError)):
        y.backward()
        y.backward()
        raise AssertionError
    gc.collect()


def test_two_threads_on_disjoint_graphs():
    failures = []

    def run(seed):
        rng = random.Random(seed)
        for _ in range(200):
            x = Value(rng.uniform(1, 2))
            out = Value(x.data, (x,))

            def step(x=x, out=out):
                time.sleep(0)
                x.grad += out.grad

            out.backward_fn = step
            y = chain(50, out)
            y.backward(retain_graph=rng.random() < 0.5)
            if abs(x.grad - 1.000005) > 1e-7:
                failures.append(x.grad)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# ---------------------------------------------------------------- leaks


def one_graph(rng: random.Random) -> None:
    """A small graph in one of many ways, with exceptions among them."""
    x, w = Value(rng.uniform(-2, 2)), Value(1.5, requires_grad=rng.random() < 0.9)
    kind = rng.randrange(12)
    y = (x * w + 0.3).tanh()
    if kind == 0:
        y = pygrad.sum([y, x, 2.0, w])
    elif kind == 1:
        y = pygrad.dot([x, y, 1.0], [w, 2.0, y])
    elif kind == 2:
        y.backward(create_graph=True)
    elif kind == 3:
        pygrad.grad(lambda t: t * x)(2.0)
    elif kind == 4:
        out = Value(1.0, (x,))
        out.backward_fn = lambda: 1 / 0
        with pytest.raises(ZeroDivisionError):
            (out * y).backward()
    elif kind == 5:
        with pytest.raises(TypeError):
            pygrad.sum([x, y, "no"])
        with pytest.raises(TypeError):
            y.backward("no")
    elif kind == 6:
        y.backward(retain_graph=False)
        with pytest.raises(pygrad.GraphError):
            y.backward()
        return
    elif kind == 7:
        copy.deepcopy([x, y])
    elif kind == 8:
        pickle.loads(pickle.dumps([y, x]))
    elif kind == 9:
        with no_grad():
            x * w
    elif kind == 10:
        pygrad.jvp(lambda a, b: a * b + w, (1.0, 2.0), (1.0, 1.0))
    elif kind == 11:
        with pygrad.detect_anomaly(), pytest.raises(pygrad.AnomalyError):
            (x * 0.0).log()
    y.backward()


def test_memory_is_flat():
    """PYGRAD_LEAK_GRAPHS graphs built and dropped (a million in the long run) leave the resident memory as it was."""
    graphs = int(os.environ.get("PYGRAD_LEAK_GRAPHS", "40000"))
    rng = random.Random(1)
    for _ in range(max(10_000, graphs // 10)):
        one_graph(rng)
    gc.collect()
    before, nodes, blocks = resident(), live_nodes(), sys.getallocatedblocks()
    for _ in range(graphs):
        one_graph(rng)
    gc.collect()
    assert live_nodes() == nodes
    # A tracer keeps memory of its own.
    assert SANITIZED or sys.gettrace() or sys.getallocatedblocks() - blocks < graphs // 100
    assert SANITIZED or resident() - before < 16 << 20  # a few huge pages, if the system makes some meanwhile


def test_a_planted_leak_is_found():
    kept = []
    before = live_nodes()
    for _ in range(100):
        kept.append(Value(1.0) * 2)
    assert live_nodes() - before == 200


@needs_proc
def test_memory_returns_to_the_system():
    x = Value(1.0)
    before = resident()
    y = chain(2 * MILLION, x)
    assert resident() - before > 80 << 20
    del y
    assert resident() - before < 50 << 20


@needs_proc
def test_bytes_a_node():
    """At most 80 bytes of resident memory a node, order buffer of the walk included."""
    x = Value(1.0)
    before = resident()
    y = chain(2 * MILLION, x)
    y.backward()
    assert (resident() - before) / (2 * MILLION) < 80


def test_import_in_a_fresh_process_is_light():
    heavy = "{'scipy', 'sympy', 'mpmath', 'torch'}"
    code = f"import sys, pygrad; print(sorted({{m.split('.')[0] for m in sys.modules}} & {heavy}))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_a_leaf_in_a_used_place_is_freed():
    """What was left in memory must not be taken for a reference count: every place of a slab is used again."""
    before = live_nodes()
    for _ in range(3):
        kept = [Value(1.0) for _ in range(5000)]
        del kept[::2]
        kept += [Value(2.0) for _ in range(5000)]
        del kept
        assert live_nodes() == before
