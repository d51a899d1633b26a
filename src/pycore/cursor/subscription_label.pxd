"""The label in the header of a cursor file: whose cursor it is.

From it a subscription is made again when the catalogue of its folder is lost. Nobody reads it
otherwise, and a cursor without it (written before there was one) is as good as any.

  offset  size  label (4016 bytes, at 80 of the cursor's header, whose checksum covers it)
       0     4  flags              1: there is one; 2: topic, 4: name was cut (`kept_name`)
       4     4  topic_size
       8     4  name_size
      12     4  type_size
      16     8  created_ms
      24     8  initial_ledger_id  where the subscription began; -1: with the first ledger
      32     8  initial_message
      40        topic, name, type  UTF-8; zeros behind them
"""

cdef bytes label_bytes(str topic, object subscription)
"""The label of a subscription of a topic. subscription: as SubscriptionRecord."""
