"""For tests of code that uses PulsarX: an in-memory client, a manual clock, faults on demand."""
