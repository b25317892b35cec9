"""What a report sets beside the measurement: each published number, figure and fit knows its cells."""

import json

import pytest

from crosswind.errors import StudyError
from crosswind.execution.options import RunOptions
from crosswind.execution.planning import presentation
from crosswind.execution.session import start
from study_texts import FACTORS, SHOWN, study


def test_figures_and_fits_know_their_cells_by_meaning() -> None:
    read = study(FACTORS + SHOWN)
    shown = presentation(read)["asked"]
    # loss 0 %: rate 1 Mbit/s: cells 0, 1 (1000, 2000 bytes), rate 2 Mbit/s: cells 2, 3. Loss 5 %: cells 4 to 7.
    assert shown["figure"] == [
        {
            "title": "Time by loss", "metric": "total", "x": "path.loss", "series": "workload.size",
            "where": {"path.rate": "1mbit"}, "models": ["caia"], "scale": "auto", "note": "", "cells": [0, 1, 4, 5],
        },
        {
            "title": "Nothing varies", "metric": "rtt", "x": "path.mtu", "where": {}, "models": [], "scale": "log",
            "note": "", "cells": [0, 1, 2, 3, 4, 5, 6, 7],
        },
    ]  # fmt: skip
    (fit,) = shown["fit"]
    assert (fit["x"], fit["by"], fit["over"]) == ("path.loss", "workload.size", "path.rate")
    assert (fit["where"], fit["cells"]) == ({"path.loss": "0%"}, [0, 1, 2, 3])
    assert fit["published"] == [
        {"source": "s", "level": "1kB", "b": 0.04, "c": 21.0, "note": "", "cells": [0, 2]},
        {"source": "s", "level": "7", "a": 1.0, "note": "", "cells": []},
    ]
    assert [entry["cells"] for entry in shown["published"]] == [[4, 6]]
    assert json.loads(json.dumps(shown)) == shown


def test_every_place_that_names_models_is_told() -> None:
    read = study(FACTORS + SHOWN + '[report]\nmodels = ["mathis"]')
    assert read.models == ("mathis",)
    assert read.named_models == {"report.models": ("mathis",), "figure[1].models": ("caia",)}


def test_an_unknown_model_of_a_figure_is_refused_before_anything_runs() -> None:
    read = study((FACTORS + SHOWN).replace('"caia"', '"ciao"'))
    with pytest.raises(StudyError) as caught:
        start(read, RunOptions())
    assert caught.value.message == 'figure[1].models: "ciao" is not a model'


def test_models_are_not_drawn_beside_a_median_of_which_they_say_nothing() -> None:
    asked = (FACTORS + SHOWN).replace('models = ["caia"]', 'models = ["caia"]\nstatistic = "median"')
    with pytest.raises(StudyError) as caught:
        study(asked)
    assert caught.value.message == (
        "my.toml:15: figure[1].statistic: models predict means, and this figure draws the median"
    )
