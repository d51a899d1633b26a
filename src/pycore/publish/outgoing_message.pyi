class BytesKey(str):
    """The base64 text of a key that is bytes."""

class BytesOrderingKey(bytes):
    """An ordering key that is bytes; the official client takes text alone."""
