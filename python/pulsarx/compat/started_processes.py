"""Processes that a program under `pulsarx run` starts: they find PulsarX as it does, and its
folders. Their environment says which; clusters in memory are those of one process."""

from __future__ import annotations

import json
import os

from pulsarx.compat import startup
from pulsarx.compat.alias import install_as_pulsar
from pulsarx.options import routes

VARIABLE = "PULSARX_RUN"


def tell_started() -> None:
    """Tell those that this process starts from now on what its routes are."""
    places, root, namespaces = routes.folders()
    if not places and root is None:
        return
    urls = {f"pulsar://{cluster}": folder for cluster, folder in places.items()}
    os.environ[VARIABLE] = json.dumps({"routes": urls, "root": root, "namespaces": namespaces})
    here = os.path.dirname(os.path.abspath(startup.__file__))
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    others = [each for each in before if each and each != here]
    os.environ["PYTHONPATH"] = os.pathsep.join((here, *others))


def install_here() -> None:
    """In a process that was told: install the alias with those routes."""
    told = json.loads(os.environ[VARIABLE])
    install_as_pulsar(told["routes"], root=told["root"], namespaces=told["namespaces"])
