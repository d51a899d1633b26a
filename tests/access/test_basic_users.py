"""Facts about names and passwords of a file of htpasswd."""

from __future__ import annotations

from pathlib import Path

import bcrypt
import pytest

from pulsarx import errors
from pulsarx.access.basic_users import BasicUsers


def line(name: str, password: str) -> str:
    """As `htpasswd -B` writes it, and cheaper."""
    found = bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
    return f"{name}:{found.replace('$2b$', '$2y$')}\n"


@pytest.fixture
def users(tmp_path: Path) -> BasicUsers:
    path = tmp_path / ".htpasswd"
    text = "# who\n\n" + line("alice", "wonder:land") + line("bob", "x" * 72) + line("zoë", "é")
    path.write_text(text, encoding="utf-8")
    return BasicUsers(str(path))


def test_name_and_password_give_the_role(users: BasicUsers) -> None:
    assert users.verify(b"alice:wonder:land").role == "alice"
    assert users.verify(b"bob:" + b"x" * 72).role == "bob"
    assert users.verify("zoë:é".encode()).role == "zoë"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"alice",
        b"alice:",
        b"alice:wonder",
        b"alice:wonder:land ",
        b"alice:wonder:land\0x",
        b"carol:wonder:land",  # nobody
        b":wonder:land",
        b"# who:x",
        b"bob:" + b"x" * 73,  # bcrypt looks at 72 bytes
        b"bob:" + b"x" * 71,
        b"\xff:\xff",
        b"Alice:wonder:land",
    ],
)
def test_what_proves_nothing_is_refused(users: BasicUsers, data: bytes) -> None:
    with pytest.raises(errors.AuthenticationError, match="unknown name, or"):
        users.verify(data)


@pytest.mark.parametrize(
    "hashed",
    [
        "$apr1$9Cv/OMGj$ZomWQzuQbL.3TRCS81A1g/",
        "plain",
        "{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs=",
        "",
        "$2y$99$" + "." * 53,
        "$2b$12$" + "!" * 53,
    ],
)
def test_other_hashes_than_those_of_bcrypt_are_refused_at_once(tmp_path: Path, hashed: str) -> None:
    path = tmp_path / "users"
    path.write_text(f"{line('alice', 'x')}bob:{hashed}\n")
    with pytest.raises(errors.InvalidConfiguration, match=r"line 2.*htpasswd -B") as caught:
        BasicUsers(str(path))
    assert not hashed or hashed not in str(caught.value)


def test_a_file_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidConfiguration, match="basic_auth_conf"):
        BasicUsers(str(tmp_path / "nothing"))


def test_in_a_file_without_names_nobody_is_found(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("")
    with pytest.raises(errors.AuthenticationError):
        BasicUsers(str(tmp_path / "users")).verify(b"alice:x")
