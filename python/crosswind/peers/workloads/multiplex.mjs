// Multiplex: messages on several streams, each sent when it is time. Streams are the transport's own where one connection has
// many; where it is one stream, channels of the application in it; and where it cannot be shared, connections.

import { numbers } from "./lanes.mjs";
import { openLoop, schedule } from "./open-loop.mjs";

const MANY_STREAMS = new Set(["webtransport"]);

export function run(session) {
  const { transport, streams, messages, rate_per_s: rate } = session.workload;
  const all = schedule(numbers(0, 1, messages), 1e9 / (rate * streams), streams);
  if (session.sharesConnection && !MANY_STREAMS.has(transport)) return openLoop(session, [all]);
  const flows = Array.from({ length: streams }, (_, stream) => all.filter(({ sample }) => sample.stream === stream));
  return openLoop(session, flows, !session.sharesConnection);
}
