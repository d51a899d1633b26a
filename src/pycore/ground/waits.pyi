class BusyWait:
    """Has the calls of this process that wait stay awake, until `end`; none of a forked child."""

    def __new__(cls) -> BusyWait: ...
    def end(self) -> None:
        """Have calls sleep again, if this was the last one."""
