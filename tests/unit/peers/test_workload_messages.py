"""The messages of clients in JavaScript, byte for byte those of Crosswind's own (crates/workload/src/message.rs)."""

import json
import subprocess
from importlib.resources import files

import pytest

from conftest import requires

SCRIPT = """
const { Messages, same } = await import(process.argv[1]);
const calls = JSON.parse(process.argv[2]);
const found = calls.map(([text, method, ...numbers]) => {
  const made = new Messages(text)[method](...numbers);
  return typeof made === "string" ? made : [...made];
});
const [a, b] = [new Messages(false).make(1, 9), new Messages(false).make(2, 9)];
console.log(JSON.stringify([found, same(a, a.slice()), same(a, b), same("x", "x"), same("x", "xy")]));
"""


@pytest.fixture(scope="module")
def module() -> str:
    return str(files("crosswind.peers").joinpath("workloads", "messages.mjs"))


def run(module: str, *calls: list[object]) -> list[object]:
    """What each call makes: `[text, method, numbers...]`."""
    command = [requires("node"), "--input-type=module", "-e", SCRIPT, "--", f"file://{module}", json.dumps(calls)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    found, *compared = json.loads(ended.stdout)
    assert compared == [True, False, True, False]
    return list(found)


def text_of(number: int, size: int) -> str:
    """Six bits of the number a character, from '0'; then the alphabet."""
    characters = [chr(48 + (number >> 6 * i & 63)) for i in range(8)]
    return "".join([*characters, *(chr(97 + i % 26) for i in range(8, size))])[:size]


def test_messages_carry_their_number(module: str) -> None:
    found = run(
        module,
        [False, "make", 300, 1],
        [False, "make", 300, 10],
        [False, "make", 2**40 + 7, 8],
        [True, "make", 123_456_789, 40],
        [True, "make", 5, 3],
    )
    assert found == [
        [44],
        [44, 1, 0, 0, 0, 0, 0, 0, 8, 9],
        [7, 0, 0, 0, 0, 1, 0, 0],
        text_of(123_456_789, 40),
        text_of(5, 3),
    ]


def test_replies_carry_as_much_of_it_as_there_is(module: str) -> None:
    # Number, bytes of the request, bytes of the reply.
    found = run(
        module,
        [False, "reply", 300, 1, 4],
        [False, "reply", 300, 20, 1],
        [False, "reply", 300, 10, 10],
        [True, "reply", 300, 1, 4],
    )
    # The lowest six bits of 300 are 44, and 48 + 44 is a backslash.
    assert found == [[44, 1, 2, 3], [44], [44, 1, 0, 0, 0, 0, 0, 0, 8, 9], "\\bcd"]


def test_what_is_seen_of_a_number(module: str) -> None:
    # The pattern of bytes starts anew after 251.
    (long,) = run(module, [False, "make", 0, 260])
    assert isinstance(long, list)
    assert long[:8] + long[250:253] == [0] * 8 + [250, 0, 1]
