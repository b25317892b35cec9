// HTTP/1.1 of the runtime: node:http and node:https, one connection that is kept.
import http from "node:http";
import https from "node:https";
import { implementation as describe } from "../job.mjs";
import { connectSocket } from "./bytes.mjs";

export const implementation = () => `${describe()}, node:http`;

export async function connect(job, signal) {
  const { transport } = job.workload;
  const secure = transport === "https1";
  const { socket, phases } = await connectSocket(job, signal, secure, { ALPNProtocols: ["http/1.1"] });
  const module = secure ? https : http;
  const agent = new module.Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => socket;
  const options = { agent, host: secure ? "localhost" : job.address, port: job.port, method: "POST", path: "/echo" };
  const stream = {
    send: (body) => {
      const request = module.request({ ...options, headers: { "content-length": body.length } });
      request.on("error", (error) => stream.onEnd?.(error));
      request.on("response", (response) => {
        const pieces = [];
        response.on("data", (piece) => pieces.push(piece));
        response.on("end", () => stream.onReply?.(Buffer.concat(pieces)));
      });
      request.end(body);
    },
    finish: () => {},
  };
  return {
    transport,
    phases,
    open: () => stream,
    close: () => agent.destroy(),
    abort: () => socket.destroy(),
  };
}
