"""What Python imports when it starts in a process that a program under `pulsarx run` has started:
this folder is in front of its PYTHONPATH."""
