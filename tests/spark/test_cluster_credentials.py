"""What proves to a cluster who a job is: TLS with a client's certificate, OAuth 2.0, tokens and
passwords, by the names of Pulsar's Java client. The other sides are the official client, a service
with TLS and access, and an issuer of tokens over HTTP."""

from __future__ import annotations

import base64
import http.server
import json
import pickle
import ssl
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import bcrypt
import pytest

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")
pytest.importorskip("_pulsar", reason="no official client: pip install 'pulsarx[pulsar]'")

import pyarrow as pa
from certificates import Authority
from pyspark.sql.types import StringType, StructField, StructType
from signing import SECRET_TEXT, token
from spark_steps import PREFIX

import pulsarx
from pulsarx import errors
from pulsarx.access import AccessSettings, TlsSettings
from pulsarx.admin import Admin
from pulsarx.admin.issued_token import _kept, issued_token
from pulsarx.rest import serve_http
from pulsarx.server import serve
from pulsarx.spark.data_source import PulsarxDataSource
from pulsarx.spark.options import BATCH, read_options

JAVA = "org.apache.pulsar.client.impl.auth."
SECRET = "s3cr+t /of&the=client"  # what a form must quote
PASSWORD = "pass-w0rd"
VALUES = [b"0", b"1", b"2"]


class Guarded:
    """A folder in memory behind TLS, where only the superuser `admin` comes in."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        (folder / "users").write_text(f"admin:{hashed}\n")
        shared: dict[str, Any] = {
            "tls": TlsSettings(
                *self.authority.sign("server", "localhost"), trust_certs_file=self.authority.file
            ),
            "access": AccessSettings(
                token_secret_key=SECRET_TEXT,
                basic_auth_conf=str(folder / "users"),
                tls_authentication=True,
                superuser_roles=["admin"],
            ),
            "advertised_address": "localhost",
        }
        self.client = pulsarx.Client("memory:", durability="os")
        self._service = serve(self.client, port=None, tls_port=0, **shared)
        port = self._service.port
        self._http = serve_http(self.client, port=0, broker_tls_port=port, **shared)
        self.trusting = {
            "root": f"pulsar+ssl://localhost:{port}",
            "adminUrl": f"https://localhost:{self._http.port}",
        }
        self.options = {**self.trusting, "tlsTrustCertsFilePath": self.authority.file}
        producer = self.client.create_producer("t")
        for value in VALUES:
            producer.send(value)

    def values(self, options: dict[str, str]) -> list[bytes]:
        """What a job with these options reads: planned here, and read as if elsewhere."""
        source = PulsarxDataSource({**self.options, "topic": "t", "columns": "value", **options})
        reader = source.reader(source.schema())
        sent = [pickle.dumps(each) for each in reader.partitions()]
        batches = [batch for each in sent for batch in reader.read(pickle.loads(each))]
        return [value for batch in batches for value in batch.column(0).to_pylist()]

    def write(self, options: dict[str, str], value: str) -> list[bytes]:
        """What is in the topic then."""
        schema = StructType([StructField("value", StringType())])
        source = PulsarxDataSource({**self.options, "topic": "t", **options})
        writer = pickle.loads(pickle.dumps(source.writer(schema, False)))
        writer.write(iter([pa.record_batch([pa.array([value])], ["value"])]))
        reader = self.client.create_reader("t", pulsarx.MessageId.earliest)
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(60_000).data())
        return found

    def close(self) -> None:
        self._http.close()
        self._service.close()
        self.client.shutdown()


class Issuer(http.server.ThreadingHTTPServer):
    """Gives tokens of `admin` to one client, and notes what it is asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Asked)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/tenant"
        self.forms: list[dict[str, str]] = []
        self.endpoint = f"{self.url}/token"
        self.expires_in: Any = 3600
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Asked(http.server.BaseHTTPRequestHandler):
    server: Issuer

    def log_message(self, *arguments: object) -> None:
        pass

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        known = self.path == "/tenant/.well-known/openid-configuration"
        self._answer(200 if known else 404, {"token_endpoint": self.server.endpoint})

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        form = {k: v[0] for k, v in parse_qs(self.rfile.read(size).decode()).items()}
        self.server.forms.append(form)
        if (form["client_id"], form["client_secret"]) == ("job", SECRET):
            self._answer(
                200, {"access_token": token("admin"), "expires_in": self.server.expires_in}
            )
        else:
            told = f"{form['client_secret']} is wrong"
            self._answer(401, {"error": "invalid_client", "error_description": told})


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    made = Guarded(tmp_path_factory.mktemp("guarded"))
    yield made
    made.close()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    _kept.clear()
    made = Issuer()
    yield made
    made.shutdown()
    made.server_close()


def of_client(plugin: str, parameters: str) -> dict[str, str]:
    """As programs of the Pulsar connector write it."""
    return {
        "pulsar.client.authPluginClassName": plugin,
        "pulsar.client.authParams": parameters,
    }


def by_oauth2(issuer: Issuer, **more: str) -> dict[str, str]:
    given = {"type": "client_credentials", "issuerUrl": issuer.url, "audience": "urn:us", **more}
    return of_client(f"{JAVA}oauth2.AuthenticationOAuth2", json.dumps(given))


# Who is let in


def test_a_certificate_proves_who_the_job_is(guarded: Guarded) -> None:
    certificate, key = guarded.authority.sign("admin")
    ways = (
        {"tlsCertificateFilePath": certificate, "tlsKeyFilePath": key},
        {"authPluginClassName": "tls", "authParams": f"tlsCertFile:{certificate},tlsKeyFile:{key}"},
        of_client(
            f"{JAVA}AuthenticationTls",
            json.dumps({"tlsCertFile": Path(certificate).as_uri(), "tlsKeyFile": key}),
        ),
    )
    for options in ways:
        assert guarded.values(options)[:3] == VALUES
    assert guarded.write(ways[0], "by certificate")[-1] == b"by certificate"
    bob = guarded.authority.sign("bob")
    with pytest.raises(errors.AuthorizationError):
        guarded.values({"tlsCertificateFilePath": bob[0], "tlsKeyFilePath": bob[1]})
    with pytest.raises(errors.AuthenticationError):
        guarded.values({})


@pytest.mark.parametrize("key_file", [None, "file", "data"])
def test_an_issuer_of_tokens_is_asked(
    guarded: Guarded, issuer: Issuer, tmp_path: Path, key_file: str | None
) -> None:
    given = {"client_id": "job", "client_secret": SECRET}
    if key_file is None:
        options = by_oauth2(issuer, clientId="job", clientSecret=SECRET, scope="a b")
    else:
        text = json.dumps({"type": "client_credentials", "issuer_url": "x", **given})
        path = tmp_path / "a key.json"
        path.write_text(text)
        place = "data:application/json;base64," + base64.b64encode(text.encode()).decode()
        options = by_oauth2(issuer, privateKey=path.as_uri() if key_file == "file" else place)
    assert guarded.values(options)[:3] == VALUES
    assert guarded.write(options, "issued")[-1] == b"issued"
    for form in issuer.forms:
        assert {name: form[name] for name in given} == given
        assert form["audience"] == "urn:us" and form["grant_type"] == "client_credentials"
        assert form.get("scope") == ("a b" if key_file is None else None)
    # Each connection of the official client asks; all requests of this process over HTTP, once.
    assert len(issuer.forms) == 3


def test_tokens_and_passwords_come_in_each_form(guarded: Guarded, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(token("admin") + "\n")
    plugin = f"{JAVA}AuthenticationToken"
    for options in (
        {"token": token("admin")},
        of_client(plugin, f"token:{token('admin')}"),
        of_client(plugin, token("admin")),
        of_client("token", json.dumps({"token": token("admin")})),
        of_client(plugin, path.as_uri()),
        of_client("basic", json.dumps({"userId": "admin", "password": PASSWORD})),
        of_client(f"{JAVA}AuthenticationBasic", f'{{"username":"admin","password":"{PASSWORD}"}}'),
    ):
        assert guarded.values(options)[:3] == VALUES


def test_a_token_file_is_read_where_the_task_runs(guarded: Guarded, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(token("admin"))
    options = of_client("token", path.as_uri())
    source = PulsarxDataSource({**guarded.options, "topic": "t", "columns": "value", **options})
    reader = source.reader(source.schema())
    sent = pickle.dumps(reader.partitions()[0])
    assert token("admin").encode() not in sent
    path.unlink()
    with pytest.raises(
        errors.InvalidConfiguration, match=rf"{path} cannot be read on \S+: No such"
    ):
        list(reader.read(pickle.loads(sent)))
    path.write_text(token("admin"))
    assert list(reader.read(pickle.loads(sent)))


def test_the_names_of_hosts_and_the_authorities_count(guarded: Guarded) -> None:
    known = {"token": token("admin")}
    by_number = {
        name: text.replace("localhost", "127.0.0.1") for name, text in guarded.trusting.items()
    }
    with pytest.raises(errors.ConnectError, match="certificate"):
        guarded.values({**known, **by_number})
    lax = {"pulsar.client.tlsHostnameVerificationEnable": "false"}
    assert guarded.values({**known, **by_number, **lax})[:3] == VALUES
    source = {**guarded.trusting, "topic": "t", "columns": "value", **known}
    with pytest.raises(errors.ConnectError, match="certificate"):
        PulsarxDataSource(source).schema()
    insecure = PulsarxDataSource({**source, "pulsar.client.tlsAllowInsecureConnection": "true"})
    reader = insecure.reader(insecure.schema())
    assert sum(each.num_rows for part in reader.partitions() for each in reader.read(part)) >= 3


def test_the_admin_client_has_tokens_of_an_issuer(guarded: Guarded, issuer: Issuer) -> None:
    given = {"issuer_url": issuer.url, "client_id": "job", "client_secret": SECRET}
    admin = Admin.at(
        guarded.options["adminUrl"],
        authentication=pulsarx.AuthenticationOauth2(json.dumps(given)),
        tls_trust_certs_file_path=guarded.authority.file,
    )
    assert f"{PREFIX}t" in admin.topics.get_list("public/default")
    assert admin.topics.get_partitioned_topic_list("public/default") == []
    assert len(issuer.forms) == 1


@pytest.mark.parametrize(
    ("expires_in", "count"),
    [("3600", 1), (3600.5, 1), (1e300, 1), ("soon", 3), (None, 3), (-5, 3), (float("nan"), 3)],
)
def test_the_time_of_a_token_comes_in_each_form(
    issuer: Issuer, expires_in: Any, count: int
) -> None:
    issuer.expires_in = expires_in
    given = {"issuer_url": issuer.url, "client_id": "job", "client_secret": SECRET}
    for _ in range(3):
        assert issued_token(json.dumps(given), None) == token("admin")
    assert len(issuer.forms) == count


# Errors, and what is told of secrets


def test_a_secret_is_not_sent_without_tls_by_an_issuer_that_has_it(
    guarded: Guarded, issuer: Issuer
) -> None:
    safe = Issuer()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*guarded.authority.sign("issuer", "localhost"))
    safe.socket = context.wrap_socket(safe.socket, server_side=True)
    url = f"https://localhost:{safe.server_address[1]}/tenant"
    given = json.dumps({"issuer_url": url, "client_id": "job", "client_secret": SECRET})
    try:
        safe.endpoint = f"{url}/token"
        assert issued_token(given, guarded.authority.file) == token("admin")
        assert len(safe.forms) == 1
        _kept.clear()
        for endpoint, text in (
            (f"{issuer.url}/token", "that is not https"),
            ("https://[localhost/token", "must be http://host"),
            ("https://localhost:x/token", "must be http://host"),
            ("https://a:b@localhost/token", "must be http://host"),
        ):
            safe.endpoint = endpoint
            with pytest.raises(errors.AuthenticationError, match=text) as found:
                issued_token(given, guarded.authority.file)
            assert SECRET not in str(found.value)
    finally:
        safe.shutdown()
        safe.server_close()
    assert not issuer.forms


@pytest.mark.parametrize("url", ["https://[u:s3cret", "https://u\u2100s3cret@h", "http://h:s3cret"])
def test_an_issuer_that_is_no_url_is_not_shown(url: str) -> None:
    given = {"issuer_url": url, "client_id": "job", "client_secret": SECRET}
    with pytest.raises(errors.AuthenticationError, match="must be http://host") as found:
        issued_token(json.dumps(given), None)
    assert "s3cret" not in "".join(traceback.format_exception(found.value))


def test_an_issuer_that_refuses_is_told_without_the_secret(
    guarded: Guarded, issuer: Issuer, tmp_path: Path
) -> None:
    with pytest.raises(errors.AuthenticationError, match=r"status 401 \(invalid_client\)") as found:
        guarded.values(by_oauth2(issuer, clientId="job", clientSecret="wr0ng"))
    assert "wr0ng" not in str(found.value)
    elsewhere = by_oauth2(
        issuer, issuerUrl="http://127.0.0.1:1", clientId="a", clientSecret="wr0ng"
    )
    with pytest.raises(errors.ConnectError, match=r"the issuer http://127\.0\.0\.1:1"):
        guarded.values(elsewhere)
    missing = by_oauth2(issuer, privateKey=(tmp_path / "none.json").as_uri())
    with pytest.raises(errors.InvalidConfiguration, match=r"none\.json cannot be read on"):
        guarded.values(missing)
    (tmp_path / "none.json").write_text('{"client_id": "job"}')
    with pytest.raises(errors.InvalidConfiguration, match="client_id and client_secret"):
        guarded.values(missing)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"authParams": "s3cret"}, "authParams needs authPluginClassName"),
        ({"authPluginClassName": "token"}, "needs authParams"),
        ({"token": "s3cret", "authPluginClassName": "token"}, "not both"),
        (of_client("athenz", '{"privateKey": "s3cret"}'), "'athenz' is not supported; there are"),
        (of_client(f"{JAVA}AuthenticationSasl", "s3cret"), "is not supported"),
        (of_client("token", "env:s3cret"), "env: is not supported"),
        (of_client("token", "token:"), "empty"),
        (of_client("token", "file:s3cret"), "absolute"),
        (of_client("basic", "admin:s3cret"), "no JSON object of texts"),
        (of_client("basic", '{"password": "s3cret"}'), "userId and password"),
        (of_client("oauth2token", "s3cret"), "no JSON object of texts"),
        (of_client("oauth2token", '{"clientSecret": "s3cret"}'), "lack issuer_url"),
        (
            of_client("oauth2token", '{"issuerUrl": "http://a:s3cret@b", "privateKey": "/k"}'),
            "host",
        ),
        *(
            (of_client("oauth2token", f'{{"issuerUrl": "{url}", "privateKey": "/k"}}'), "host")
            for url in ("https://[a:s3cret", "https://a\u2100s3cret@b", "https://a:s3cret")
        ),
        (of_client("oauth2token", '{"issuerUrl": "http://b", "privateKey": "k"}'), "file:///path"),
        (of_client("oauth2token", '{"clientsecret": "s3cret"}'), "have the field 'clientsecret'"),
        (of_client("oauth2token", '{"type": "password"}'), "client_credentials alone"),
        (of_client("tls", "s3cret"), "tlsCertFile:/path,tlsKeyFile:/path"),
        (of_client("tls", "tlsCertFile:a,tlsKeyFile:b"), "absolute paths"),
        ({"tlsKeyFilePath": "/k"}, "go together"),
        ({"tlsKeyFilePath": "k"}, "must be an absolute path"),
        ({"tlsKeyFilePath": "/k", "tlsCertificateFilePath": "/c"}, "root must be pulsar\\+ssl"),
        ({"token": " "}, "option token is not shown: it is empty"),
        ({"pulsar.client.useTls": "true"}, "Write pulsar\\+ssl://"),
        ({"pulsar.client.tlsTrustStorePath": "/s"}, "Key stores of Java are not read"),
        ({"pulsar.client.useKeyStoreTls": "true"}, "Key stores of Java are not read"),
        ({"pulsar.client.numIoThreads": "1"}, "there are pulsar.client.tlsTrustCertsFilePath"),
        (
            {"pulsar.client.authParams": "s3cret", "pulsar.admin.authParams": "s3cret2"},
            "given twice",
        ),
        ({"root": "/folder", "token": "s3cret"}, "is for a cluster, and root is a folder"),
    ],
)
def test_what_is_wrong_is_told_without_secrets(options: dict[str, str], text: str) -> None:
    cluster = {"root": "pulsar://localhost:1", "adminUrl": "http://localhost:1", "topic": "t"}
    with pytest.raises(ValueError, match=text) as found:
        read_options({**cluster, **options}, BATCH)
    assert "s3cret" not in "".join(traceback.format_exception(found.value))


def test_the_admin_api_may_be_given_the_same_again() -> None:
    given = of_client("token", "token:s3cret")
    given |= {name.replace("client", "admin"): text for name, text in given.items()}
    cluster = {"root": "pulsar://localhost:1", "adminUrl": "http://localhost:1", "topic": "t"}
    found = read_options({**cluster, **given}, BATCH).credentials
    assert found.parameters == {"token": "s3cret"}
    assert "s3cret" not in repr(found)


def test_spark_reads_and_writes_and_shows_no_secret(
    spark: Any, guarded: Guarded, issuer: Issuer, tmp_path: Path
) -> None:
    secrets = by_oauth2(issuer, clientId="job", clientSecret=SECRET)
    options = {**guarded.options, "topic": "t", **secrets}
    frame = spark.read.format("pulsarx").options(**options, columns="value").load()
    assert [bytes(row["value"]) for row in frame.collect()][:3] == VALUES
    executions = spark._jsparkSession.sharedState().statusStore()
    rows = spark.sql("SELECT 'by spark' AS value")
    spark.conf.set("spark.sql.ui.explainMode", "extended")  # the only one that shows options
    rows.write.format("pulsarx").options(**options).mode("append").save()
    spark.conf.unset("spark.sql.ui.explainMode")
    assert guarded.values(secrets)[-1] == b"by spark"
    query = (
        spark.readStream.format("pulsarx")
        .options(**options, startingOffsets="earliest")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(200)
    shown = [
        frame._jdf.queryExecution().toString(),
        *(each.json for each in query.recentProgress),
        *(path.read_text() for path in (tmp_path / "checkpoint" / "offsets").glob("[0-9]*")),
    ]
    plans = executions.executionsList()
    shown += [str(plans.apply(at).physicalPlanDescription()) for at in range(plans.size())]
    written = [text for text in shown if "AppendData" in text]
    assert any("authParams=*" in text for text in written) and len(shown) > 4
    for text in shown:
        assert SECRET not in text and json.dumps(SECRET)[1:-1] not in text
