"""`pulsar.schema.definition`."""

import copy
from abc import abstractmethod
from collections import OrderedDict
from enum import Enum, EnumMeta

from pulsarx.schema.definition import (
    Array,
    Boolean,
    Bytes,
    CustomEnum,
    Double,
    Field,
    Float,
    Integer,
    Long,
    Map,
    Null,
    Record,
    RecordMeta,
    String,
)
