"""The side of the owner: it serves other processes that use the folder of this one."""
