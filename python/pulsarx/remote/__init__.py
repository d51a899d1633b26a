"""Clients whose broker is at the other end of a connection, which carries Pulsar's commands."""
