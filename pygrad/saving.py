"""Compiled functions on their way elsewhere: pickles, and files.

A pickle carries the function where that pickles (or cloudpickle is there to help), and the programs captured so far; a
derivative travels as its base and what it is of it. A file carries programs and structures alone, in a format of its
own that runs no code when it is read: a header in JSON, the programs behind it (csrc/serialize.h), and a digest of it
all. What is read is checked; nothing in a file is trusted.
"""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pygrad._core import Program
from pygrad.errors import CaptureError
from pygrad.results import Result, SparseResult
from pygrad.structures import map_structure
from pygrad.variants import Tree, Variant

if TYPE_CHECKING:
    from pygrad.arguments import Arguments
    from pygrad.compile import Compiled

__all__ = ["Gone", "load", "reduce", "restored", "save"]

MAGIC = b"pygrad compiled\n"
VERSION = 1
DIGEST = 32  # bytes of BLAKE2b
MOST_NESTED = 64
MOST_NUMBERS = 1 << 24  # of an array


class Gone:
    """Stands for a function that did not come along: its programs run, and it cannot be captured again."""

    def __init__(self, name: str, why: str) -> None:
        self.__name__ = name
        self._why = why

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise CaptureError(
            f"compile: {self.__name__} {self._why}, so that only what was captured before can be replayed; this call "
            "has another structure, or takes another way through its branches"
        )


# ---- pickles


def _function(f: Callable[..., Any]) -> tuple[str, Any]:
    """How a function travels: ("pickle" or "cloudpickle", bytes), or ("gone", its name)."""
    try:
        return "pickle", pickle.dumps(f)
    except Exception:  # whatever a user's __reduce__ raises
        pass
    try:
        import cloudpickle

        return "cloudpickle", cloudpickle.dumps(f)
    except Exception:
        return "gone", getattr(f, "__name__", repr(f))


def reduce(compiled: Compiled) -> Any:
    """Compiled.__reduce__: by name where its module has it under that, as a function does."""
    found: Any = sys.modules.get(compiled.__module__)
    for part in getattr(compiled, "__qualname__", "<none>").split("."):
        found = getattr(found, part, None)
    if found is compiled:
        return compiled.__qualname__
    options = {"as_values": compiled.as_values, "static": tuple(compiled.static), "variants": compiled.limit,
               "backend": compiled.backend}  # fmt: skip
    if (d := compiled.derivative) is not None:
        how = {
            "argnums": d.argnums, "has_aux": d.has_aux, "as_values": d.as_values, "sparse": d.sparse, "label": d.label
        }  # fmt: skip
        return _derived, (d.base, d.name, how)
    captured = [
        (example, [(v.program, v.outside, v.at, v.result.structure, v.result.slots) for v in tree.variants])
        for example, tree in compiled.captured()
    ]  # fmt: skip
    return restored, (_function(compiled.function), options, captured)


def _derived(base: Compiled, name: str, how: dict[str, Any]) -> Compiled:
    return base.transform(name, **how)


def restored(function: tuple[str, Any], options: dict[str, Any], captured: list[Any]) -> Compiled:
    """What a pickle was made of."""
    from pygrad.compile import Compiled

    kind, f = function
    if kind == "gone":
        f = Gone(f, "could not be pickled")
    elif kind == "cloudpickle":
        import cloudpickle

        f = cloudpickle.loads(f)
    else:
        f = pickle.loads(f)
    compiled = Compiled(f, **options)
    for (args, kwargs), variants in captured:
        tree = compiled.tree(compiled.arguments(args, kwargs))
        for program, outside, at, structure, slots in variants:
            tree.add(Variant(program, outside, at, Result(structure, slots)))
    return compiled


# ---- structures as JSON


def _encoded(x: Any, exact: bool = False) -> Any:
    """A structure of numbers as JSON has it, with `exact` its floats too; TypeError for what a file cannot hold."""
    kind = type(x)
    if kind is float:
        return {"float": x.hex()} if exact else 0.0
    if x is None or kind in (bool, str):
        return x
    if kind is int:
        return {"int": str(x)}
    if kind in (list, tuple):
        return {kind.__name__: [_encoded(item, exact) for item in x]}
    if kind is dict and all(type(key) is str for key in x):
        return {"dict": [[key, _encoded(item, exact)] for key, item in x.items()]}
    if kind is np.ndarray and x.dtype == float and not exact:
        return {"array": list(x.shape)}
    raise TypeError(
        f"save: a file can hold lists, tuples, dicts with str keys, numbers, bools, text, None and arrays, found {x!r} "
        f"of type {kind.__name__}; a pickle can hold more"
    )


class _DamagedError(ValueError):
    pass


def _need(truth: bool, what: str) -> None:
    if not truth:
        raise _DamagedError(what)


def _decoded(x: Any, depth: int = 0) -> Any:
    _need(depth < MOST_NESTED, "structures nested too deeply")
    if x is None or type(x) in (bool, str, float):
        return x
    _need(type(x) is dict and len(x) == 1, "a structure that is none")
    ((kind, inside),) = x.items()
    if kind == "int":
        _need(type(inside) is str and len(inside) < 400, "an int that is none")
        return int(inside)
    if kind == "float":
        _need(type(inside) is str and len(inside) < 40, "a float that is none")
        return float.fromhex(inside)
    _need(type(inside) is list, "a structure that is none")
    if kind in ("list", "tuple"):
        items = [_decoded(item, depth + 1) for item in inside]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        _need(all(type(pair) is list and len(pair) == 2 and type(pair[0]) is str for pair in inside), "a bad dict")
        return {key: _decoded(item, depth + 1) for key, item in inside}
    _need(
        kind == "array" and len(inside) <= 32 and all(type(n) is int and 0 <= n < 2**31 for n in inside), "a bad array"
    )
    _need(math.prod(n for n in inside if n) <= MOST_NUMBERS, "an array that is too large")
    return np.zeros(inside)


# ---- files


def save(compiled: Compiled, path: Any) -> None:
    """Compiled.save."""
    programs: list[bytes] = []
    structures = []
    for (args, kwargs), tree in compiled.captured():
        variants = []
        for variant in tree.variants:
            if variant.outside:
                raise TypeError(
                    f"save: {compiled.name} reads {len(variant.outside)} Values from outside at each call, which a "
                    "file cannot do; make them arguments"
                )
            if not isinstance(variant.program, Program) or isinstance(variant.result, SparseResult):
                raise TypeError(f"save: {compiled.name} is a sparse or very large Jacobian; save the function instead")
            programs.append(variant.program.to_bytes())
            variants.append([_encoded(variant.result.structure), variant.result.slots, len(programs[-1])])
        is_static = compiled.arguments(args, kwargs).is_static
        named = [[name, _encoded(arg, is_static(name))] for name, arg in sorted(kwargs.items())]
        structures.append([[_encoded(arg, is_static(i)) for i, arg in enumerate(args)], named, variants])
    header = json.dumps({
        "name": compiled.name, "as_values": compiled.as_values, "static": sorted(map(str, compiled.static)),
        "variants": compiled.limit, "structures": structures,
    }).encode()  # fmt: skip
    body = MAGIC + VERSION.to_bytes(4, "little") + len(header).to_bytes(8, "little") + header + b"".join(programs)
    Path(path).write_bytes(body + hashlib.blake2b(body, digest_size=DIGEST).digest())


def load(path: Any) -> Compiled:
    """A compiled function that Compiled.save wrote: its programs run, and its transforms are made of them.

    The function itself is not in the file: a call of another structure, or one that takes another way through its
    branches, raises CaptureError. Nothing in the file is run, and a file that was damaged or made up is a ValueError.

    >>> import os, tempfile, pygrad
    >>> path = os.path.join(tempfile.mkdtemp(), "f.pygrad")
    >>> pygrad.compile(lambda x, y: x * y).capture(1.0, 1.0).save(path)
    >>> f = pygrad.load(path)
    >>> f(3.0, 4.0), pygrad.grad(f)(3.0, 4.0)
    (12.0, 4.0)
    """
    data = Path(path).read_bytes()
    try:
        return _loaded(data)
    except (ValueError, CaptureError, RecursionError, MemoryError) as error:
        raise ValueError(f"load: {path} cannot be read: {error or type(error).__name__}") from None


def _loaded(data: bytes) -> Compiled:
    from pygrad.compile import Compiled

    start = len(MAGIC) + 12
    _need(data.startswith(MAGIC), "it is no file of a compiled function")
    _need(len(data) >= start + DIGEST, "it is cut short")
    version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 4], "little")
    _need(version == VERSION, f"it is of version {version}; this pygrad reads version {VERSION}")
    body = data[:-DIGEST]
    _need(hashlib.blake2b(body, digest_size=DIGEST).digest() == data[-DIGEST:], "it was damaged, or cut short")
    end = start + int.from_bytes(data[start - 8 : start], "little")
    _need(end <= len(body), "its header is too long")
    header = json.loads(body[start:end])
    _need(type(header) is dict and type(header.get("structures")) is list, "its header is no header")
    name, limit, static = header.get("name"), header.get("variants"), header.get("static")
    _need(type(name) is str and type(limit) is int and type(static) is list, "its header is no header")
    _need(all(type(item) is str for item in static), "its header is no header")
    compiled = Compiled(
        Gone(name, "was loaded from a file"), as_values=header.get("as_values") is True, variants=max(limit, 1),
        static=tuple(int(item) if item.isascii() and item.isdigit() else item for item in static),
    )  # fmt: skip
    for structure in header["structures"]:
        end = _take_structure(compiled, structure, body, end)
    _need(end == len(body), "there is something behind its programs")
    return compiled


def _take_structure(compiled: Compiled, structure: Any, body: bytes, at: int) -> int:
    """Takes up one structure and its variants, whose programs lie in `body` from `at` on; gives where they end."""
    _need(
        type(structure) is list and len(structure) == 3 and all(type(part) is list for part in structure), "a bad part"
    )
    args, named, variants = structure
    _need(all(type(pair) is list and len(pair) == 2 and type(pair[0]) is str for pair in named), "a bad argument")
    arguments = compiled.arguments(
        tuple(_decoded(arg) for arg in args), {name: _decoded(arg) for name, arg in named}
    )  # fmt: skip
    tree = compiled.tree(arguments)
    for variant in variants:
        _need(type(variant) is list and len(variant) == 3 and type(variant[1]) is list, "a bad variant")
        encoded, slots, length = variant
        _need(type(length) is int and 0 <= length <= len(body) - at, "a program is cut short")
        try:
            program = Program.from_bytes(body[at : at + length])
        except ValueError as error:
            raise _DamagedError(str(error)) from None
        at += length
        _take_variant(tree, arguments, program, _decoded(encoded), slots)
    return at


def _take_variant(tree: Tree, arguments: Arguments, program: Program, structure: Any, slots: list[Any]) -> None:
    inputs, outputs, _ = program.counts
    count = 0

    def look(number: Any) -> Any:
        nonlocal count
        count += type(number) is float
        return number

    map_structure(look, structure)
    _need(inputs == len(arguments.numbers), "a program has other inputs than its arguments")
    _need(count == len(slots), "a result has other numbers than its program")
    _need(all(slot is None or (type(slot) is int and 0 <= slot < outputs) for slot in slots), "a bad slot")
    tree.add(Variant(program, [], inputs, Result(structure, slots)))
