"""The former place of MessageId, which pickles of earlier versions name. Nothing else uses it."""

from pulsarx._pycore.message.message_id import MessageId, _message_id_restore

__all__ = ["MessageId", "_message_id_restore"]
