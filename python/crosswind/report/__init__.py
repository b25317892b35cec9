"""Reports: a result as terminal text, one HTML file, JSON, CSV or Parquet. Renders anywhere, starts nothing."""

from crosswind.report.export import estimates_frame, samples_frame, write_csv, write_json, write_parquet
from crosswind.report.html import write_html
from crosswind.report.text.terminal import print_result

__all__ = [
    "estimates_frame",
    "print_result",
    "samples_frame",
    "write_csv",
    "write_html",
    "write_json",
    "write_parquet",
]
