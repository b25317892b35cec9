"""Statistics: a number never travels without its interval, its n and its method (docs/statistics.md)."""

from crosswind.stats.binomial import Share, clopper_pearson, share_interval, share_of, wilson
from crosswind.stats.bootstrap import Resampled, constant, design_effect, resample
from crosswind.stats.compare import Comparison, cliffs_delta, difference_of_means, hodges_lehmann, ratio_of_means
from crosswind.stats.equivalence import EquivalenceTest, margin_of_ratio, tost, tost_ratio, tost_shares
from crosswind.stats.estimate import EXACT, Estimate, TooFewSamples, exactly, refused
from crosswind.stats.exponential import Exponential, aicc, fit_exponential
from crosswind.stats.mean import mean_interval
from crosswind.stats.multiplicity import holm
from crosswind.stats.quantile import median_interval, quantile_interval, quantile_ranks, quantile_size

__all__ = [
    "EXACT",
    "Comparison",
    "EquivalenceTest",
    "Estimate",
    "Exponential",
    "Resampled",
    "Share",
    "TooFewSamples",
    "aicc",
    "cliffs_delta",
    "clopper_pearson",
    "constant",
    "design_effect",
    "difference_of_means",
    "exactly",
    "fit_exponential",
    "hodges_lehmann",
    "holm",
    "margin_of_ratio",
    "mean_interval",
    "median_interval",
    "quantile_interval",
    "quantile_ranks",
    "quantile_size",
    "ratio_of_means",
    "refused",
    "resample",
    "share_interval",
    "share_of",
    "tost",
    "tost_ratio",
    "tost_shares",
    "wilson",
]
