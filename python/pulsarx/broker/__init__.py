"""What topics do with entries: storage, subscriptions, cursors, retention. Used by the API layer, knows no client."""
