"""What client programs say of themselves."""

from pydantic import Field

from crosswind.decisions.interval import ResultModel


class ProgramFunction(ResultModel):
    """A function of a client program: `calls` and `own_ns`, the time in itself, by message; `share` of all the time."""

    name: str
    calls: float
    own_ns: float
    share: float


class ProgramProblem(ResultModel):
    """A repetition (from 0) whose client program did not end well: by an exit code or a signal, in words in `text`.

    `log` is where its standard error is kept, within the run's directory.
    """

    repetition: int
    exit_code: int | None
    signal: int | None
    text: str
    log: str = ""


class ClientProgram(ResultModel):
    """What the client of a program workload says of itself, summed over repetitions.

    `time_ns` is by message, of which there were `messages`; its interval is the cell's estimate `send_time`.
    `problems` are the repetitions in which it did not end well, `problem` is their texts together. `remarks` name what
    of its report was not understood.
    """

    cell: int
    version: str | None
    messages: int
    time_ns: float | None
    functions: list[ProgramFunction]
    problem: str | None
    problems: list[ProgramProblem] = Field(default=[])
    remarks: list[str] = Field(default=[])
