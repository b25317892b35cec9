// Multiplex: messages on several streams, in an open loop. Streams are the transport's own where it has many, else channels in one.

import { OpenLoop, schedule } from "crosswind/open-loop.js";

export function run(session) {
  const { streams, messages, size_bytes: size, rate_per_s: rate, transport } = session.workload;
  const numbers = Array.from({ length: messages }, (_, number) => number);
  const due = schedule(numbers, 1e3 / (rate * streams), streams);
  const apart = transport === "webtransport" ? Array.from({ length: streams }, (_, stream) => stream) : null;
  const flows = apart === null ? [due] : apart.map((stream) => due.filter((one) => one.stream === stream));
  return new OpenLoop(session, size).run(flows);
}
