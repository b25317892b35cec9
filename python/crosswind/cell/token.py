"""The token shared by a server and its client: made, kept in a file, handed to crosswind-cell.

It travels only in the environment: not in a run directory, a log, a command line.
"""

import os
import secrets
from pathlib import Path

from crosswind.errors import UsageError
from crosswind.files.regular_files import open_regular

VARIABLE = "CROSSWIND_TOKEN"
SHORTEST = 20
"""Characters. A shorter one is guessable, or incomplete."""

_BYTES = 16
_OTHERS = 0o077


def new_token() -> str:
    """A token of 128 random bits, in hexadecimal."""
    return secrets.token_hex(_BYTES)


def read_token(path: Path) -> str:
    """The token in a file. Raises: UsageError when nobody can read it, others can, or it is none."""
    try:
        with open_regular(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(1000).decode("ascii").strip()
    except FileNotFoundError:
        raise UsageError(
            f"there is no token file {path}",
            hint="copy the one that `crosswind serve --token-file FILE` has made on the other machine",
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text of ASCII characters"
        raise UsageError(f"cannot read the token file {path}: {reason}", hint="it holds one line, the token") from None
    if mode & _OTHERS:
        raise UsageError(f"others can read the token file {path}", hint=f"chmod 600 {path}")
    return check_token(text, str(path))


def make_or_read_token(path: Path) -> tuple[str, bool]:
    """The token in a file, made if missing. Returns: it, and whether it was made.

    Raises: UsageError, as `read_token`, or when the file cannot be made.
    """
    token = new_token()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return read_token(path), False
    except OSError as error:
        raise UsageError(f"cannot make the token file {path}: {error.strerror}", hint="name another place") from None
    with open(descriptor, "w", encoding="ascii") as file:  # noqa: PTH123 - a descriptor
        file.write(f"{token}\n")
    return token, True


def check_token(token: str, where: str) -> str:
    """The token itself. Args: where: its origin. Raises: UsageError for a short one, or spaces."""
    if len(token) < SHORTEST:
        raise UsageError(
            f"the token in {where} has {len(token)} characters, and needs {SHORTEST}",
            hint="`crosswind serve` makes one; copy all of it",
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(f"the token in {where} has characters that no token has", hint="it is one word, on one line")
    return token


def use_token(path: Path | None) -> None:
    """Gives the token to every cell in this process. Args: path: a token file; None for the environment's own.

    Raises: UsageError without a token.
    """
    if path is not None:
        os.environ[VARIABLE] = read_token(path)
        return
    token = os.environ.get(VARIABLE)
    if not token:
        raise UsageError(
            "there is no token, by which the server would know this machine",
            hint=f"give the one that `crosswind serve` has: --token-file FILE, or {VARIABLE} in the environment",
        )
    check_token(token, VARIABLE)
