"""The side of a guest: a process that uses a folder through the process that owns it."""
