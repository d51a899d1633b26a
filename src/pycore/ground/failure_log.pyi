def log_failure(logger: str, error: BaseException, text: str, about: object) -> int:
    """Log text % about under a logger, with the traceback of error. Where nothing can be logged, as
    without memory, it returns."""
