from typing import Any, final

@final
class ArrowMessages:
    def __len__(self) -> int: ...
    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
    @property
    def schema_version(self) -> bytes | None:
        """The version of the schema that all of them were written with, eight bytes; None: it was
        not asked for."""

    def to_numpy(self) -> dict[str, Any]:
        """Return the columns as NumPy arrays, by name: ledger_id, entry_id, partition, batch_index,
        key and value (of objects: str, bytes, or None), publish_time and event_time
        (datetime64[ms], NaT for none), properties (of dicts). All are copies.

        Raises:
            ImportError: numpy is missing.
        """
    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table` of the columns, which are not copied.

        Raises:
            ImportError: pyarrow is missing.
        """
    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`; a message id is a dict of its numbers.

        Raises:
            ImportError: pandas or pyarrow is missing.
        """
    def to_polars(self) -> Any:
        """Return a `polars.DataFrame`.

        Raises:
            ImportError: polars is missing.
        """
    def _repr_html_(self) -> str:
        """Show the first rows in a notebook."""
    def runs(self, topic: object) -> list[tuple[int, int, int]]:
        """Return (ledger id, first ordinal, count) of all messages; for acknowledge_many.

        Args:
            topic: The LedgerTail of the consumer.

        Raises:
            NotAllowedError: They came from another one.
        """
    def __arrow_c_schema__(self) -> Any:
        """The types of the columns, as a capsule."""
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """(schema, struct array) as capsules. requested_schema is not followed: cast afterwards."""
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A stream of one record batch, as a capsule. requested_schema is not followed."""
