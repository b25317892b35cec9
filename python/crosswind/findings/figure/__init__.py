"""Figures requested by a study: a metric over a factor's levels."""
