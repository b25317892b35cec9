"""What a report says of the conditions under which a run measured."""

from crosswind.findings.pipeline import analyse
from crosswind.report.run_page import render
from records import MS, echoes, path, record, runs

ECHO = {"kind": "echo", "transport": "tcp", "size_bytes": 1, "messages": 100, "connection": "kept"}
HOST = {"profile": "linux", "congestion_control": "cubic", "nodelay": True, "clock": "real"}


def measured(paths, *, hosts=(HOST,), workloads=(ECHO,), **changes):
    """A cell for each path, with two repetitions; hosts and workloads are repeated in turn."""
    made = []
    for index, own in enumerate(paths):
        parameters = {
            "path": own,
            "host": hosts[index % len(hosts)],
            "workload": workloads[index % len(workloads)],
        }
        made += runs(index, [echoes([MS] * 3)] * 2, {"path.loss": str(index)}, parameters=parameters)
    return record(*made, **changes)


def test_the_page_draws_the_path_before_anything_else() -> None:
    made = measured([path(loss=loss, delay_ns=10 * MS) for loss in (0.0, 0.05)])
    text = render(made, analyse(made))
    assert 'aria-label="Path, each way: loss 0% or 5%, delay 10ms"' in text
    assert text.count('<span class="element varied"><b>loss</b> 0% or 5%</span>') == 2
    assert text.index('class="conditions"') < text.index("<h2>")
