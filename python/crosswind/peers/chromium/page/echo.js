// Echo: messages that are answered, one after another or at a rate.

import { ClosedLoop } from "crosswind/closed-loop.js";
import { OpenLoop, schedule } from "crosswind/open-loop.js";

export async function run(session) {
  const { workload } = session;
  const lanes = Array.from({ length: workload.connections ?? 1 }, (_, lane) => lane);
  await Promise.all(lanes.map((lane) => runLane(session, lane, lanes.length)));
}

function runLane(session, lane, lanes) {
  const { messages, mode, rate_per_s: rate, size_bytes: size, direction } = session.workload;
  const numbers = [];
  for (let number = lane; number < messages; number += lanes) numbers.push(number);
  if (mode === "open") return new OpenLoop(session, size).run([schedule(numbers, 1e3 / rate)]);
  const sizes = { request: direction === "download" ? 1 : size, reply: direction === "upload" ? 1 : size };
  return new ClosedLoop(session, sizes).run(numbers);
}
