// The official Socket.IO server over WebSocket, with HTTP long polling before it where a client begins so.
import http from "node:http";
import { implementation, npm } from "../job.mjs";
import { sizesOf } from "../../../workloads/messages.mjs";
import { answerer, textAnswerer } from "../messages.mjs";
import { listen } from "./listen.mjs";

/** The default of Socket.IO's `maxHttpBufferSize`, which a larger message needs to be larger. */
const DEFAULT_BUFFER_BYTES = 1e6;

export async function serve(job) {
  const server = http.createServer();
  socketio(server, job, ["polling", "websocket"]);
  await listen(server, job);
  return implementation("socket.io", "ws");
}

/** Socket.IO on `server`, which answers the workload's messages. */
export function socketio(server, job, transports) {
  const { Server } = npm("socket.io");
  // An event is a little longer than its argument.
  const maxHttpBufferSize = Math.max(DEFAULT_BUFFER_BYTES, sizesOf(job.workload).request + 1000);
  const io = new Server(server, { transports, maxHttpBufferSize, serveClient: false });
  // Pages from anywhere may be clients. The option `cors` would be middleware, and with middleware engine.io closes every
  // session over WebTransport.
  io.engine.on("headers", (headers) => (headers["access-control-allow-origin"] = "*"));
  io.on("connection", answers(job.workload));
  return io;
}

function answers(workload) {
  const [answerBytes, answerText] = [answerer(workload), textAnswerer(workload)];
  return (socket) => {
    socket.onAny((name, argument) => socket.emit(name, (typeof argument === "string" ? answerText : answerBytes)(argument)));
  };
}
