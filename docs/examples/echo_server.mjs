// A peer: the server of the workload echo over tcp, for Node, Deno or Bun. docs/peers.md describes the protocol.
import { createServer } from "node:net";
import { createInterface } from "node:readline";

const input = createInterface({ input: process.stdin });
input.once("line", (line) => {
  const job = JSON.parse(line);
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on("error", () => {}); // a client that is gone
    socket.pipe(socket);
  });
  server.listen(job.port, job.address, () => {
    console.log(JSON.stringify({ event: "listening", implementation: `echo_server.mjs on ${process.version}` }));
  });
});
input.once("close", () => process.exit(0)); // Crosswind has closed it: no more clients
