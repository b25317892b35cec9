// An echo server from the package ws.
import http from "node:http";
import https from "node:https";
import { once } from "node:events";
import * as peer from "./peer.mjs";

const { WebSocketServer } = peer.npm("ws");
const given = peer.options({
  transport: "websocket",
  certificate_path: null,
  key_path: null,
  deflate: false,
  // Pings with this before each echo, which waits for the pong.
  ping: null,
  // After so many messages, when one more comes: "close" with `code`, "reset" in the middle of a message, "kill".
  end: null,
  after: 0,
  code: 1000,
});

const server = given.transport === "wss" ? https.createServer(peer.identity(given)) : http.createServer();
const sockets = new WebSocketServer({ server, perMessageDeflate: given.deflate, maxPayload: 2 ** 24 });
sockets.on("connection", (socket) => {
  let count = 0;
  socket.on("message", async (data, binary) => {
    if (given.end !== null && count === given.after) return end(socket);
    count += 1;
    if (given.ping !== null) {
      socket.ping(given.ping);
      const [payload] = await once(socket, "pong", { signal: AbortSignal.timeout(peer.DEADLINE_MS) });
      peer.say({ event: "pong", payload: payload.toString() });
    }
    socket.send(data, { binary });
  });
  // ws reports what a broken peer does as "error", then "close".
  socket.on("error", (error) => peer.say({ event: "error", how: error.code ?? error.message }));
  socket.on("close", (code, reason) => peer.say({ event: "closed", code, reason: reason.toString() }));
});

function end(socket) {
  if (given.end === "kill") {
    peer.killSelf();
  } else if (given.end === "reset") {
    // A frame that promises 100 bytes and brings 4, then RST instead of FIN.
    const tcp = socket._socket;
    // Below TLS there is the socket that can be reset.
    tcp.write(Buffer.from([0x82, 0x64, 1, 2, 3, 4]), () => (tcp._parent ?? tcp).resetAndDestroy());
  } else {
    socket.close(given.code, "done");
  }
}

peer.listen(server);
peer.endWithStandardInput();
