"""The study file's format: every table and key, its kind and its help, as pydantic models.

This is the one list of keys. Validation, the JSON Schema, `--set`, the order of factors and the error messages come
from it; to add a key, add a line. Values are defined in `levels.py`, units in `units.py`.
"""

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from crosswind.catalog import TRANSPORTS
from crosswind.study import levels
from crosswind.study.levels import Kind, Values
from crosswind.study.presets import PRESETS

KIND_NAMES = ("echo", "transfer", "connect", "multiplex", "page", "program")
Backends = Annotated[Values, levels.choice("tun", "direct")]
Families = Annotated[Values, levels.choice("ipv4", "ipv6")]
Counts = Annotated[Values, levels.choice("ip", "ethernet")]
Profiles = Annotated[Values, levels.choice("linux", "freebsd-8")]
Workloads = Annotated[Values, levels.choice(*KIND_NAMES, can_vary=False)]
Transports = Annotated[Values, levels.choice(*TRANSPORTS)]
Presets = Annotated[Values, levels.choice(*PRESETS)]
Modes = Annotated[Values, levels.choice("closed", "open")]
Connecting = Annotated[Values, levels.choice("kept", "new")]
Flows = Annotated[Values, levels.choice("echo", "upload", "download")]
Resumptions = Annotated[Values, levels.choice("none", "session", "0-rtt")]
Payloads = Annotated[Values, levels.choice("binary", "text")]
Streams = Annotated[Values, levels.integer(1, 100, "a number of streams")]
Pieces = Annotated[Values, levels.integer(1, 1000, "a number of files")]
Mtus = Annotated[Values, levels.integer(576, 65535, "an MTU (IPv4: 576 or more, IPv6: 1280 or more)")]
Segments = Annotated[Values, levels.integer(1, 1000, "an initial window in segments")]
Counters = Annotated[Values, levels.integer(1, 10**8, "a count")]
Connections = Annotated[Values, levels.integer(1, 1000, "a number of connections")]
MessageRates = Annotated[Values, levels.messages_per_second()]
Delays = Annotated[Values, levels.duration(high_ns=600 * 10**9)]
Durations = Annotated[Values, levels.duration(low_ns=10**6, high_ns=3600 * 10**9)]
Punctualities = Annotated[Values, replace(levels.duration(low_ns=1000), can_vary=False)]
Shares = Annotated[Values, replace(levels.probability(), can_vary=False)]
Losses = Annotated[Values, levels.probability()]
Rates = Annotated[Values, levels.rate()]
Queues = Annotated[Values, levels.queue()]
Sizes = Annotated[Values, levels.size()]
Buffers = Annotated[Values, levels.size(low=256, high=2**31 - 1)]
Switches = Annotated[Values, levels.boolean()]
Names = Annotated[Values, levels.word("a name")]
Commands = Annotated[Values, levels.arguments()]
Where = dict[str, str | int | float | bool]


class Table(BaseModel):
    """A table of the file: unknown keys are errors, and nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def _key(help_text: str) -> Any:
    """An optional key that may be a factor; absent is `Values()`, which is false."""
    return Field(default_factory=Values, description=help_text)


class DirectionTable(Table):
    """One direction of the path, where it differs from the other."""

    delay: Delays = _key("one-way delay in this direction")
    loss: Losses = _key("probability that a packet is lost in this direction")
    rate: Rates = _key("link rate in this direction")
    queue: Queues = _key("waiting room before the link, 100p or 64kB")
    count: Counts = _key("what occupies the link: the ip packet, or ethernet (plus 38 bytes)")


class PathTable(Table):
    """The network path. Everything is the same in both directions unless `forward` or `reverse` says otherwise."""

    backend: Backends = _key("tun (the emulator) or direct (a veth pair: no loss, delay, rate or queue)")
    family: Families = _key("ipv4 or ipv6")
    mtu: Mtus = _key("largest IP packet in bytes")
    preset: Presets = _key("a network with a name, as lan, wan, hsdpa+; any key set beside it overrides it")
    delay: Delays = _key("delay each way, so that a round trip takes twice as long")
    loss: Losses = _key("probability that a packet is lost, in each direction")
    rate: Rates = _key("link rate in each direction")
    queue: Queues = _key("waiting room before the link, 100p or 64kB")
    count: Counts = _key("what occupies the link: the ip packet, or ethernet (plus 38 bytes)")
    forward: DirectionTable = Field(default_factory=DirectionTable, description="client to server")
    reverse: DirectionTable = Field(default_factory=DirectionTable, description="server to client")


class HostTable(Table):
    """The two hosts. A key set here overrides the profile's."""

    profile: Profiles = _key("linux, or freebsd-8 (reno, initial window 3, 64 kB window, minimum RTO 230 ms)")
    congestion_control: Names = _key("TCP congestion control, as the kernel names it")
    nodelay: Switches = _key("send small segments at once (TCP_NODELAY)")
    sack: Switches = _key("TCP selective acknowledgements")
    timestamps: Switches = _key("TCP timestamps")
    window_scaling: Switches = _key("TCP window scaling")
    tail_loss_probe: Switches = _key("TCP tail loss probes")
    slow_start_after_idle: Switches = _key("TCP returns to slow start after an idle time")
    send_buffer: Buffers = _key("socket send buffer")
    receive_buffer: Buffers = _key("socket receive buffer")
    initial_window: Segments = _key("TCP initial congestion window in segments")
    min_rto: Durations = _key("TCP minimum retransmission timeout")


class WorkloadTable(Table):
    """What is asked of the transport. Which keys a kind takes is in docs/study.md."""

    kind: Workloads = _key("echo, transfer, connect, multiplex, page or program; one a part")
    transport: Transports = _key("tcp, tls, udp, http1, https1, h2c, http2, http3, websocket, wss, quic, ...")
    resumption: Resumptions = _key("secure transports: none, session (TLS ticket), or 0-rtt (data in the first flight)")
    polling: Switches = _key("socketio-*: begin with HTTP long polling and upgrade")
    payload: Payloads = _key("websocket, wss, socketio-*: messages are binary or text")
    size: Sizes = _key("bytes of a message, or of a transfer")
    messages: Counters = _key("echo, multiplex: messages over all connections or streams")
    mode: Modes = _key("echo: closed (one in flight) or open (sent at a rate)")
    rate: MessageRates = _key("echo, open mode: messages a second; multiplex: on each stream")
    connection: Connecting = _key("echo: a kept connection, or a new one for each message")
    stream: Connecting = _key("echo over quic, webtransport: a kept stream, or a new one for each message")
    streams: Streams = _key("multiplex: streams side by side")
    duration: Durations = _key("transfer: for how long, instead of a size")
    direction: Flows = _key("upload (client to server) or download; echo also: echo (there and back)")
    count: Counters = _key("transfer, connect, page: how many")
    html_size: Sizes = _key("page: bytes of the HTML, which names everything else")
    scripts_size: Sizes = _key("page: bytes of all scripts together")
    scripts: Pieces = _key("page: how many scripts")
    images_size: Sizes = _key("page: bytes of all images together")
    images: Pieces = _key("page: how many images")
    request_size: Sizes = _key("page: bytes of the header of a request")
    client: Commands = _key(
        "program: argument list run on the client; {server} and {client} stand for addresses, {python} for the Python "
        "that runs the study, {cell} for crosswind-cell"
    )
    server: Commands = _key("program: argument list run on the server")
    connections: Connections = _key("connections side by side")
    timeout: Durations = _key("timeout of one exchange")


class StudyTable(Table):
    """The design."""

    repetitions: int = Field(default=1, ge=1, le=100_000, description="how often every cell is run")
    seed: int = Field(default=1, ge=0, le=2**53 - 1, description="every random decision derives from it")
    profile: bool = Field(default=False, description="sample where the processor time of client and server goes")


class BudgetTable(Table):
    """What fidelity a cell must reach to be valid."""

    delay_error_p99: Punctualities = _key("99 % of packets are this punctual")
    starvation: Shares = _key("largest share of time the emulator may wait for a CPU")
    probe_starvation: Shares = _key("largest share of time that one thread of a host may wait for a CPU")


class ReportTable(Table):
    """What the report shows beside the measurement."""

    models: list[str] = Field(default_factory=list, description="models to predict with, as mathis, pftk")
    notes: list[str] = Field(default_factory=list, description="remarks printed with the results")


class RepetitionsTable(Table):
    """Cells that are run less often than `study.repetitions`; where several tables fit a cell, the least counts."""

    where: Where = Field(description="dotted keys (or part) and the value each has in the cells that are meant")
    at_most: int = Field(ge=1, le=100_000, description="how often these cells are run at most")


class PartTable(Table):
    """One part of a study that needs several workloads: its tables override the study's."""

    name: str = Field(pattern="^[a-z0-9][a-z0-9-]{0,40}$", description="shown as the level of `part`")
    description: str = ""
    path: PathTable = Field(default_factory=PathTable)
    host: HostTable = Field(default_factory=HostTable)
    workload: WorkloadTable = Field(default_factory=WorkloadTable)


class PublishedTable(Table):
    """One published figure, shown beside the measured one."""

    source: str = Field(description="the document and its table")
    metric: str = Field(description="rtt, total, response, connect, request, reply, transfer_time, goodput, ...")
    unit: str = Field(description="unit of mean, sd and ci: ns, us, ms, s, bit/s, kbit/s, Mbit/s, Gbit/s")
    levels: Where = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells it belongs to"
    )
    mean: float
    sd: float | None = None
    ci: float | None = Field(default=None, description="half width of the published interval")
    n: int | None = None
    inferred: bool = Field(default=False, description="not printed as a number in the source")
    functions: dict[str, float] | None = Field(
        default=None, description="parts of the mean by function, as a profile in the source has them; in its unit"
    )
    note: str = ""


class FigureTable(Table):
    """One figure of the report: a metric over the levels of a factor."""

    title: str = Field(description="shown above the figure")
    metric: str = Field(description="what is drawn, as of a published figure")
    x: str = Field(description="dotted key of the factor along the axis")
    series: str | None = Field(default=None, description="dotted key of the factor that has a line for each level")
    where: Where = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are drawn"
    )
    models: list[str] = Field(default_factory=list, description="models to draw beside the measurement")
    scale: Literal["linear", "log"] = Field(default="linear", description="of the metric's axis: linear or log")
    note: str = ""


class FitPublishedTable(Table):
    """The published coefficients of one fitted curve."""

    source: str = Field(description="the document and its table")
    level: str | int | float | bool = Field(description="the level of `by` they belong to")
    a: float | None = None
    b: float | None = None
    c: float | None = None
    note: str = ""


class FitTable(Table):
    """One curve that is fitted to the cells, with a result for each level of a factor."""

    title: str = Field(description="shown above the results")
    model: Literal["caia-exponential"] = Field(description="caia-exponential: t = a + b e^(c p), p the loss")
    metric: str = Field(description="what is fitted, as of a published figure")
    x: str = Field(description="dotted key of the factor along the curve: path.loss, or that of one direction")
    by: str = Field(description="dotted key of the factor that has a result for each level")
    over: str = Field(description="dotted key of the factor whose levels are fitted one by one, and then averaged")
    where: Where = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are fitted"
    )
    note: str = ""
    published: list[FitPublishedTable] = Field(default_factory=list)


class EquivalenceTable(Table):
    """One claim that the levels of a factor make no difference that matters, tested for every two of them."""

    title: str = Field(description="shown above the results")
    metric: str = Field(description="what is compared, as of a published figure")
    factor: str = Field(description="dotted key of the factor whose levels are compared, two at a time")
    margin: str = Field(
        description="the smallest difference of means that matters: 5ms, 100kbit/s; 25% is from 1/1.25 to 1.25 times, "
        "and of a share 25 percentage points"
    )
    where: Where = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are compared"
    )
    note: str = ""


class StudyDocument(Table):
    """A Crosswind study file: the design of an experiment. A list is a factor."""

    title: str = ""
    description: str = ""
    path: PathTable = Field(default_factory=PathTable)
    host: HostTable = Field(default_factory=HostTable)
    workload: WorkloadTable = Field(default_factory=WorkloadTable)
    study: StudyTable = Field(default_factory=StudyTable)
    budget: BudgetTable = Field(default_factory=BudgetTable)
    report: ReportTable = Field(default_factory=ReportTable)
    quick: dict[str, Any] = Field(default_factory=dict, description="dotted keys and their values in the quick variant")
    part: list[PartTable] = Field(default_factory=list)
    repetitions: list[RepetitionsTable] = Field(default_factory=list)
    published: list[PublishedTable] = Field(default_factory=list)
    figure: list[FigureTable] = Field(default_factory=list)
    fit: list[FitTable] = Field(default_factory=list)
    equivalence: list[EquivalenceTable] = Field(default_factory=list)


def set_keys(table: Table, prefix: str = "") -> dict[str, Values]:
    """The keys that a table and its inner tables set, dotted, in the order of this file."""
    found: dict[str, Values] = {}
    for name in type(table).model_fields:
        value = getattr(table, name)
        if isinstance(value, Table):
            found |= set_keys(value, f"{prefix}{name}.")
        elif isinstance(value, Values) and value:
            found[prefix + name] = value
    return found


def _kinds(model: type[Table], prefix: str) -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for name, info in model.model_fields.items():
        kind = next((item for item in info.metadata if isinstance(item, Kind)), None)
        if kind is not None:
            found[prefix + name] = kind
        elif isinstance(info.annotation, type) and issubclass(info.annotation, Table):
            found |= _kinds(info.annotation, f"{prefix}{name}.")
    return found


KINDS = _kinds(PathTable, "path.") | _kinds(HostTable, "host.") | _kinds(WorkloadTable, "workload.")
"""Every key that can be a factor, dotted, in the order in which factors are shown."""
