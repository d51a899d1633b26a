"""The folder in front of PYTHONPATH in processes that a program under `pulsarx run` has started:
Python imports `sitecustomize` from it when it starts."""
