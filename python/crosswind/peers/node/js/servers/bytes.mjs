// A server of a stream of bytes: TCP and TLS.
import net from "node:net";
import tls from "node:tls";
import { implementation } from "../job.mjs";
import { sizesOf } from "../../../workloads/messages.mjs";
import { answerer } from "../messages.mjs";
import { cut } from "../streams.mjs";
import { identity, listen } from "./listen.mjs";

export async function serve(job) {
  const { transport } = job.workload;
  const answer = answerer(job.workload);
  const { request } = sizesOf(job.workload);
  const serveSocket = (socket) => {
    // What goes wrong with a connection the client sees.
    socket.on("error", () => {});
    socket.on("data", cut(request, (message) => socket.write(answer(message))));
  };
  const options = { noDelay: true };
  const server =
    transport === "tls" ? tls.createServer({ ...options, ...identity(job) }, serveSocket) : net.createServer(options, serveSocket);
  await listen(server, job);
  return implementation();
}
