"""The names of the official client: what `import pulsar` and `import _pulsar` find under the alias.

`pulsar` and `_pulsar.py` beside this file are loaded under those names by `alias.Finder`. They hold
names alone; each class is defined elsewhere, and is the same under all its names.
"""
