"""What a run's result is made of: the objects of `crosswind.result/1` (docs/result.md).

Result -> CellResult -> MetricEstimates -> Interval
                     -> Ends -> End
       -> Conditions, LevelComparison, ClientProgram
       -> of each kind of finding what its folder says (crosswind.findings)
"""

from crosswind.analysis.result.cells import (
    BackgroundPackets,
    CellResult,
    Clock,
    CpuProfile,
    DelayError,
    DirectionPackets,
    Dropped,
    FailureCount,
    Fidelity,
    HopPackets,
    HostCpuProfile,
    Ledger,
    ModelPrediction,
    SimulatedInterval,
)
from crosswind.analysis.result.comparisons import LevelComparison, StatisticComparison
from crosswind.analysis.result.conditions import (
    ChangeConditions,
    Conditions,
    FlowConditions,
    PathConditions,
    SettingValues,
)
from crosswind.analysis.result.ends import End, Ends
from crosswind.analysis.result.estimates import Diagnostics, MetricEstimates
from crosswind.analysis.result.flows import FlowResult
from crosswind.analysis.result.model_errors import ModelErrors
from crosswind.analysis.result.network import NetworkConditions, Retransmitted, ServerClock
from crosswind.analysis.result.programs import ClientProgram, ProgramFunction, ProgramProblem
from crosswind.analysis.result.result import SCHEMA, Found, Result
from crosswind.decisions.interval import Interval, ResultModel

__all__ = [
    "SCHEMA",
    "BackgroundPackets",
    "CellResult",
    "ChangeConditions",
    "ClientProgram",
    "Clock",
    "Conditions",
    "CpuProfile",
    "DelayError",
    "Diagnostics",
    "DirectionPackets",
    "Dropped",
    "End",
    "Ends",
    "FailureCount",
    "Fidelity",
    "FlowConditions",
    "FlowResult",
    "Found",
    "HopPackets",
    "HostCpuProfile",
    "Interval",
    "Ledger",
    "LevelComparison",
    "MetricEstimates",
    "ModelErrors",
    "ModelPrediction",
    "NetworkConditions",
    "PathConditions",
    "ProgramFunction",
    "ProgramProblem",
    "Result",
    "ResultModel",
    "Retransmitted",
    "ServerClock",
    "SettingValues",
    "SimulatedInterval",
    "StatisticComparison",
]
