"""Schemas: they turn values into payloads and back."""

from __future__ import annotations

from pulsarx.schema.schema import BytesSchema, Schema, SchemaInfo, StringSchema

__all__ = ["BytesSchema", "Schema", "SchemaInfo", "StringSchema"]
