"""The guest's end: a folder that another process owns, used through that one."""
