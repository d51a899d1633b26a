# cython: language_level=3
"""Body of active_choice.pxd."""


cdef EntrySink active_choice(list receivers, int partition_index):
    cdef EntrySink each
    if not receivers:
        return None
    best = min([(<EntrySink>each).priority_level for each in receivers])
    group = [each for each in receivers if (<EntrySink>each).priority_level == best]
    if partition_index < 0:
        return group[0]
    group.sort(key=name_of)
    return group[partition_index % len(group)]


def name_of(EntrySink receiver not None) -> str:
    return receiver.consumer_name
