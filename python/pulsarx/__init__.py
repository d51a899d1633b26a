"""Apache Pulsar's messaging model, embedded: open a folder, publish, subscribe."""
