"""Reports: a result as terminal text, one HTML file, JSON, CSV or Parquet. Renders anywhere, starts nothing.

What a function needs (altair, polars, rich) is imported when the function is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosswind.report.export import (
        comparisons_frame,
        estimates_frame,
        samples_frame,
        write_csv,
        write_json,
        write_parquet,
    )
    from crosswind.report.files import write_text
    from crosswind.report.junit import write_junit
    from crosswind.report.overview_page import overview_page_of, write_overview
    from crosswind.report.run_page import drawn_page, page_of, write_html
    from crosswind.report.text.terminal import print_screen

__all__ = [
    "comparisons_frame",
    "drawn_page",
    "estimates_frame",
    "overview_page_of",
    "page_of",
    "print_screen",
    "samples_frame",
    "write_csv",
    "write_html",
    "write_json",
    "write_junit",
    "write_overview",
    "write_parquet",
    "write_text",
]

_MODULES = dict.fromkeys(__all__, "export") | {
    "print_screen": "text.terminal",
    "write_junit": "junit",
    "overview_page_of": "overview_page",
    "write_overview": "overview_page",
    "drawn_page": "run_page",
    "page_of": "run_page",
    "write_html": "run_page",
    "write_text": "files",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
