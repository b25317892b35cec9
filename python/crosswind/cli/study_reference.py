"""The tables of docs/study.md that the catalogue gives: keys with ranges and defaults, workloads, transports.

    python -m crosswind.cli.study_reference docs/study.md

writes them anew between their markers, `<!-- catalogue: NAME -->` and `<!-- end -->`. The rest of the page is written
by hand.
"""

from collections.abc import Callable, Iterable, Mapping

from crosswind.catalog import Carrier, Key, KeyType, catalog
from crosswind.decisions.statement import ANSWERS, NUMBERS, OF_CELLS, OF_NEIGHBOURS, PLAIN
from crosswind.findings.published.arithmetic import FUNCTIONS
from crosswind.peers.registry import peer_names
from crosswind.study.keys import SETTINGS, change_settings
from crosswind.study.network_columns import besides, network_columns
from crosswind.study.networks import NETWORKS
from crosswind.study.number_types import number_text, range_of
from crosswind.text.sections import fill_sections, rewrite, table_of

_CARRIERS = {Carrier.TCP: "TCP", Carrier.UDP: "UDP", Carrier.QUIC: "QUIC"}


def with_tables(page: str) -> str:
    """A page with the tables between its markers written anew. Raises: KeyError for a table that does not exist."""
    return fill_sections(page, "catalogue", TABLES)


def path_table() -> str:
    """The keys of `[path]`, which are those of both directions too."""
    known = {**catalog().path.by_study, **catalog().direction.by_study}
    settings = [setting for setting in SETTINGS.values() if setting.key.rpartition(".")[0] == "path"]
    rows = []
    for setting in settings:
        key = known.get(setting.name)
        default, values = ("", "a name, below") if key is None else (_default(key), _values(key))
        rows.append((f"`{setting.name}`", default, values, setting.help))
    return table_of(("key", "default", "values", "meaning"), rows)


def change_table() -> str:
    """The keys of `[[path.at]]` beside those of one direction."""
    keys = catalog().changes.by_study
    rows = [("`name`", "its number", "a name", "what it is called")]
    for setting in change_settings():
        key = keys[setting.name]
        rows.append((f"`{setting.name}`", _default(key), _values(key), setting.help))
    return table_of(("key", "default", "values", "meaning"), rows)


def flow_table() -> str:
    """The keys of `[[flow]]` beside those of its workload."""
    rows = [
        (f"`{key.study}`", _default(key) or "its number" * (key.name == "name"), _values(key), key.help)
        for key in catalog().flows.keys
    ]
    return table_of(("key", "default", "values", "meaning"), rows)


def host_table() -> str:
    """The keys of `[host]`, and what each profile makes of them."""
    profiles = {profile.name: profile.values for profile in catalog().profiles}
    rows = []
    for key in catalog().host.keys:
        defaults = [_code(key, values.get(key.name)) for values in profiles.values()]
        rows.append((f"`{key.study}`", *defaults, _values(key), key.help))
    return table_of(("key", *(f"`{name}`" for name in profiles), "values", "meaning"), rows)


def workload_table() -> str:
    """Each kind of workload: what it does, what one sample of it is, which keys it takes."""
    rows = [
        (
            f"`{kind}`",
            workload.help,
            workload.sample,
            ", ".join(f"`{key.study}`" for key in _in_order("workload", catalog().workloads[kind].keys)),
        )
        for kind, workload in catalog().workloads.items()
    ]
    return table_of(("`kind`", "does", "one sample is", "keys"), rows)


def key_table() -> str:
    """Every key of `[workload]`, by the kinds that mean the same by it."""
    rows = []
    for setting in SETTINGS.values():
        name = setting.name
        by_meaning: dict[tuple[str, str, str], list[str]] = {}
        for kind in catalog().workloads if setting.key.startswith("workload.") else ():
            key = catalog().workloads[kind].by_study.get(name)
            if key is not None:
                by_meaning.setdefault((_default(key), _values(key), key.help), []).append(f"`{kind}`")
        rows += [(f"`{name}`", ", ".join(kinds), *meaning) for meaning, kinds in by_meaning.items()]
    return table_of(("key", "of", "default", "values", "meaning"), rows)


def transport_table() -> str:
    """Every transport, what it runs over, what it costs to set up, and which workloads it carries."""
    rows = [
        (f"`{name}`", transport.summary, _CARRIERS[transport.carrier], "TLS 1.3" if transport.secure else "",
         str(transport.setup_round_trips), _runs(name))
        for name, transport in catalog().transports.items()
    ]  # fmt: skip
    return table_of(("`transport`", "messages go", "over", "secure", "round trips until it can send", "runs"), rows)


def budget_table() -> str:
    """The keys of `[budget]`."""
    rows = [(f"`{key.study}`", _default(key), _values(key), key.help) for key in catalog().budget.keys]
    return table_of(("key", "default", "values", "meaning"), rows)


def yes_table() -> str:
    """When the answer to a question is yes."""
    return table_of(("`yes`", "the answer is yes where"), [(f"`{yes}`", meaning) for yes, meaning in ANSWERS.items()])


def scale_table() -> str:
    """The numbers that a question may be about."""
    rows = []
    for scale, meaning in NUMBERS.items():
        takes = "no factor" if scale in OF_CELLS else "two or more, or all" if scale in OF_NEIGHBOURS else "two or more"
        rows.append((f"`{scale}`", meaning, takes, "numbers" if scale in PLAIN else "amounts of the metric, as `5ms`"))
    return table_of(("`scale`", "the number that decides", "levels in `compare`", "bounds are"), rows)


def function_table() -> str:
    """The functions of formulas."""
    rows = [
        (f"`{name}({', '.join('xy'[: function.arguments])})`", function.help) for name, function in FUNCTIONS.items()
    ]
    return table_of(("function", "gives"), rows)


def network_table() -> str:
    """The networks with a name."""
    rows = []
    for network in NETWORKS.values():
        what = "; ".join(filter(None, [network.what, besides(network)]))
        numbers = [column.doc_text(network) for column in network_columns()]
        rows.append((f"`{network.name}`", what, *numbers, network.own_source))
    titles = [column.title_of_docs or " / ".join(column.titles) for column in network_columns()]
    return table_of(("`network`", "stands for", *titles, "numbers from"), rows)


TABLES: Mapping[str, Callable[[], str]] = {
    "path": path_table,
    "changes": change_table,
    "networks": network_table,
    "host": host_table,
    "workloads": workload_table,
    "keys": key_table,
    "transports": transport_table,
    "flows": flow_table,
    "budget": budget_table,
    "answers": yes_table,
    "scales": scale_table,
    "functions": function_table,
}
"""Every table by the name in its marker."""


def _in_order(section: str, keys: Iterable[Key]) -> list[Key]:
    order = list(SETTINGS)
    return sorted(keys, key=lambda key: order.index(f"{section}.{key.study}"))


def _runs(name: str) -> str:
    carried = {kind: workload.transports for kind, workload in catalog().workloads.items() if workload.transports}
    able = [kind for kind, transports in carried.items() if name in transports]
    if len(able) == len(carried):
        return "all"
    unable = [kind for kind in carried if kind not in able]
    return f"all but `{unable[0]}`" if len(unable) == 1 else ", ".join(f"`{kind}`" for kind in able)


def _default(key: Key) -> str:
    return _code(key, key.default) or key.default_help or ("needed" if key.required else "")


def _code(key: Key, value: object) -> str:
    text = written(key, value)
    return f"`{text}`" if text else ""


def written(key: Key, value: object) -> str:
    """A value of a cell as a study has it; empty where it is none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(key, value)
    return str(value)


def _values(key: Key) -> str:
    if key.type is KeyType.BOOLEAN:
        return "`true`, `false`"
    if key.choices:
        return ", ".join(f"`{choice}`" for choice in key.choices)
    if key.type is KeyType.PEER:
        return ", ".join(f"`{name}`" for name in (*peer_names(key.study), "{ command = [...] }"))
    words = {
        KeyType.TRANSPORT: "below",
        KeyType.QUEUE: "packets, bytes or a time",
        KeyType.ARGUMENTS: "an argument list",
        KeyType.SERIES: "a list of numbers, or `@FILE`",
        KeyType.STRING: "a name",
        KeyType.FILE: "a file",
    }
    if key.type in words:
        return words[key.type]
    return range_of(key, key.minimum, key.maximum).removeprefix("from ")


if __name__ == "__main__":
    rewrite(with_tables)
