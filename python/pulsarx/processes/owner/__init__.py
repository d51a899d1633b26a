"""The owner's end: other processes that use the folder of this one."""
