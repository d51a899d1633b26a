"""Bugs in compiled code, planted in a running process: a function of the library that goes to
another one at its first instruction, or answers 0. Only in a process that is given up
afterwards."""

from __future__ import annotations

import ctypes
import importlib
import mmap
import platform

CAN_PLANT = platform.machine() == "x86_64" and platform.system() == "Linux"
REASON = "code is planted on Linux for x86-64 alone"
_ACCESS = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC


def address_of(module: str, function: str) -> int:
    """Of a cdef function that a module shares with others."""
    capsule = importlib.import_module(module).__pyx_capi__[function]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    found: int = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return found


def plant(module: str, function: str, instead: int) -> None:
    """From now on each call of a function goes to the code at an address. Before threads start that
    may be in it."""
    # mov rax, instead; jmp rax
    _overwrite(module, function, b"\x48\xb8" + instead.to_bytes(8, "little") + b"\xff\xe0")


def let_return_0(module: str, *functions: str) -> None:
    """Functions do nothing from now on and answer 0, as `plant`."""
    for function in functions:
        _overwrite(module, function, b"\x31\xc0\xc3")  # xor eax, eax; ret


def _overwrite(module: str, function: str, code: bytes) -> None:
    at = address_of(module, function)
    page = at - at % mmap.PAGESIZE
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if protect(page, at + len(code) - page, _ACCESS) != 0:
        raise OSError(ctypes.get_errno(), f"make {function} of {module} writable")
    ctypes.memmove(at, code, len(code))
