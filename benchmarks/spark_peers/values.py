"""The rows of the comparison, made without Spark: Parquet files of keys and JSON values, one a
task, and the changes of a tenth of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

PARTS = 4
GROUPS = 1000
ROWS_AT_ONCE = 65_536
CHANGED = 10  # each tenth row
DDL = "id long, key string, amount double, text string"
COLUMNS = [column.partition(" ")[0] for column in DDL.split(", ")]
TEXT = random.Random(1).randbytes(1 << 16).hex()


def value(number: int, size: int, amount: float) -> str:
    """JSON of so many bytes, or a few more where they are not enough."""
    head = f'{{"id":{number},"key":"key-{number % GROUPS}","amount":{amount},"text":"'
    left = max(size - len(head) - 2, 0)
    at = number * 61 % (len(TEXT) - left)
    return f'{head}{TEXT[at : at + left]}"}}'


def batches(numbers: range, size: int, added: float) -> Iterator[object]:
    import pyarrow

    for at in range(0, len(numbers), ROWS_AT_ONCE):
        part = numbers[at : at + ROWS_AT_ONCE]
        keys = pyarrow.array([str(number) for number in part])
        values = [value(number, size, number % 977 * 0.5 + added) for number in part]
        yield pyarrow.record_batch([keys, pyarrow.array(values)], ["key", "value"])


def write_files(folder: Path, numbers: range, size: int, added: float = 0) -> None:
    """PARTS files, none of them compressed."""
    import pyarrow
    import pyarrow.parquet

    folder.mkdir(parents=True)
    share = len(numbers) // PARTS
    for part in range(PARTS):
        until = (part + 1) * share if part < PARTS - 1 else len(numbers)
        table = pyarrow.Table.from_batches(batches(numbers[part * share : until], size, added))
        path = folder / f"{part}.parquet"
        pyarrow.parquet.write_table(table, path, compression="none", use_dictionary=False)


def make_values(folder: Path, rows: int, size: int) -> None:
    write_files(folder / "rows", range(rows), size)
    write_files(folder / "changes", range(0, rows, CHANGED), size, added=1000)
