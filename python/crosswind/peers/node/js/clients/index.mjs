// Which client carries a transport, by runtime, and which workloads it has; what none can do is refused in one sentence.
import { describeClock } from "../clock.mjs";
import { PeerError, refuseTransport, runtime, say } from "../job.mjs";
import { Record } from "../record.mjs";
import { Lane } from "../workloads/lane.mjs";

const EVERYWHERE = {
  tcp: "bytes",
  tls: "bytes",
  http1: "http1",
  https1: "http1",
  h2c: "http2",
  http2: "http2",
  websocket: "websocket",
  wss: "websocket",
  "socketio-websocket": "socketio",
};
const CLIENTS = {
  node: EVERYWHERE,
  deno: {
    ...EVERYWHERE,
    webtransport: "webtransport",
    "webtransport-datagram": "webtransport",
    "socketio-webtransport": "socketio",
  },
};
const WORKLOADS = ["echo", "connect", "multiplex"];

/** Does the workload of a job and prints what it saw. */
export async function call(job) {
  const { kind, transport, resumption } = job.workload;
  refuseTransport("client", CLIENTS, transport);
  if (!WORKLOADS.includes(kind)) {
    throw new PeerError(`a ${runtime} client has no workload ${kind}`, `use client = "native"; ${runtime} has ${WORKLOADS.join(", ")}`);
  }
  if ((resumption ?? "none") !== "none") {
    throw new PeerError(`a ${runtime} client resumes no sessions`, 'use resumption = "none", or client = "native"');
  }
  if (transport.includes("webtransport") && job.address.includes(":")) {
    throw new PeerError("Deno's WebTransport does not connect to an IPv6 address", 'use family = "ipv4", or client = "native"');
  }
  const client = await import(`./${CLIENTS[runtime][transport]}.mjs`);
  const workload = await import(`../workloads/${kind}.mjs`);
  const record = new Record(job.workload);
  say({ event: "ready", implementation: client.implementation(job), clock: describeClock() });
  await workload.run(new Lane(job, client.connect, record));
  record.print();
  say({ event: "finished" });
}
