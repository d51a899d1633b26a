"""`pulsar.schema.schema`."""

import enum
import json
from abc import abstractmethod

import _pulsar

from pulsarx.schema.json_schema import JsonSchema
from pulsarx.schema.schema import BytesSchema, Schema, StringSchema
