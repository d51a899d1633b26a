"""`pulsar.schema.schema_protobuf`."""

import base64
from importlib.util import find_spec

import _pulsar

from pulsarx.schema.protobuf_schema import ProtobufNativeSchema
from pulsarx.schema.schema import Schema

HAS_PROTOBUF = find_spec("google") is not None and find_spec("google.protobuf") is not None
