"""What a run's result is made of: the objects of `crosswind.result/1` (docs/result.md).

Result -> Answer -> AnswerCase -> Interval
       -> CellResult -> MetricEstimates -> Interval
                     -> Ends -> End
       -> Conditions, ClaimResult, ThresholdResult, LevelComparison, EquivalenceClaim, PublishedComparison, Figure, Fit
       -> ClientProgram
"""

from crosswind.analysis.result.answers import Answer, AnswerCase, AnswerSide, AnswerVerdict, CaseVerdict
from crosswind.analysis.result.cells import (
    CellResult,
    Clock,
    DelayError,
    Direction,
    Dropped,
    FailureCount,
    Fidelity,
    HostProfile,
    Ledger,
    ModelPrediction,
    Profile,
)
from crosswind.analysis.result.checks import CheckNumber, CheckResult
from crosswind.analysis.result.claims import ClaimPart, ClaimResult, ClaimVerdict
from crosswind.analysis.result.comparisons import (
    EquivalenceClaim,
    EquivalencePair,
    LevelComparison,
    PublishedComparison,
    StatisticComparison,
)
from crosswind.analysis.result.conditions import Condition, Conditions, PathConditions
from crosswind.analysis.result.ends import End, Ends
from crosswind.analysis.result.estimates import Diagnostics, Interval, MetricEstimates
from crosswind.analysis.result.figures import Figure, FigureCurve, FigurePoint, PublishedPoint
from crosswind.analysis.result.fits import Fit, FitCurve, FitRow, PublishedFit
from crosswind.analysis.result.model_errors import ModelErrors
from crosswind.analysis.result.network import NetworkConditions, Retransmitted, ServerClock
from crosswind.analysis.result.programs import ClientProgram, ProgramFunction, ProgramProblem
from crosswind.analysis.result.result import SCHEMA, Result, schema_text
from crosswind.analysis.result.thresholds import ThresholdCell, ThresholdResult, ThresholdVerdict

__all__ = [
    "SCHEMA",
    "Answer",
    "AnswerCase",
    "AnswerSide",
    "AnswerVerdict",
    "CaseVerdict",
    "CellResult",
    "CheckNumber",
    "CheckResult",
    "ClaimPart",
    "ClaimResult",
    "ClaimVerdict",
    "ClientProgram",
    "Clock",
    "Condition",
    "Conditions",
    "DelayError",
    "Diagnostics",
    "Direction",
    "Dropped",
    "End",
    "Ends",
    "EquivalenceClaim",
    "EquivalencePair",
    "FailureCount",
    "Fidelity",
    "Figure",
    "FigureCurve",
    "FigurePoint",
    "Fit",
    "FitCurve",
    "FitRow",
    "HostProfile",
    "Interval",
    "Ledger",
    "LevelComparison",
    "MetricEstimates",
    "ModelErrors",
    "ModelPrediction",
    "NetworkConditions",
    "PathConditions",
    "Profile",
    "ProgramFunction",
    "ProgramProblem",
    "PublishedComparison",
    "PublishedFit",
    "PublishedPoint",
    "Result",
    "Retransmitted",
    "ServerClock",
    "StatisticComparison",
    "ThresholdCell",
    "ThresholdResult",
    "ThresholdVerdict",
    "schema_text",
]
