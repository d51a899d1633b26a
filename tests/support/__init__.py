"""What tests of several folders share, one module a subject."""
