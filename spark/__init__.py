"""Where PulsarX becomes a data source of Spark. Empty in this version."""
