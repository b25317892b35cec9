"""Reports: a result as terminal text, one HTML file, JSON, CSV or Parquet. Renders anywhere, starts nothing."""
