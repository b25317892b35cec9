"""What the path decides about packets, worked out a second time: from the published generator, without Crosswind.

A packet is lost or not by its index alone, so that a test can say beforehand which packets a seed loses, and find a
seed that loses just those that it wants to lose.
"""

import hashlib
from collections.abc import Iterator, Mapping, Set
from itertools import count

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

_WORDS = 1 << 64
# SplitMix64: Steele, Lea & Flood, "Fast splittable pseudorandom number generators", 2014.
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST_FACTOR = 0xBF58476D1CE4E5B9
_SECOND_FACTOR = 0x94D049BB133111EB


def lost_packets(seed: int, direction: str, loss: float, packets: int) -> list[int]:
    """The indices, of the first `packets` in a direction, that random loss of this probability drops."""
    stream, limit = _child(_child(seed, direction), "loss"), int(loss * _WORDS)
    return [index for index in range(packets) if _word(stream, index) < limit]


def seed_that_loses(wanted: Mapping[str, Set[int]], loss: float, packets: int) -> int:
    """The smallest seed that loses just the wanted packets, of the first `packets` of each direction that is named."""
    return next(
        seed
        for seed in count(1)
        if all(_loses(seed, direction, indices, loss, packets) for direction, indices in wanted.items())
    )


def guest_draws(seed: int, *, minute: int = 0) -> Iterator[bytes]:
    """What Linux's generator of random numbers gives in a guest of this seed: 32 bytes of each draw.

    Programs and the kernel itself draw from it in turn. Each minute it has another key. Source: drivers/char/random.c.
    """
    stream, pool = seed ^ _GOLDEN, hashlib.blake2s()

    def new_key() -> bytes:
        nonlocal stream, pool
        given = b"".join(_word(stream, index).to_bytes(8, "little") for index in range(4))
        stream, secret = stream + 4 * _GOLDEN, pool.digest()
        pool = hashlib.blake2s(key=hashlib.blake2s(given + bytes(8), key=secret).digest())
        return hashlib.blake2s(given + (1).to_bytes(8, "little"), key=secret).digest()

    new_key()
    # A guest's first process writes the seed, and asks for another key.
    pool.update(seed.to_bytes(8, "little"))
    for _ in range(1 + minute):
        key = new_key()
    # Of the key that the machine has come those of its processors.
    _, key = _key_and_draw(key)
    while True:
        key, draw = _key_and_draw(key)
        yield draw


def _key_and_draw(key: bytes) -> tuple[bytes, bytes]:
    """The next key of a generator that erases each key at once, and 32 random bytes."""
    block = Cipher(ChaCha20(key, bytes(16)), None).encryptor().update(bytes(64))
    return block[:32], block[32:]


def _loses(seed: int, direction: str, wanted: Set[int], loss: float, packets: int) -> bool:
    """Whether a seed loses just these; most seeds are told apart by their first packets."""
    stream, limit = _child(_child(seed, direction), "loss"), int(loss * _WORDS)
    return all((_word(stream, index) < limit) == (index in wanted) for index in range(packets))


def _child(seed: int, label: str) -> int:
    """The seed of another stream: the label's bytes mixed in, one by one."""
    seed = _mix(seed ^ _GOLDEN)
    for byte in label.encode():
        seed = _mix(seed ^ byte)
    return seed


def _word(stream: int, index: int) -> int:
    """The word at a place of a stream."""
    return _mix((stream + _GOLDEN * (index + 1)) % _WORDS)


def _mix(word: int) -> int:
    word = (word ^ (word >> 30)) * _FIRST_FACTOR % _WORDS
    word = (word ^ (word >> 27)) * _SECOND_FACTOR % _WORDS
    return word ^ (word >> 31)
