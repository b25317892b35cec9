// Which client carries a transport, and what it does there.
import { describeClock } from "../clock.mjs";
import { say } from "../job.mjs";
import { Session } from "./session.mjs";

const CLIENTS = {
  tcp: "bytes",
  tls: "bytes",
  http1: "http1",
  https1: "http1",
  h2c: "http2",
  http2: "http2",
  websocket: "websocket",
  wss: "websocket",
  "socketio-websocket": "socketio",
  webtransport: "webtransport",
  "webtransport-datagram": "webtransport",
  "socketio-webtransport": "socketio",
};

/** Does the workload of a job and prints what it saw. */
export async function call(job) {
  const client = await import(`./${CLIENTS[job.workload.transport]}.mjs`);
  const workload = await import(`../../../workloads/${job.workload.kind}.mjs`);
  say({ event: "ready", implementation: client.implementation(job), clock: describeClock() });
  const session = new Session(job, client.connect);
  await workload.run(session);
  session.print();
  say({ event: "finished" });
}
