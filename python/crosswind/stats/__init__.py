"""Statistics: a number never travels without its interval, its n and its method (docs/statistics.md)."""

from crosswind.stats.design import LIGHT, Design, Tail
from crosswind.stats.differences import Side, difference, pairs_of, ratio
from crosswind.stats.effect import Effect, estimate_of
from crosswind.stats.estimate import EXACT, Estimate, TooFewSamples, exactly, refused, without_interval
from crosswind.stats.exponential import Exponential, aicc, fit_exponential
from crosswind.stats.mean import mean_interval, trimmed_mean_interval
from crosswind.stats.multiplicity import benjamini_hochberg, holm
from crosswind.stats.quantile import quantile_interval, quantile_of, quantile_size
from crosswind.stats.ranks import cliffs_delta, paired_shift, unpaired_shift
from crosswind.stats.repetitions import Repetitions
from crosswind.stats.share import Share, clopper_pearson, share_interval

__all__ = [
    "EXACT",
    "LIGHT",
    "Design",
    "Effect",
    "Estimate",
    "Exponential",
    "Repetitions",
    "Share",
    "Side",
    "Tail",
    "TooFewSamples",
    "aicc",
    "benjamini_hochberg",
    "cliffs_delta",
    "clopper_pearson",
    "difference",
    "estimate_of",
    "exactly",
    "fit_exponential",
    "holm",
    "mean_interval",
    "paired_shift",
    "pairs_of",
    "quantile_interval",
    "quantile_of",
    "quantile_size",
    "ratio",
    "refused",
    "share_interval",
    "trimmed_mean_interval",
    "unpaired_shift",
    "without_interval",
]
