"""The version of the official client whose names these are."""

__version__ = "3.13.0"
