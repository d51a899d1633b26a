"""The groups and verbs of pulsar-admin, reached as `client.admin`."""
