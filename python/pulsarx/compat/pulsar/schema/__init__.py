"""`pulsar.schema`: its classes, and its submodules, which a star import gives too."""

from .definition import (
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
    String,
)
from .schema import BytesSchema, JsonSchema, Schema, StringSchema
from .schema_avro import AvroSchema
from .schema_protobuf import ProtobufNativeSchema
