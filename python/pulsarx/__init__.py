"""Apache Pulsar's messaging model as an embedded library: open a folder, publish, subscribe, acknowledge."""
