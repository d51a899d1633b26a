"""Turns values into payloads and back. Named as in the official client."""
