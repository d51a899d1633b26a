"""The broker, in the process of its clients: topics, subscriptions, ledgers, catalogue. It knows
nothing of the API above it and never waits for code of users."""
