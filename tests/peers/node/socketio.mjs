// What the Socket.IO peers share, whichever runtime and transport.
import process from "node:process";
import * as peer from "./peer.mjs";

export const SERVER_OPTIONS = {
  transport: "socketio-websocket",
  certificate_path: null,
  key_path: null,
  transports: ["polling", "websocket"],
  ping_interval_ms: 25_000,
  // Each message is answered after the next heartbeat, which needs the client's pong.
  heartbeat: false,
  // After so many messages, when one more comes: "close" or "kill".
  end: null,
  after: 0,
  // Instead of answers: texts of these sizes, when the client connects, has sent its probe, or has moved to WebSocket.
  unasked: null,
};

export const CLIENT_OPTIONS = {
  transport: "socketio-websocket",
  address: null,
  // SHA-256 of the server's certificate, in hexadecimal: what a browser trusts a self-signed one by.
  certificate_sha256: null,
  trust_path: null,
  transports: ["websocket"],
  // Goes on only when the session has left HTTP long polling.
  upgraded: false,
  name: "message",
  sizes: [],
  payload: "binary",
  // Before the sizes: sends texts from when it is connected until some have gone by WebSocket, without waiting for answers.
  moving: false,
  // After the messages: "orderly" or "killed".
  end: "orderly",
};

/** Sends every event back with its arguments. */
export function echo(io, given) {
  io.on("connection", (socket) => {
    const engine = socket.conn;
    peer.say({ event: "connected", transport: engine.transport.name, protocol: engine.protocol });
    engine.on("upgrade", (transport) => peer.say({ event: "upgraded", transport: transport.name }));
    if (given.unasked !== null) {
      sendUnasked(socket, given.unasked);
      return;
    }
    let count = 0;
    socket.onAny((name, ...sent) => {
      if (given.end !== null && count === given.after) {
        if (given.end === "kill") peer.killSelf();
        socket.disconnect(true);
        return;
      }
      count += 1;
      const answer = () => socket.emit(name, ...sent);
      if (given.heartbeat) engine.once("heartbeat", answer);
      else answer();
    });
    socket.on("disconnect", (reason) => peer.say({ event: "closed", reason }));
  });
}

function sendUnasked(socket, { connection, upgrading, upgrade }) {
  const send = (sizes) => sizes.forEach((size) => socket.emit("message", "x".repeat(size)));
  send(connection);
  socket.conn.once("upgrading", () => send(upgrading));
  socket.conn.once("upgrade", () => send(upgrade));
}

/** Has the client begin its move to WebSocket when it is told to, instead of as soon as it polls. */
function holdMove(engine) {
  const probe = engine._probe.bind(engine);
  const held = new Promise((resolve) => (engine._probe = (name) => resolve(() => probe(name))));
  return async () => (await held)();
}

/** Texts that a session's move overtakes: as many as fit in until it has moved, and ten more. Each comes back once, in order. */
async function sendMoving(socket, move) {
  const [sent, received] = [[], []];
  const moments = { polling: 0, upgrading: 0, websocket: 0 };
  const { engine } = socket.io;
  const back = new Promise((resolve) => {
    socket.on("moving", (text) => {
      received.push(text);
      if (moments.websocket === 10 && received.length === sent.length) resolve();
    });
  });
  const send = (moment) => {
    moments[moment] += 1;
    sent.push(`${sent.length}`);
    socket.emit("moving", sent.at(-1));
  };
  engine.once("upgrading", () => send("upgrading"));
  for (let turn = 0; engine.transport.name === "polling"; turn += 1) {
    send("polling");
    if (turn === 10) await move();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  while (moments.websocket < 10) send("websocket");
  await back;
  const outcome = received.join() === sent.join() ? "ok" : "different";
  const some = Object.keys(moments).filter((moment) => moments[moment] > 0);
  peer.say({ event: "moved", outcome, moments: some });
}

/** Sends a message of each size and checks what comes back. */
export async function call(socket, given) {
  let done = false;
  const leave = (outcome, how) => {
    if (done) return;
    peer.say({ event: "closed", outcome, how });
    process.exit(0);
  };
  peer.bounded();
  socket.on("connect_error", (error) => leave("error", error.message));
  socket.on("disconnect", (reason) => leave("closed", reason));
  const upgraded = new Promise((resolve) => {
    socket.io.engine.on("upgrade", (transport) => {
      peer.say({ event: "upgraded", transport: transport.name });
      resolve();
    });
  });
  const move = given.moving ? holdMove(socket.io.engine) : null;
  await new Promise((resolve) => socket.once("connect", resolve));
  peer.say({ event: "connected", transport: socket.io.engine.transport.name });
  if (given.upgraded) await upgraded;
  if (given.moving) await sendMoving(socket, move);
  for (const size of given.sizes) {
    const sent = peer.message(size, given.payload);
    const back = new Promise((resolve) => socket.once(given.name, (...received) => resolve(received)));
    socket.emit(given.name, given.payload === "text" ? sent.toString() : sent);
    const received = await back;
    const kind = given.payload === "text" ? "string" : "object";
    const bytes = Buffer.from(received[0]);
    const same = received.length === 1 && typeof received[0] === kind && sent.equals(bytes);
    peer.say({ size, outcome: same ? "ok" : "different", received: bytes.length });
  }
  if (given.end === "killed") peer.killSelf();
  const closed = new Promise((resolve) => socket.io.engine.once("close", resolve));
  done = true;
  socket.disconnect();
  await closed;
  peer.say({ event: "closed", outcome: "ok" });
  process.exit(0);
}
