"""`pulsar.schema.schema_avro`."""

import enum
import io
import json
import logging
from importlib.util import find_spec

import _pulsar

from pulsarx.schema.avro_schema import AvroSchema
from pulsarx.schema.definition import Record
from pulsarx.schema.schema import Schema

HAS_AVRO = find_spec("fastavro") is not None
