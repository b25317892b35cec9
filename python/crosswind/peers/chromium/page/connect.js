// Connect: connections are set up, and each is closed at once.

import { failureOf } from "crosswind/failure.js";
import { fail, newSample } from "crosswind/session.js";

export async function run(session) {
  const { count, connections = 1 } = session.workload;
  const lanes = Array.from({ length: connections }, (_, lane) => lane);
  await Promise.all(lanes.map(async (lane) => {
    for (let number = lane; number < count; number += connections) session.add(await setUp(session, number));
  }));
}

async function setUp(session, number) {
  const sample = newSample(number, { sent: performance.now() });
  try {
    const open = await session.open();
    sample.connection = open.number;
    if (open.connection.opensWithRequest) {
      // Over HTTP a page opens no connection without a request: it is for no bytes.
      sample.sent = performance.now();
      session.note(open, await open.connection.probe(session.timeoutMs));
    }
    Object.assign(sample, { received: performance.now(), outcome: "ok" });
    await session.close(open);
  } catch (error) {
    sample.connection = error.connection ?? sample.connection;
    fail(sample, failureOf(error));
  }
  return sample;
}
