"""Sizes that are part of the formats. Any module may use them. Bytes unless the name says
otherwise."""

cdef enum Limits:
    ENTRY_FRAME_SIZE = 64
    ENTRY_ALIGNMENT = 8                 # frames start on it; the padding between is zero
    # a block of its own: sealing rewrites it, never an entry's sector
    LEDGER_HEADER_SIZE = 4096
    ENTRY_SPAN_MIN = 72                 # a frame and the least entry, padded
    ENTRY_SIZE_MAX = 1073741824         # 1 GiB, far above max_message_size: what a frame may claim
    ENTRY_MESSAGE_SIZE_MIN = 6          # of a message in a batch, before compression
    ENTRY_MESSAGES_MAX = 178956970      # ENTRY_SIZE_MAX / ENTRY_MESSAGE_SIZE_MIN
    LEDGER_MESSAGES_END = 137438953472  # 2^37: ordinals of messages are below
    CURSOR_HEADER_SIZE = 4096
    METADATA_SIZE_MAX = 67108864        # 64 MiB of properties is already absurd
