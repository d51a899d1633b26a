"""PulsarX on Spark: topics as tables, tables as topics. Extra `pulsarx[spark]`.

Nothing of Spark is imported before it is used, so workers load only what their task needs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.spark.data_source import register
    from pulsarx.spark.subscription_sync import sync_subscription

# Where each name is. No module has the name of what it gives: importing it would hide that.
_PLACES = {
    "register": "data_source",
    "sync_subscription": "subscription_sync",
}

__all__ = ["register", "sync_subscription"]


def __getattr__(name: str) -> Any:
    import importlib

    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = getattr(importlib.import_module(f"{__name__}.{place}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("pyspark", "pyarrow"):
            raise
        raise ImportError(
            f"pulsarx.spark.{name} needs {error.name}: pip install 'pulsarx[spark]'"
        ) from error
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
