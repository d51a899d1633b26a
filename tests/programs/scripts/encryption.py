"""Only the one who has the private key reads a message."""

import os
import tempfile
from pathlib import Path

import pulsar
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

folder = Path(tempfile.mkdtemp())
private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
(folder / "private.pem").write_bytes(
    private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
)
(folder / "public.pem").write_bytes(
    private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
)
keys = pulsar.CryptoKeyReader(str(folder / "public.pem"), str(folder / "private.pem"))
client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
knowing = client.subscribe("secrets", "knowing", crypto_key_reader=keys)
curious = client.subscribe(
    "secrets", "curious", crypto_failure_action=pulsar.ConsumerCryptoFailureAction.CONSUME
)
producer = client.create_producer("secrets", encryption_key="vault", crypto_key_reader=keys)
producer.send(b"the cake is real", partition_key="kitchen")

message = knowing.receive(timeout_millis=10000)
print(message.data(), message.partition_key())
context = message.encryption_context()
print([key.key for key in context.keys()], context.is_decryption_failed())
knowing.acknowledge(message)

sealed = curious.receive(timeout_millis=10000)
print(sealed.data() == b"the cake is real", sealed.encryption_context().is_decryption_failed())
curious.acknowledge(sealed)
client.close()
