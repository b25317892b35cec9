"""The loops of clients in JavaScript, on a clock that moves as the script of their connections says."""

import json
import subprocess
from importlib.resources import files
from typing import Any

from conftest import requires

SCRIPT = """
const directory = process.argv[1];
const { run } = await import(`${directory}/${process.argv[2]}.mjs`);
const { Messages } = await import(`${directory}/messages.mjs`);
const { Failure } = await import(`${directory}/failure.mjs`);
const workload = JSON.parse(process.argv[3]);
const script = JSON.parse(process.argv[4]);
let time = 1000, opened = 0;
const samples = [], log = [], ends = [];
const session = {
  workload,
  messages: new Messages(workload.payload === "text"),
  timeoutNs: 20e6,
  sharesConnection: workload.shared ?? true,
  now: () => time, until: async (due) => (time = Math.max(time, due)),
  open: async () => {
    const number = opened++;
    if (script.refused === number) throw Object.assign(new Failure("refused", "no"), { connection: number });
    return { number, connection: connection(number) };
  },
  close: async ({ number }) => log.push(`close ${number}`),
  // As of a socket, the end of one that was aborted is noticed later.
  abort: ({ number }) => {
    log.push(`abort ${number}`);
    queueMicrotask(() => ends[number](new Failure("closed", "late")));
  },
  add: (sample) => samples.push(sample),
};
function connection(number) {
  return {
    stream: async ({ replyBytes, onReply, onEnd }) => (ends[number] = onEnd) && ({
      finish: () => {},
      send: (message) => {
        time += 10;
        const exchange = message[0];
        const reply = message.slice(0, replyBytes);
        const what = script.replies[exchange] ?? "right";
        if (what === "changed") reply[reply.length - 1] ^= 1;
        if (what === "end") return void onEnd(new Failure("closed", "gone"));
        if (what === "throw") throw new Failure("reset", "thrown");
        if (what === "reject") return Promise.reject(new Failure("reset", "rejected"));
        if (what === "silent") return;
        if (what === "late") time += 30e6;
        onReply(reply, time + 5);
        if (what === "twice") onReply(reply, time + 6);
      },
    }),
  };
}
await run(session);
samples.sort((a, b) => a.exchange - b.exchange);
console.log(JSON.stringify({ samples, log, opened }));
"""


def run(
    kind: str, replies: dict[int, str] | None = None, refused: int | None = None, **workload: Any
) -> dict[str, Any]:
    """What a workload reports. `replies`: what becomes of the messages that get no right reply."""
    directory = files("crosswind.peers").joinpath("workloads")
    arguments = [json.dumps({"kind": kind, **workload}), json.dumps({"replies": replies or {}, "refused": refused})]
    command = [requires("node"), "--input-type=module", "-e", SCRIPT, "--", str(directory), kind, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def outcomes(found: dict[str, Any]) -> list[str]:
    return [sample["outcome"] for sample in found["samples"]]


def test_an_open_loop_sends_when_it_is_time() -> None:
    found = run("echo", mode="open", messages=3, rate_per_s=1000, size_bytes=9)
    times = [(s["intended_ns"], s["sent_ns"], s["received_ns"], s["received_bytes"]) for s in found["samples"]]
    assert times == [(1000, 1000, 1015, 9), (1001000, 1001000, 1001015, 9), (2001000, 2001000, 2001015, 9)]
    assert (outcomes(found), found["log"]) == (["ok"] * 3, ["close 0"])


def test_an_open_loop_compares_replies_with_what_was_sent() -> None:
    replies = {1: "changed", 2: "twice", 3: "late", 4: "silent"}
    found = run("echo", replies, mode="open", messages=6, rate_per_s=1000, size_bytes=9)
    assert outcomes(found) == ["ok", "error", "ok", "timeout", "timeout", "ok"]
    errors = [sample["error"] for sample in found["samples"]]
    assert errors[1] == "cannot exchange: the reply is not what it should be"
    assert errors[3] == errors[4] == "cannot receive: timed out after 0.02 s"
    assert found["samples"][2]["received_ns"] == 2001015, "the first copy counts"


def test_an_open_loop_whose_stream_ends() -> None:
    replies = {0: "silent", 1: "throw", 2: "reject", 3: "end"}
    found = run("echo", replies, mode="open", messages=5, rate_per_s=1000, size_bytes=9)
    assert outcomes(found) == ["closed", "reset", "reset", "closed", "closed"]
    assert [sample["sent_ns"] is None for sample in found["samples"]] == [False, False, False, False, True]


def test_an_open_loop_without_a_connection() -> None:
    found = run("echo", refused=0, mode="open", messages=2, rate_per_s=1000, size_bytes=9)
    assert (outcomes(found), found["log"]) == (["refused", "refused"], [])


def test_a_closed_loop_opens_another_connection_after_a_failure() -> None:
    replies = {1: "changed", 2: "throw", 3: "end"}
    found = run("echo", replies, messages=5, size_bytes=9)
    assert outcomes(found) == ["ok", "error", "reset", "closed", "ok"]
    assert [sample["connection"] for sample in found["samples"]] == [0, 0, 1, 2, 3]
    assert found["log"] == ["abort 0", "abort 1", "abort 2", "close 3"]


def test_a_closed_loop_waits_no_longer_than_its_timeout() -> None:
    found = run("echo", {0: "silent", 1: "silent"}, messages=3, size_bytes=9)
    assert outcomes(found) == ["timeout", "timeout", "ok"]


def test_lanes_divide_the_exchanges() -> None:
    found = run("echo", messages=5, connections=2, size_bytes=9)
    assert [sample["connection"] for sample in found["samples"]] == [0, 1, 0, 1, 0]
    found = run("connect", refused=1, count=3)
    assert (outcomes(found), found["log"]) == (["ok", "refused", "ok"], ["close 0", "close 2"])
    assert [sample["connection"] for sample in found["samples"]] == [0, 1, 2]


def test_streams_of_multiplex() -> None:
    workload = {"streams": 2, "messages": 4, "rate_per_s": 500, "size_bytes": 9}
    for shared, opened, connections in ((True, 1, [0, 0, 0, 0]), (False, 2, [0, 1, 0, 1])):
        found = run("multiplex", transport="websocket", shared=shared, **workload)
        assert (found["opened"], [sample["connection"] for sample in found["samples"]]) == (opened, connections)
        assert [sample["stream"] for sample in found["samples"]] == [0, 1, 0, 1]
        assert [sample["intended_ns"] for sample in found["samples"]] == [1000, 1001000, 2001000, 3001000]
