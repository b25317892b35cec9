"""What the path decides about packets, worked out a second time: from the published generator, without Crosswind.

A packet is lost or not by its index alone, so that a test can say beforehand which packets a seed loses, and find a
seed that loses just those that it wants to lose.
"""

from collections.abc import Mapping, Set
from itertools import count

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
