"""The manifest of deploy/kubernetes: of Kubernetes' own schema, and true of `pulsarx serve`."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx.access.service_settings import DEFAULT_PORT
from pulsarx.cli.serve import _parse
from pulsarx.rest import serve_http
from pulsarx.rest.http_service import DEFAULT_PORT as HTTP_PORT

yaml = pytest.importorskip("yaml")
MANIFEST = Path(__file__).resolve().parents[2] / "deploy/kubernetes/pulsarx.yaml"
VERSIONS = ("1.29", "1.33")  # the first that has ReadWriteOncePod for all, and a later one


def documents() -> dict[str, Any]:
    """By their kind."""
    return {each["kind"]: each for each in yaml.safe_load_all(MANIFEST.read_text("utf-8"))}


def stateful_set() -> Any:
    return documents()["StatefulSet"]["spec"]


def pod() -> Any:
    return stateful_set()["template"]["spec"]


def container() -> Any:
    (found,) = pod()["containers"]
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["Service", "StatefulSet"])
def test_it_is_of_the_schema_of_kubernetes(kind: str, version: str):
    checker = pytest.importorskip("kubernetes_validate")
    checker.validate(documents()[kind], version, strict=True)


def test_a_manifest_that_is_wrong_is_found():
    checker = pytest.importorskip("kubernetes_validate")
    wrong = documents()["StatefulSet"]
    wrong["spec"]["replica"] = 2
    with pytest.raises(checker.ValidationError):
        checker.validate(wrong, VERSIONS[0], strict=True)


def test_one_pod_owns_one_volume():
    found = stateful_set()
    assert found["replicas"] == 1
    assert found["serviceName"] == documents()["Service"]["metadata"]["name"]
    (claim,) = found["volumeClaimTemplates"]
    # One pod at a time on one node: two would wait for the same lock (flock).
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
    assert claim["spec"]["volumeMode"] == "Filesystem"
    (mount,) = (
        each for each in container()["volumeMounts"] if each["name"] == claim["metadata"]["name"]
    )
    folder, _, _ = _parse(container()["args"][1:])
    assert folder.startswith(mount["mountPath"] + "/")


def test_it_runs_as_a_user_without_rights_on_a_read_only_root():
    of_pod, own = pod()["securityContext"], container()["securityContext"]
    assert of_pod["runAsNonRoot"] and of_pod["runAsUser"] > 0
    assert of_pod["fsGroup"] == of_pod["runAsGroup"] == of_pod["runAsUser"]
    assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert own["readOnlyRootFilesystem"] and not own["allowPrivilegeEscalation"]
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert pod()["automountServiceAccountToken"] is False


def test_user_and_arguments_are_those_of_the_image():
    from dockerfile import stages
    from image_builder import DOCKERFILE

    last = stages(DOCKERFILE)[-1]
    user = pod()["securityContext"]["runAsUser"]
    assert last.container["USER"] == f"{user}:{user}"
    given = container()["args"]
    assert given[: len(last.container["CMD"])] == last.container["CMD"]


def test_its_ports_are_those_of_the_server():
    assert {each["name"]: each["containerPort"] for each in container()["ports"]} == {
        "pulsar": DEFAULT_PORT,
        "http": HTTP_PORT,
    }
    assert {each["name"]: each["port"] for each in documents()["Service"]["spec"]["ports"]} == {
        "pulsar": DEFAULT_PORT,
        "http": HTTP_PORT,
    }
    assert not {"--port", "--http-port", "--no-http"} & set(_parse(container()["args"][1:])[1])


@pytest.mark.parametrize("probe", ["startupProbe", "livenessProbe", "readinessProbe"])
def test_its_probes_ask_what_the_server_answers(probe: str):
    asked = container()[probe]["httpGet"]
    assert asked["port"] == "http"
    with (
        pulsarx.Client("memory:") as client,
        serve_http(client, port=0) as service,
        urllib.request.urlopen(service.url + asked["path"]) as answer,
    ):
        assert (answer.status, answer.read()) == (200, b"OK")


def test_it_has_resources_and_time_to_end():
    found = container()["resources"]
    assert set(found["requests"]) == {"cpu", "memory"} and "memory" in found["limits"]
    assert pod()["terminationGracePeriodSeconds"] >= 30
