"""Sizes that are part of the formats. Everybody may use them. Bytes unless the name says
otherwise."""

cdef enum Limits:
    ENTRY_FRAME_SIZE = 64
    ENTRY_ALIGNMENT = 8                 # frames start on it; the padding between is zero
    LEDGER_HEADER_SIZE = 4096           # a block of its own: sealing rewrites it, never an entry's
                                        # sector
    ENTRY_SIZE_MAX = 1073741824         # 1 GiB, far above max_message_size: what a frame may claim
    CURSOR_HEADER_SIZE = 4096
    METADATA_SIZE_MAX = 67108864        # 64 MiB of properties is already absurd
