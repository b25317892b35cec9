// Connect: connections are set up, and each is closed at once.
import { now } from "../clock.mjs";
import { fill } from "../outcome.mjs";
import { numbers, sideBySide } from "./lane.mjs";

export function run(lane) {
  const { count, connections } = lane.workload;
  return sideBySide(connections, async (number) => {
    for (const exchange of numbers(number, connections, count)) await setUp(lane, exchange);
  });
}

async function setUp(lane, exchange) {
  const sample = lane.record.sample(exchange);
  sample.sent_ns = now();
  try {
    const connection = await lane.open();
    sample.connection = connection.number;
    sample.received_ns = now();
    await lane.close(connection);
  } catch (error) {
    fill(sample, error);
  }
}
