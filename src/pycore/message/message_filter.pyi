SELECTOR_PROPERTY: str

class MessageFilter:
    selector: str
    def __init__(self, selector: str, what: str = ...) -> None: ...
