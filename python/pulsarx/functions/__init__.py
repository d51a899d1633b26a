"""Pulsar Functions in this process: the interfaces of the official `pulsar.functions`, and
`FunctionRunner`, which takes messages of input topics through a function to an output topic.

`python -m pulsarx functions localrun` runs one from the command line.
"""

from __future__ import annotations

from pulsarx.functions.context import Context
from pulsarx.functions.function import Function
from pulsarx.functions.serde import IdentitySerDe, PickleSerDe, SerDe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.functions.runner import FunctionRunner

__all__ = ["Context", "Function", "FunctionRunner", "IdentitySerDe", "PickleSerDe", "SerDe"]


def __getattr__(name: str) -> Any:
    if name != "FunctionRunner":
        raise AttributeError(f"module 'pulsarx.functions' has no attribute {name!r}")
    from pulsarx.functions.runner import FunctionRunner

    return FunctionRunner
