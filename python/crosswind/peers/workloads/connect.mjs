// Connect: connections are set up, and each is closed at once.

import { failureOf } from "./failure.mjs";
import { numbers, sideBySide } from "./lanes.mjs";
import { fail, newSample } from "./samples.mjs";

export function run(session) {
  const { count, connections = 1 } = session.workload;
  return sideBySide(connections, async (lane) => {
    for (const exchange of numbers(lane, connections, count)) session.add(await setUp(session, exchange));
  });
}

async function setUp(session, exchange) {
  const sample = newSample(exchange);
  sample.sent_ns = session.now();
  try {
    const open = await session.open();
    if (open.connection.opensWithRequest) {
      // Over HTTP a page opens no connection without a request: it is for no bytes.
      sample.sent_ns = session.now();
      sample.connection = open.number;
      session.note(open, await open.connection.probe(session.timeoutNs));
    }
    Object.assign(sample, { connection: open.number, received_ns: session.now(), outcome: "ok" });
    await session.close(open);
  } catch (error) {
    fail(sample, failureOf(error));
  }
  return sample;
}
