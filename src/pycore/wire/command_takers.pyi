class SendTaker:
    """A producer at the other end of a connection, as FrameCutter sees it."""

class AckTaker:
    """A consumer at the other end of a connection, as FrameCutter sees it."""
