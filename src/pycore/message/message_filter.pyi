from typing import final

SELECTOR_PROPERTY: str

@final
class MessageFilter:
    selector: str
    def __init__(self, selector: str, what: str = ...) -> None: ...
