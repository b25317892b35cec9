"""`crosswind predict`: all models side by side, as text and as JSON, and what it says to a path that cannot be."""

import json
import math
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from conftest import ROOT
from crosswind.cli.predict import command
from crosswind.models import MODELS
from crosswind.models.mathis import mathis
from crosswind.models.pftk import pftk_goodput

PATH = ("--rate", "6mbit", "--rtt", "30ms", "--loss", "2%")
RENO = (*PATH, "--congestion-control", "reno")


QUICK = [name for name, model in MODELS.items() if not model.is_slow]


def predicted(*options: str) -> dict[str, dict]:
    found = CliRunner().invoke(command, [*options, "--json"], catch_exceptions=False)
    assert found.exit_code == 0
    plain = json.loads(found.output)
    assert plain["schema"] == "crosswind.predictions/1"
    return {made["model"]: made for made in plain["predictions"]}


def test_every_model_is_shown_with_its_formulas_number() -> None:
    made = predicted("--size", "256kB", *RENO)
    assert list(made) == QUICK
    assert made["mathis"]["value"] == pytest.approx(float(mathis(1448, 0.03, 0.02)))
    assert made["pftk-goodput"]["value"] == pytest.approx(8 * 1448 * float(pftk_goodput(0.02, 0.03, 0.23)))
    assert made["ping-pong"]["value"] == pytest.approx(1e9 * (0.03 + (0.4 + 0.06) * 0.02 / 0.96))


def test_the_round_trip_is_the_one_that_was_asked_about() -> None:
    for options in (("--size", "256kB", *RENO), ("--rtt", "0", "--size", "1MB", "--rate", "8mbit")):
        for made in predicted(*options).values():
            assert made["inputs"]["rtt_s"] == (0 if "0" in options else 0.03)
            assert not any("delay" in note and "path" in note for note in made["notes"])


@pytest.mark.parametrize("size", ["100GB", "1000000TB"])
def test_a_huge_transfer_is_predicted_at_once(size: str) -> None:
    # On an unlimited link windows of 10, 20, 40, ... segments leave in round trips of 30 ms.
    number = {"100GB": 100 * 10**9, "1000000TB": 10**18}[size]
    rounds = math.floor(math.log2((math.ceil(number / 1448) - 1) / 10 + 1))
    made = predicted("--size", size, "--rtt", "30ms")
    assert made["slow-start"]["value"] == made["transfer"]["value"] == pytest.approx(rounds * 30e6)
    assert predicted("--size", size, "--rtt", "30ms", "--loss", "0.001%")["transfer"]["value"] > rounds * 30e6


def test_without_a_size_there_is_no_transfer_time() -> None:
    assert {made["metric"] for made in predicted(*RENO).values()} == {"goodput", "rtt"}


def test_options_reach_the_models() -> None:
    made = predicted(
        *RENO, "--mss", "1000", "--window", "10kB", "--min-rto", "1s", "--model", "mathis", "--model", "pftk"
    )
    assert list(made) == ["mathis", "pftk"]
    inputs = made["mathis"]["inputs"]
    assert (inputs["mss_bytes"], inputs["window_segments"], inputs["timeout_s"]) == (1000, 10, 1.03)
    old = predicted(*PATH, "--profile", "freebsd-8", "--model", "pftk")["pftk"]
    assert old["inputs"]["timeout_s"] == pytest.approx(0.26)


def test_the_text_has_each_model_once_and_its_caveats_below() -> None:
    text = CliRunner().invoke(command, ["--size", "256kB", *PATH], catch_exceptions=False).output
    lines = text.splitlines()
    assert lines[0] == "round trip 30ms · loss 2% each way · rate 6mbit · profile linux"
    assert sorted(line.split()[0] for line in lines if line.startswith("  ") and line[2] != " ") == sorted(QUICK)
    assert any(line.strip().startswith("mathis, mathis-c1: * 2 % of loss is above 1 %") for line in lines)
    assert "smallest measured round trip" not in text


def test_a_simulation_gives_a_distribution_and_is_repeatable() -> None:
    options = ["--size", "64kB", *RENO, "--simulate", "--runs", "50", "--seed", "3"]
    outputs = [CliRunner().invoke(command, [*options, "--json"], catch_exceptions=False).output for _ in range(2)]
    assert outputs[0] == outputs[1]
    found = json.loads(outputs[0])["simulated"]
    assert (found["runs"], found["seed"]) == (50, 3)
    assert 0 < found["p5"] <= found["p50"] <= found["p95"] <= found["p99"]
    assert found["p5"] < found["mean"] < found["p99"]
    text = CliRunner().invoke(command, options, catch_exceptions=False).output
    assert "simulated 50 times packet by packet" in text


@pytest.mark.parametrize(("name", "most"), [("ping-pong", 50), ("quic-ping-pong", 70)])
def test_a_formula_without_a_number_says_up_to_which_loss_it_has_one(name: str, most: int) -> None:
    text = CliRunner().invoke(command, ["--rtt", "30ms", "--loss", "80%", "--model", name]).output
    assert f"the formula needs a loss from 0 to below {most} %" in text


def test_a_round_trip_of_zero_and_no_loss_are_no_error() -> None:
    made = predicted("--rtt", "0", "--size", "1MB", "--rate", "8mbit")
    assert made["mathis"]["value"] == pytest.approx(8e6 * 1448 / 1500)
    assert made["slow-start"]["value"] == pytest.approx(1e9 * (1e6 - 1448 + 52 * 690) * 8 / 8e6, rel=1e-6)


def test_predicting_imports_neither_scipy_nor_polars() -> None:
    script = (
        "import sys\nfrom crosswind.cli import cli\n"
        "cli.main('predict --rtt 30ms --size 256kB --rate 6mbit --loss 2%'.split(), standalone_mode=False)\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(loaded & {'scipy', 'polars', 'altair', 'pydantic', 'rich'}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout.splitlines()[-1] == "[]"
