class BusyWait:
    """Has the calls of this process that wait stay awake, until `end`."""

    def __new__(cls) -> BusyWait: ...
    def end(self) -> None:
        """Have calls sleep again, if this was the last one."""
