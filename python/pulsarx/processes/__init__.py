"""Several processes on one folder: one owns it, and the others are its guests."""
