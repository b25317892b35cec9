// Multiplex: messages on several streams, each sent when it is time. Streams are the transport's own where one connection has
// many; where it is one stream, channels of the application in it; and where it cannot be shared, connections.
import { openLoop } from "./open-loop.mjs";

/** Whose connections are no more than one exchange at a time, or nothing but bytes. */
const NOT_SHARED = new Set(["tcp", "http1", "https1"]);
const MANY_STREAMS = new Set(["webtransport"]);

export function run(lane) {
  const { transport, streams, messages, rate_per_s: rate } = lane.workload;
  const interval = 1e9 / (rate * streams);
  const all = Array.from({ length: messages }, (_, exchange) => {
    return { exchange, stream: exchange % streams, after: Math.floor(exchange * interval) };
  });
  const connections = NOT_SHARED.has(transport);
  if (!connections && !MANY_STREAMS.has(transport)) return openLoop(lane, [all]);
  const flows = Array.from({ length: streams }, (_, stream) => all.filter((due) => due.stream === stream));
  return openLoop(lane, flows, connections);
}
