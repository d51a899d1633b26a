"""Storage, subscriptions, cursors, retention. Used by the API layer; knows no client."""
