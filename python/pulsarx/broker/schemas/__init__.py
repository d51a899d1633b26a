"""The schemas of topics: their versions, and which may follow which."""
