"""The broker in process: topics, subscriptions, ledgers, catalogue. It knows nothing of the API
above it and never waits for code of users."""
