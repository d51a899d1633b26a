def partition_hash(scheme: int, key: str | bytes) -> int:
    """0 .. 2^31-1, to be taken modulo the number of partitions; scheme as in HashingScheme."""
