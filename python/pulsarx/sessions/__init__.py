"""The broker's end of a connection, of clients over a network and of guests."""
