// What is reported of an exchange (docs/peers.md). Times are in nanoseconds of the client's clock.

/** A sample of which nothing is known yet. */
export const newSample = (exchange, stream = 0) => ({
  exchange,
  connection: 0,
  stream,
  intended_ns: null,
  sent_ns: null,
  received_ns: null,
  sent_bytes: 0,
  received_bytes: 0,
  outcome: "error",
  error: null,
});

/** Makes a sample that of an exchange that was answered. */
export function answered(sample, reply, receivedNs) {
  Object.assign(sample, { received_ns: receivedNs, received_bytes: reply.length, outcome: "ok", error: null });
}

/** Makes a sample that of a failed exchange. A connection that could not be set up has a number too. */
export function fail(sample, { outcome, message, connection = sample.connection }) {
  Object.assign(sample, { connection, outcome, error: message });
}
