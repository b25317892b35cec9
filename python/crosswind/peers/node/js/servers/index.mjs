// Which server carries a transport.
import { say } from "../job.mjs";

const SERVERS = {
  tcp: "bytes",
  tls: "bytes",
  http1: "http",
  https1: "http",
  h2c: "http",
  http2: "http",
  websocket: "websocket",
  wss: "websocket",
  "socketio-websocket": "socketio",
  webtransport: "webtransport",
  "webtransport-datagram": "webtransport",
  "socketio-webtransport": "socketio-webtransport",
};

/** Serves the workload of a job, once it has said that it listens. */
export async function serve(job) {
  const server = await import(`./${SERVERS[job.workload.transport]}.mjs`);
  say({ event: "listening", implementation: await server.serve(job) });
}
