"""Body of failure_log.pxd."""


cpdef int log_failure(str logger, object error, str text, object about) except -1:
    try:
        import logging

        logging.getLogger(logger).error(text, about, exc_info=error)
    except BaseException:
        pass                             # there is nobody else who could be told
    return 0
