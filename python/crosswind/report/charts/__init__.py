"""A report's charts, as Vega-Lite specifications."""
