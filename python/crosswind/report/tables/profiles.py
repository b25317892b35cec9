"""The client's and server's processor time: each part's share."""

from crosswind.analysis.result import CellResult, HostCpuProfile, Result
from crosswind.report.tables.table import Table, names, numbers
from crosswind.report.text.format import count, levels, percent

TITLE = "Where processor time goes"
_NOTE = (
    "Shares of the samples (n) of a host's threads, over all repetitions. They have no interval, because samples of "
    "one thread are not independent."
)


def profile_tables(result: Result) -> list[Table]:
    """Each part's share in each host's samples, if profiles were taken."""
    parts = profile_parts(result)
    if not parts:
        return []
    rows: list[list[str]] = []
    marked: list[int] = []
    for cell in result.cells:
        for name, host in hosts_of(cell).items():
            if not cell.valid:
                marked.append(len(rows))
            shares = [percent(host.parts.get(part, 0) / host.samples) for part in parts]
            rows.append([levels(cell.levels), name, count(host.samples), *shares])
    columns = [*names("cell", "host"), *numbers("n", *parts)]
    return [Table(TITLE, columns, rows, frozenset(marked), [_NOTE])]


def hosts_of(cell: CellResult) -> dict[str, HostCpuProfile]:
    """A cell's hosts with samples."""
    if cell.profile is None:
        return {}
    hosts = {"client": cell.profile.client, "server": cell.profile.server}
    return {name: host for name, host in hosts.items() if host.samples}


def profile_parts(result: Result) -> list[str]:
    """The parts of processor time, in the cells' order."""
    return list(dict.fromkeys(part for cell in result.cells for host in hosts_of(cell).values() for part in host.parts))
