"""Studies as texts, for tests."""

from functools import cache

from crosswind.study.design import Study
from crosswind.study.files import load_study

ECHO = '[workload]\nkind = "echo"\n'
ISSUE_EXAMPLE = """
title = "TCP and UDP echo on a lossy path"
[path]
delay = "10ms"                  # each way
loss = ["0%", "5%"]             # in each direction
rate = "100mbit"
queue = "100p"                  # packets; or "64kB"
family = "ipv4"
mtu = 1500
[host]
profile = "linux"
congestion_control = "cubic"
[workload]
kind = "echo"
transport = ["tcp", "udp"]
size = [1, 1000]
messages = 500
connections = 1
[study]
repetitions = 3
seed = 1
"""
PARTS = """
[path]
loss = ["0%", "5%"]
[path.forward]
delay = "3ms"
[workload]
messages = 7
[[part]]
name = "small"
[part.workload]
kind = "echo"
size = 1
[[part]]
name = "bulk"
[part.path]
delay = "1ms"
[part.workload]
kind = "transfer"
size = ["1kB", "1MB"]
"""
LIMITS = """
[[repetitions]]
where = { part = "bulk", "workload.size" = "1000kB" }
at_most = 2
[[repetitions]]
where = { "path.loss" = 0.05 }
at_most = 3
[study]
repetitions = 4
"""
SHOWN = """
[[figure]]
title = "Time by loss"
metric = "total"
x = "path.loss"
series = "workload.size"
where = { "path.rate" = "1mbit" }
models = ["caia"]
[[figure]]
title = "Nothing varies"
metric = "rtt"
x = "path.mtu"
scale = "log"
[[fit]]
title = "b and c"
model = "caia-exponential"
metric = "total"
x = "path.loss"
by = "workload.size"
over = "path.rate"
where = { "path.loss" = "0%" }
published = [{ source = "s", level = "1kB", b = 0.04, c = 21 }, { source = "s", level = 7, a = 1 }]
[[published]]
source = "s"
metric = "total"
unit = "s"
mean = 1
levels = { "path.loss" = 0.05, "workload.size" = "1kB" }
"""
FACTORS = '[path]\nloss = ["0%", "5%"]\nrate = ["1000kbit", "2mbit"]\n' + ECHO + "size = [1000, 2000]\n"


def study(text: str) -> Study:
    """The study of a file called my.toml."""
    return Study.from_toml(text, name="my", file="my.toml")


@cache
def shipped(name: str) -> Study:
    """A study that comes with Crosswind. Many tests look at each, and reading one takes a tenth of a second."""
    return load_study(name)
