"""What native code knows of one kind of calls, as structures in memory.

Objects are addresses of what ``table.Call`` keeps alive.
"""

from __future__ import annotations

import ctypes

from polyax_cpu.records import ADDRESS, INTEGER, NativeSteps

LEAF, TUPLE, LIST, DICT, NONE, CUSTOM = range(6)
"""Kinds of nodes."""
STATIC, STATIC_FLOAT, ARRAY, FLOAT32, FLOAT64, INT32, INT64, BOOL, BYTES = range(9)
"""Kinds of leaves: part of the program, an array on the device, a Python number, memory of the host. Floats that are
part of it are told apart by their bits: zeros are equal, whatever their signs, and NaNs aren't."""


class NativeLeaf(ctypes.Structure):
    """An argument, for a place among the bases. ``value``: of a static one, with its ``hash`` (a
    float's bits). ``seat``: where an array is. ``shelf``: where memory
    for what is on the host comes from; that has the type ``dtype``, ``ndim`` sizes at ``shape`` and ``nbytes``."""

    _fields_ = [
        ("kind", INTEGER),
        ("number", INTEGER),
        ("base", INTEGER),
        ("donated", INTEGER),
        ("type", ADDRESS),
        ("value", ADDRESS),
        ("hash", INTEGER),
        ("seat", ADDRESS),
        ("shelf", ADDRESS),
        ("dtype", ADDRESS),
        ("ndim", INTEGER),
        ("shape", ADDRESS),
        ("nbytes", INTEGER),
    ]


class NativeNode(ctypes.Structure):
    """A node of a tree, before its ``count`` children. ``data``: the keys of a dictionary, or the static data of a
    registered type, which ``flatten`` takes apart and ``unflatten`` puts together. ``leaf``: of a leaf, a NativeLeaf in
    arguments, a NativeResult in results."""

    _fields_ = [
        ("kind", INTEGER),
        ("type", ADDRESS),
        ("count", INTEGER),
        ("data", ADDRESS),
        ("flatten", ADDRESS),
        ("unflatten", ADDRESS),
        ("leaf", ADDRESS),
    ]


class NativeShelf(ctypes.Structure):
    """Where memory comes from: ``free`` are pairs of its data and address; ``take`` makes more."""

    _fields_ = [("shelf", ADDRESS), ("free", ADDRESS), ("take", ADDRESS)]


class NativeResult(ctypes.Structure):
    """A result: its type, and which base it is in. ``shared``: whether others may have that, too."""

    _fields_ = [("base", INTEGER), ("aval", ADDRESS), ("shared", INTEGER)]


class NativeTypes(ctypes.Structure):
    """Types and values that everybody shares."""

    _fields_ = [(name, ADDRESS) for name in ("array", "memory", "free", "shared")]


class NativeCall(ctypes.Structure):
    """All of a call. ``holders`` are the objects of bases that are always the same, whose addresses are ``given``.
    ``avals``: a list of the type of each leaf. ``dtype``: that name. ``seat``: where results are. ``told``: whether
    traces are told of it."""

    _fields_ = [
        ("steps", NativeSteps),
        ("release", INTEGER),
        ("told", INTEGER),
        ("types", NativeTypes),
        ("dtype", ADDRESS),
        ("seat", ADDRESS),
        ("tasks", ADDRESS),
        ("avals", ADDRESS),
        ("nodes", ADDRESS),
        ("node_count", INTEGER),
        ("depth", INTEGER),
        ("leaves", ADDRESS),
        ("leaf_count", INTEGER),
        ("donates", INTEGER),
        ("base_count", INTEGER),
        ("holders", ADDRESS),
        ("given", ADDRESS),
        ("const_count", INTEGER),
        ("shelves", ADDRESS),
        ("shelf_count", INTEGER),
        ("first_fresh", INTEGER),
        ("made", ADDRESS),
        ("made_count", INTEGER),
    ]


class PyBuffer(ctypes.Structure):
    """What the buffer protocol fills; its layout is part of CPython's stable interface."""

    _fields_ = [
        ("buf", ADDRESS),
        ("obj", ADDRESS),
        ("len", INTEGER),
        ("itemsize", INTEGER),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ADDRESS),
        ("shape", ADDRESS),
        ("strides", ADDRESS),
        ("suboffsets", ADDRESS),
        ("internal", ADDRESS),
    ]


C_CONTIGUOUS = 0x38
"""PyBUF_C_CONTIGUOUS, with PyBUF_ND and PyBUF_STRIDES."""
