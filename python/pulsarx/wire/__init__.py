"""Pulsar's binary protocol: frames, commands, errors. Both ends of a connection use it."""
