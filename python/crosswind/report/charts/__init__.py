"""The charts of a report, as Vega-Lite specifications."""
