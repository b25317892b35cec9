"""The objects below one address on an object store, by obstore; and server errors in words.

Credentials, region and endpoint come from the environment, else the profile in ~/.aws, else boto3 if installed. None
is kept, shown or logged.
"""

import configparser
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind.errors import StoreError, UsageError
from crosswind.files.regular_files import read_regular
from crosswind.store.addresses import Address

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import S3Store

WAIT = "CROSSWIND_OBJECTS_WAIT"
"""The variable with the seconds to retry a silent server."""
_WAIT_S = 120.0
_DELETED_AT_ONCE = 1000
_MOST_OF_A_PROFILE = 1 << 20

_KEYS_IN = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE")
_CONTAINER = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_CREDENTIALS_HINT = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; AWS_ENDPOINT_URL for another server"
)
_DENIED = (
    "AccessDenied",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "401 ",
    "403 ",
    "UserNotFound",
)


class ObjectError(StoreError):
    """An object store refused a request."""


class AbsentError(ObjectError):
    """There is no such object."""


class TakenError(ObjectError):
    """An object is there already, or somebody has changed it meanwhile."""


@dataclass(frozen=True)
class StoredObject:
    """An object's metadata. Attributes: changed: time written, by the server's clock."""

    size_bytes: int
    tag: str
    changed: datetime


def _stored(entry: "ObjectMeta") -> StoredObject:
    return StoredObject(entry["size"], entry["e_tag"] or "", entry["last_modified"])


class Bucket:
    """The objects below an address. Raises: UsageError without obstore or credentials."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.wait_s = wait_s()
        self._endpoint, self._store = _store(address, self.wait_s)

    def listed(self) -> dict[str, StoredObject]:
        """Every object, by its name below the address. Raises: ObjectError."""
        with self._errors("list", ""):
            return {entry["path"]: _stored(entry) for entries in self._store.list() for entry in entries}

    def top(self) -> tuple[list[str], list[str]]:
        """The folders and the files directly below the address. Raises: ObjectError."""
        with self._errors("list", ""):
            listing = self._store.list_with_delimiter()
            return sorted(listing["common_prefixes"]), [entry["path"] for entry in listing["objects"]]

    def read(self, name: str) -> tuple[bytes, StoredObject]:
        """An object's content. Raises: AbsentError, ObjectError."""
        with self._errors("read", name):
            got = self._store.get(name)
            stored = _stored(got.meta)
            return bytes(got.bytes()), stored

    def fetch(self, name: str, place: Path) -> str:
        """Writes an object to a file. Returns: its tag. Raises: AbsentError, ObjectError, OSError."""
        part = place.with_name(f"{place.name}.part")
        with self._errors("read", name):
            got = self._store.get(name)
            tag = got.meta["e_tag"] or ""
            place.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                for piece in got:
                    file.write(piece)
        part.rename(place)
        return tag

    def write(self, name: str, content: bytes | Path) -> str:
        """Writes an object. Returns: its new tag. Raises: ObjectError; FileNotFoundError if the file is gone."""
        if isinstance(content, Path) and content.stat().st_size <= _SINGLE_PUT_BYTES:
            content = content.read_bytes()
        with self._errors("write", name):
            return self._store.put(name, content)["e_tag"] or ""

    def replace(self, name: str, content: bytes, tag: str | None) -> str:
        """As `write`, if the object still has this tag, or None is given and there is no such object.

        Raises: TakenError if not; ObjectError.
        """
        try:
            with self._errors("write", name):
                mode: Any = "create" if tag is None else {"e_tag": tag}
                return self._store.put(name, content, mode=mode, use_multipart=False)["e_tag"] or ""
        except TakenError:
            with suppress(AbsentError):
                found, stored = self.read(name)
                if found == content:
                    return stored.tag  # An answer was lost.
            raise

    def remove(self, names: Sequence[str]) -> None:
        """Removes objects. Raises: ObjectError."""
        for start in range(0, len(names), _DELETED_AT_ONCE):
            with self._errors("remove", names[start]):
                self._store.delete(list(names[start : start + _DELETED_AT_ONCE]))

    @contextmanager
    def _errors(self, what: str, name: str) -> Iterator[None]:
        from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError, PreconditionError

        try:
            yield
        except (BaseError, FileNotFoundError, PermissionError, NotImplementedError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # A local file.
            where = f"{self.address}/{name}".rstrip("/")
            reason, hint = self._reason(str(error))
            kind = ObjectError
            if isinstance(error, (AlreadyExistsError, PreconditionError)):
                kind = TakenError
            elif isinstance(error, FileNotFoundError) and _found(_CODE, str(error)) in ("NoSuchKey", ""):
                kind = AbsentError
            elif isinstance(error, NotSupportedError) or "NotImplemented" in reason:
                hint = UNCONDITIONAL_HINT
            raise kind(f"cannot {what} {where}: {reason}", hint=hint) from None

    def _reason(self, text: str) -> tuple[str, str | None]:
        """The server's message without the request, and a hint."""
        code, message = _found(_CODE, text), _found(r"<Message>([^<]*)</Message>", text)
        status = _found(r"status code: (\d+ [A-Za-z ]+)", text)
        if code == "NoSuchBucket":
            return f"there is no bucket {self.address.bucket}", "create it first, or name another one"
        said = ": ".join(filter(None, [code or status, message]))
        if any(word in f"{code} {status} " for word in _DENIED):
            return said or "permission denied", _CREDENTIALS_HINT
        if said:
            return said, None
        if "HTTP error" in text:
            return f"{self._endpoint} does not answer", "is it up, and does AWS_ENDPOINT_URL name it?"
        first = text.splitlines()[0] if text else "no reason given"
        return re.sub(r"://[^/\s@]*@", "://", first)[:200], None


_CODE = r"<Code>([^<]*)</Code>"
UNCONDITIONAL_HINT = (
    "a run needs a server that keeps conditional writes (If-None-Match, If-Match), as Amazon S3 and most others do"
)
_SINGLE_PUT_BYTES = 5 << 20
"""A larger object is sent in parts."""


def wait_s() -> float:
    """Seconds to retry a silent server. Raises: UsageError."""
    text = os.environ.get(WAIT, "")
    try:
        seconds = float(text) if text else _WAIT_S
    except ValueError:
        seconds = -1.0
    if not 1 <= seconds <= 3600:
        raise UsageError(f"{WAIT}={text}: it is no number of seconds from 1 to 3600", hint=f"{_WAIT_S:.0f} without it")
    return seconds


def _store(address: Address, patience_s: float) -> "tuple[str, S3Store]":
    if find_spec("obstore") is None:
        raise UsageError(f"{address} takes the package obstore", hint="pip install 'crosswind[s3]'")
    from obstore.store import S3Store

    profile = _profile()
    config: dict[str, Any] = {"region": _first(profile, "region", "AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1"}
    endpoint = _first(profile, "endpoint_url", *_ENDPOINTS)
    if endpoint:
        config["endpoint"] = endpoint
    provider = None
    if not any(map(os.environ.get, (*_KEYS_IN, *_CONTAINER))):
        if "aws_access_key_id" in profile and "aws_secret_access_key" in profile:
            config["access_key_id"] = profile["aws_access_key_id"]
            config["secret_access_key"] = profile["aws_secret_access_key"]
            if "aws_session_token" in profile:
                config["session_token"] = profile["aws_session_token"]
        else:
            provider = _provider(address)
    return _without_user(endpoint or "Amazon S3"), S3Store(
        address.bucket,
        prefix=address.prefix or None,
        config=config,  # type: ignore[arg-type] # A dict with some keys of S3Config.
        client_options={"allow_http": bool(endpoint and endpoint.startswith("http://"))},
        retry_config={"max_retries": 1000, "retry_timeout": timedelta(seconds=patience_s), "backoff": _BACKOFF},
        credential_provider=provider,
    )


_BACKOFF: Any = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2}


def _provider(address: Address) -> Any:
    """Credentials from boto3; None for the machine's role in a cloud. Raises: UsageError without any source."""
    if find_spec("boto3") is not None:
        from obstore.auth.boto3 import Boto3CredentialProvider

        try:
            return Boto3CredentialProvider()
        except Exception as error:  # botocore raises many kinds: profiles, files, servers.
            if not isinstance(error, ValueError):
                raise _without_credentials(address) from None
    if os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true" or not _is_ec2():
        raise _without_credentials(address)
    return None


def _is_ec2() -> bool:
    """Whether this is an Amazon machine, with a role for its programs. Elsewhere a request would time out."""
    try:
        return "Amazon EC2" in Path("/sys/class/dmi/id/sys_vendor").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return False


def _without_credentials(address: Address) -> UsageError:
    return UsageError(f"there are no credentials for {address}", hint=_CREDENTIALS_HINT)


def _profile() -> Mapping[str, str]:
    """The profile in ~/.aws named by AWS_PROFILE, without its indirections (a role, single sign-on)."""
    name = os.environ.get("AWS_PROFILE", "default")
    files = [
        (os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config", name if name == "default" else f"profile {name}"),
        (os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials", name),
    ]
    found: dict[str, str] = {}
    for file, section in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(read_regular(Path(file).expanduser(), _MOST_OF_A_PROFILE).decode())
        except FileNotFoundError:
            continue
        except (configparser.Error, UnicodeDecodeError, OSError):
            # The parser quotes the line: it may hold a key.
            raise UsageError(
                f"{file} cannot be read", hint="it has [sections] with lines as `region = eu-west-1`"
            ) from None
        if parser.has_section(section):
            found |= dict(parser.items(section))
    return found


def _first(profile: Mapping[str, str], key: str, *variables: str) -> str | None:
    return next(filter(None, map(os.environ.get, variables)), None) or profile.get(key)


def _without_user(endpoint: str) -> str:
    return re.sub(r"://[^/@]*@", "://", endpoint)


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1].strip() if match else ""
