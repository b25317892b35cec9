// HTTP/1.1 and HTTP/2 servers of Node: POST is answered by the body that came, GET /bytes/N by N bytes.
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import * as peer from "./peer.mjs";

const given = peer.options({
  transport: "http1",
  certificate_path: null,
  key_path: null,
  // The so manieth request is not answered: "kill" ends the process, "reset" the connection in the middle of a body.
  end: null,
  after: 0,
});

let count = 0;
async function answer(request, response) {
  const pieces = [];
  try {
    for await (const piece of request) pieces.push(piece);
  } catch {
    return; // the client left in the middle
  }
  let body = Buffer.concat(pieces);
  if (request.method === "GET") body = peer.message(Number(request.url.split("/").at(-1)), "binary");
  if (given.end !== null && count++ === given.after) {
    if (given.end === "kill") peer.killSelf();
    response.writeHead(200, { "content-length": body.length });
    response.write(body.subarray(0, body.length / 2), () => {
      // HTTP/2 hides its socket; RST_STREAM ends the stream as abruptly.
      if (request.stream) request.stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
      else (request.socket._parent ?? request.socket).resetAndDestroy(); // below TLS, if there is TLS
    });
    return;
  }
  response.writeHead(200, { "content-type": "application/octet-stream", "content-length": body.length });
  response.end(body);
}

const servers = {
  http1: () => http.createServer(answer),
  https1: () => https.createServer({ ...peer.identity(given), ALPNProtocols: ["http/1.1"] }, answer),
  h2c: () => http2.createServer(answer),
  http2: () => http2.createSecureServer({ ...peer.identity(given), allowHTTP1: false }, answer),
};
peer.listen(servers[given.transport]());
peer.endWithStandardInput();
