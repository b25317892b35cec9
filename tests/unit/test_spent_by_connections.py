"""What an exchange over several connections spent its time on, of times that are added up by hand."""

import polars as pl

from crosswind.catalog.tables import SPENT
from crosswind.store.spent import TIERS, with_connections

Piece = tuple[int, int, int, str]
"""Connection, from, to, part."""


def spent(
    *pieces: Piece, began: int = 0, ended: int = 100, without_pieces: Piece | None = None, is_cut_off: bool = False
) -> dict[str, int]:
    """What the only exchange of a repetition spent its time on, without what is 0."""
    schema = {"connection": pl.UInt64, "from_ns": pl.Int64, "to_ns": pl.Int64, "part": pl.String}
    table = pl.DataFrame(list(pieces), schema, orient="row")
    every = pl.DataFrame([*pieces, *([without_pieces] if without_pieces else [])], schema, orient="row")
    connections = every.group_by("connection").agg(pl.col("from_ns").min(), pl.col("to_ns").max())
    samples = pl.DataFrame({"exchange": [0], "outcome": ["ok"], "sent_ns": [began], "received_ns": [ended]})
    found = with_connections(SPENT.empty, samples, connections, table, is_cut_off=is_cut_off)
    assert found.schema == SPENT.schema
    row = found.row(0, named=True)
    assert sum(ns for name, ns in row.items() if name not in ("exchange", "whole_ns")) == row["whole_ns"]
    return {name.removesuffix("_ns"): ns for name, ns in row.items() if ns}


def test_one_connection_is_cut_to_its_exchange_and_the_rest_is_the_clients() -> None:
    pieces = [(0, 10, 40, "tcp_handshake"), (0, 40, 70, "propagation_forward"), (0, 70, 120, "closing")]
    assert spent(*pieces, ended=90) == {
        "whole": 90, "client_host": 10, "tcp_handshake": 30, "propagation_forward": 30, "closing": 20,
    }  # fmt: skip


def test_a_moment_is_shared_by_what_waits_for_the_network_then() -> None:
    # From 0 to 30 the first waits alone, for the other is at its host; until 60 both do; then the link holds all up.
    first = [(0, 0, 60, "receive_window"), (0, 60, 70, "serialisation_reverse"), (0, 70, 100, "server_host")]
    other = [(1, 0, 30, "client_host"), (1, 30, 80, "fast_recovery"), (1, 80, 100, "closing")]
    assert spent(*first, *other) == {
        "whole": 100, "receive_window": 45, "fast_recovery": 25, "serialisation_reverse": 10, "server_host": 20,
    }  # fmt: skip


def test_shares_that_are_no_whole_numbers_sum_to_the_whole() -> None:
    pieces = [(number, 0, 100, part) for number, part in enumerate(("nagle", "pacing", "zero_window"))]
    assert sorted(spent(*pieces).values()) == [33, 33, 34, 100]


def test_a_connection_whose_pieces_were_not_kept_is_unknown_where_no_other_one_tells() -> None:
    assert spent((0, 20, 50, "nagle"), without_pieces=(1, 10, 100, "")) == {
        "whole": 100, "client_host": 10, "nagle": 30, "unknown": 60,
    }  # fmt: skip


def test_what_comes_after_the_last_piece_or_packet_that_was_kept_is_unknown() -> None:
    # Of the first connection pieces were kept until 50, of the cell packets until 70.
    assert spent((0, 20, 50, "nagle"), without_pieces=(0, 50, 70, "")) == {
        "whole": 100, "client_host": 50, "nagle": 30, "unknown": 20,
    }  # fmt: skip
    assert spent((0, 20, 50, "nagle"), without_pieces=(0, 50, 70, ""), is_cut_off=True) == {
        "whole": 100, "client_host": 20, "nagle": 30, "unknown": 50,
    }  # fmt: skip


def test_what_is_told_already_stays() -> None:
    samples = pl.DataFrame({"exchange": [0], "outcome": ["ok"], "sent_ns": [0], "received_ns": [9]})
    named = {**dict.fromkeys(SPENT.schema, 0), "whole_ns": 9, "jitter_forward_ns": 9}
    told = pl.DataFrame([named], SPENT.schema)
    pieces = pl.DataFrame({"connection": [0], "from_ns": [0], "to_ns": [9], "part": ["nagle"]})
    assert with_connections(told, samples, pieces, pieces).equals(told)


def test_every_part_has_one_place_in_the_order() -> None:
    parts = [name.removesuffix("_ns") for name in SPENT.schema if name not in ("exchange", "whole_ns")]
    assert sorted(part for tier in TIERS for part in tier) == sorted(parts)
