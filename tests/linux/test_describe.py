"""What crosswind-cell says of itself: the catalogue, and that what it prints is what the catalogue promises."""

import json
import subprocess

import jsonschema
import pytest

from linux.lab import Lab, Object, ms


@pytest.fixture
def catalogue(lab: Lab) -> Object:
    """What `--describe` prints."""
    done = subprocess.run([str(lab.binary), "--describe"], capture_output=True, text=True, timeout=20, check=True)
    assert done.stderr == ""
    described: Object = json.loads(done.stdout)
    return described


def assert_promised(catalogue: Object, event: Object) -> None:
    """The event is as the catalogue's JSON Schema has it, and has no key beyond it."""
    schema: Object = catalogue["events"][event["event"]]
    jsonschema.validate(event, schema)
    of_code = [each["properties"] for each in schema.get("oneOf", ())]
    data = next((keys for keys in of_code if keys["code"]["const"] == event["code"]), {})
    assert set(event) == {*schema["properties"], *data}


@pytest.mark.parametrize(
    ("workload", "sections"),
    [
        ({"kind": "echo", "transport": "tcp", "messages": 5}, {}),
        ({"kind": "multiplex", "transport": "quic", "messages": 20}, {"forward": {"rate_bps": 10**7}}),
        ({"kind": "transfer", "transport": "http3", "size_bytes": 10_000}, {"packets": False, "backend": "direct"}),
        ({"kind": "page", "transport": "http1", "count": 1}, {}),
        ({"kind": "program", "client": ["sleep", "0.3"]}, {}),
        ({"kind": "echo", "transport": "udp", "messages": 2, "timeout_ns": ms(50)}, {"forward": {"loss": 1.0}}),
        ({"kind": "program", "client": ["no-such-program"]}, {}),
    ],
    ids=["echo", "multiplex", "transfer", "page", "program", "all-lost", "error"],
)
def test_a_running_cell_prints_what_the_catalogue_promises(
    lab: Lab, catalogue: Object, workload: Object, sections: Object
) -> None:
    ended = lab.run(workload, heartbeat_ns=ms(10), **sections)
    assert ended.events
    for event in ended.events:
        assert_promised(catalogue, event)


def test_check_answers_as_the_catalogue_promises(lab: Lab, catalogue: Object) -> None:
    cells = [
        {"schema": "crosswind.cell/1", "workload": {"kind": "echo", "transport": "tcp"}},
        {"schema": "crosswind.cell/1", "workload": {"kind": "echo", "transport": "tcp", "polling": True}},
        {"schema": "crosswind.cell/1", "workload": {"kind": "program", "client": ["true"]}},
    ]
    given = "\n".join(map(json.dumps, cells))
    done = subprocess.run([str(lab.binary), "--check"], input=given, capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["event"] for answer in answers] == ["checked", "refused", "checked"]
    assert (done.returncode, done.stderr) == (2, "")
    for answer in answers:
        assert_promised(catalogue, answer)


def test_every_workload_can_be_checked_with_nothing_but_its_defaults(lab: Lab, catalogue: Object) -> None:
    more: dict[str, Object] = {"transfer": {"size_bytes": 1}, "program": {"client": ["true"]}}
    for workload in catalogue["workloads"]:
        transports = [{"transport": name} for name in workload["transports"]] or [{}]
        for transport in transports:
            asked = {"kind": workload["kind"], **transport, **more.get(workload["kind"], {})}
            cell = {"schema": "crosswind.cell/1", "workload": asked}
            done = subprocess.run(
                [str(lab.binary), "--check"], input=json.dumps(cell), capture_output=True, text=True, check=True
            )
            filled_in = json.loads(done.stdout)["cell"]["workload"]
            # Ends that are Crosswind's own are left out.
            keys = {key["name"] for key in workload["keys"] if key["type"] != "peer"}
            unset = {key["name"] for key in workload["keys"] if key["default"] is None and key["name"] not in filled_in}
            assert set(filled_in) == {"kind"} | keys - unset
            defaults = {key["name"]: key["default"] for key in workload["keys"] if key["default"] is not None}
            assert {**defaults, **asked} == {name: filled_in[name] for name in ["kind", *defaults, *asked]}
