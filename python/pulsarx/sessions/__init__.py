"""The broker's side of a connection, with a client over a network or with another process of this
machine."""
