"""PulsarX as a data source of Spark."""
