"""For tests of code that uses PulsarX: faults of file operations on demand."""
