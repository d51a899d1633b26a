"""What a Pulsar broker does, in process. Knows nothing of the API above it; never waits on a
consumer's code."""
