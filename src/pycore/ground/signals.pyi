def signals_raised() -> int:
    """How often a handler has raised in a native wait of this thread; see signals.pxd."""
