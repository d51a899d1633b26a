"""The broker's end of connections: commands of Pulsar's protocol become calls of a broker."""
