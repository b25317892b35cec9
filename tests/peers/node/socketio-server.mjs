// The official Socket.IO server, over WebSocket and HTTP long polling.
import http from "node:http";
import * as peer from "./peer.mjs";
import { echo, SERVER_OPTIONS } from "./socketio.mjs";

const { Server } = peer.npm("socket.io");
const given = peer.options(SERVER_OPTIONS);
const server = http.createServer();
const { transports, ping_interval_ms: pingInterval } = given;
echo(new Server(server, { transports, pingInterval, maxHttpBufferSize: 2 ** 24 }), given);
peer.listen(server);
peer.endWithStandardInput();
