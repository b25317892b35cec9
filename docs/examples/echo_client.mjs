// A peer in 30 lines: the client of the workload echo over tcp, for Node, Deno or Bun. docs/peers.md describes the protocol.
import { readFileSync } from "node:fs";
import { connect } from "node:net";

const { address, port, workload } = JSON.parse(readFileSync(0, "utf8"));
const start = process.hrtime.bigint(); // CLOCK_MONOTONIC
const now = () => Number(process.hrtime.bigint() - start);
const show = (event, values) => console.log(JSON.stringify({ event, ...values }));
const clock = { name: "process.hrtime", resolution_ns: 1, monotonic_ns: Number(start) };
show("ready", { implementation: `echo_client.mjs on ${process.version}`, clock });
const [samples, message, begun] = [[], Buffer.alloc(workload.size_bytes), now()];
let sample;
const send = () => {
  sample = { exchange: samples.length, connection: 0, sent_bytes: message.length, received_bytes: 0, outcome: "closed" };
  sample.sent_ns = now();
  socket.write(message);
};
const socket = connect({ host: address, port, noDelay: true }, () => {
  show("connected", { connection: 0, transport: "tcp", setup_ns: now() - begun });
  send();
});
socket.on("data", (data) => {
  sample.received_bytes += data.length;
  if (sample.received_bytes < message.length) return;
  samples.push({ ...sample, received_ns: now(), outcome: "ok" });
  if (samples.length < workload.messages) return send();
  socket.end();
  for (const each of samples) show("sample", each);
  show("finished");
});
