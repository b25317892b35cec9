"""The study file's format: every table and key, its kind and its help, as pydantic models.

The keys of `[path]`, `[host]`, `[workload]` and `[budget]` are the catalogue's (`keys.py`), the tables of findings
stand with their kinds (`crosswind.findings`); those of the design stand here. Validation, the JSON Schema and the error
messages come from these models.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field, GetCoreSchemaHandler, create_model, model_validator
from pydantic_core import CoreSchema

from crosswind.catalog import catalog
from crosswind.study.keys import (
    NAME_PATTERN,
    SETTINGS,
    Setting,
    budget_settings,
    change_settings,
    flow_settings,
    section_of,
)
from crosswind.study.levels import Values
from crosswind.study.tables import BesideMean, TomlTable, WhereTable
from crosswind.text.units import UnitError


class SettingsTable(TomlTable):
    """A table whose keys the catalogue has: each is `Values`, and absent as `Values()`, which is false."""


def _settings_table(name: str, text: str, section: str, **inner: Any) -> type[SettingsTable]:
    """A model with every setting of a section, and inner tables."""
    settings = (*SETTINGS.values(), *budget_settings())
    keys = _fields(setting for setting in settings if section_of(setting.key) == section)
    return create_model(name, __base__=SettingsTable, __doc__=text, **keys, **inner)


def _fields(settings: Iterable[Setting]) -> dict[str, Any]:
    return {
        setting.name: (Annotated[Values, setting.type], Field(default_factory=Values, description=setting.help))
        for setting in settings
    }


def _several(model: Any, text: str) -> tuple[Any, Any]:
    """A field that holds tables of a model."""
    return list[model], Field(default_factory=list, description=text)


class NamedTable(SettingsTable):
    """One of several tables: `name` tells their keys apart, as `path.hop.wifi.loss`."""

    name: str = ""

    @model_validator(mode="after")
    def _sets_something(self) -> Self:
        if not set_keys(self):
            raise UnitError("the table sets no key", hint="give it keys, or leave it out")
        return self


@dataclass(frozen=True)
class _Section:
    """Has pydantic read a table as a model that was made of the catalogue, whose class no type checker can know."""

    model: type[SettingsTable]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self.model)


ForwardTable = _settings_table("ForwardTable", "The path from client to server, where it differs.", "path.forward")
ReverseTable = _settings_table("ReverseTable", "The path from server to client, where it differs.", "path.reverse")
_BOTH_WAYS: dict[str, Any] = {
    "forward": (ForwardTable, Field(default_factory=ForwardTable, description="client to server")),
    "reverse": (ReverseTable, Field(default_factory=ReverseTable, description="server to client")),
}
_NAME_OR_NUMBER = (
    str,
    Field(default="", pattern=f"^$|{NAME_PATTERN}", description="what it is called; without it, its number, from 1"),
)
_EITHER_WAY = [SETTINGS[f"path.{name}"] for name in catalog().direction.by_study]
HopTable = create_model(
    "HopTable",
    __base__=NamedTable,
    __doc__="One stretch of the path, the client's first. It takes the keys of [path] that are about one direction.",
    name=(str, Field(pattern=NAME_PATTERN, description="what it is called: path.hop.NAME.loss is a key of it")),
    **_fields([SETTINGS["path.network"], *_EITHER_WAY]),
    **_BOTH_WAYS,
)
ChangeTable = create_model(
    "ChangeTable",
    __base__=NamedTable,
    __doc__="A change of the path over time: while it holds, keys have other values.",
    name=_NAME_OR_NUMBER,
    **_fields([*change_settings(), *_EITHER_WAY]),
    **_BOTH_WAYS,
)
PathTable = _settings_table(
    "PathTable",
    "The network path. Everything is the same in both directions unless `forward` or `reverse` says otherwise.",
    "path",
    hop=_several(HopTable, "the hops of a path that has several"),
    at=_several(ChangeTable, "what changes over time"),
    **_BOTH_WAYS,
)
HostTable = _settings_table("HostTable", "The two hosts. A key set here overrides the profile's.", "host")
WorkloadTable = _settings_table(
    "WorkloadTable", "What is asked of the transport. Which keys a kind takes is in docs/study.md.", "workload"
)
FlowTable = create_model(
    "FlowTable",
    __base__=NamedTable,
    __doc__="A flow beside the workload, between the same hosts. It takes the keys of [workload], too.",
    name=_NAME_OR_NUMBER,
    **_fields(flow_settings()),
)
BudgetTable = _settings_table("BudgetTable", "What fidelity a cell must reach to be valid.", "budget")

Path = Annotated[SettingsTable, _Section(PathTable)]
Host = Annotated[SettingsTable, _Section(HostTable)]
Workload = Annotated[SettingsTable, _Section(WorkloadTable)]
Budget = Annotated[SettingsTable, _Section(BudgetTable)]
Flow = Annotated[NamedTable, _Section(FlowTable)]


class StudyTable(TomlTable):
    """The design."""

    repetitions: int = Field(
        default=1, ge=1, le=100_000, description="how often every cell is run; with a precision, at first"
    )
    repetitions_max: int | None = Field(
        default=None, ge=1, le=100_000, description="with a precision: how often a cell is run at most; else 100"
    )
    seed: int = Field(default=1, ge=0, le=2**53 - 1, description="every random decision derives from it")
    profile: bool = Field(default=False, description="sample where the processor time of client and server goes")
    parts: list[str] = Field(default_factory=list, description="the parts that are run, by name; without it, all")
    optional_peers: list[str] = Field(
        default_factory=list, description="peers without whose cells it is run where they are not installed: chromium"
    )


class ReportTable(TomlTable):
    """What the report shows beside the measurement."""

    models: list[str] = Field(default_factory=list, description="models to predict with, as mathis, pftk")
    compare_by: list[BesideMean] = Field(
        default=["median"], description="statistics by which levels of factors are compared beside the mean"
    )
    notes: list[str] = Field(default_factory=list, description="remarks printed with the results")


class RepetitionsTable(TomlTable):
    """Cells that are run less often than `study.repetitions`; where several tables fit a cell, the least counts."""

    where: WhereTable = Field(description="dotted keys (or part) and the value each has in these cells")
    at_most: int = Field(ge=1, le=100_000, description="how often these cells are run at most")


class ExcludeTable(TomlTable):
    """Combinations of levels that are no cells of the study, because they are impossible or not wanted."""

    where: WhereTable = Field(
        min_length=1, description="dotted keys (or part) and the value each has in these combinations"
    )
    reason: str = Field(default="", description="why, shown in the plan and in the report")


class PrecisionTable(TomlTable):
    """How narrow an interval is to be: cells are run until it is, or until `study.repetitions_max`."""

    metric: str | None = Field(
        default=None,
        description="as of a published number; without it, the first by which the workload's levels compare",
    )
    statistic: str = Field(default="mean", description="of each repetition: mean, median, p95, p99")
    target: str = Field(description='half the width of the interval of its mean: "5%" of the mean, "2ms", "100kbit/s"')
    where: WhereTable = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are meant"
    )
    note: str = ""


class PartTable(TomlTable):
    """One part of a study that needs several workloads: its tables override the study's."""

    name: str = Field(pattern=NAME_PATTERN, description="shown as the level of `part`")
    description: str = ""
    path: Path = Field(default_factory=PathTable)
    host: Host = Field(default_factory=HostTable)
    workload: Workload = Field(default_factory=WorkloadTable)
    flow: list[Flow] = Field(default_factory=list, description="what runs beside the workload")


class DesignDocument(TomlTable):
    """What is measured. A list is a factor."""

    title: str = ""
    description: str = ""
    path: Path = Field(default_factory=PathTable)
    host: Host = Field(default_factory=HostTable)
    workload: Workload = Field(default_factory=WorkloadTable)
    flow: list[Flow] = Field(default_factory=list)
    study: StudyTable = Field(default_factory=StudyTable)
    budget: Budget = Field(default_factory=BudgetTable)
    report: ReportTable = Field(default_factory=ReportTable)
    quick: dict[str, Any] = Field(
        default_factory=dict,
        description="dotted keys and their values in the quick variant; without it, each cell runs twice at most",
    )
    part: list[PartTable] = Field(default_factory=list)
    exclude: list[ExcludeTable] = Field(default_factory=list)
    repetitions: list[RepetitionsTable] = Field(default_factory=list)
    precision: list[PrecisionTable] = Field(default_factory=list)


def set_keys(table: TomlTable, prefix: str = "") -> dict[str, Values]:
    """The keys that a table and its inner tables set, dotted, in the order of this file."""
    values: dict[str, Values] = {}
    for name in type(table).model_fields:
        value = getattr(table, name)
        if isinstance(value, TomlTable):
            values |= set_keys(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            for number, each in enumerate(value, start=1):
                values |= set_keys(each, f"{prefix}{name}.{each.name or number}.")
        elif isinstance(value, Values) and value:
            values[prefix + name] = value
    return values


def table_of(model: type[TomlTable], name: str) -> type[TomlTable] | None:
    """The model of an inner table, or of each table of a list of them; None where the key is no table."""
    field = model.model_fields[name]
    section = next((item.model for item in field.metadata if isinstance(item, _Section)), None)
    annotation: Any = field.annotation
    inner = section or getattr(annotation, "__args__", (annotation,))[0]
    inner = next((item.model for item in getattr(inner, "__metadata__", ()) if isinstance(item, _Section)), inner)
    return inner if isinstance(inner, type) and issubclass(inner, TomlTable) else None
