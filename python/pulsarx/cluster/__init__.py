"""Clients of a Pulsar cluster: the official client behind the names of PulsarX. Loaded for the URL
of a cluster only."""
