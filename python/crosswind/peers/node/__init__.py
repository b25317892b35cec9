"""Peers in JavaScript (docs/peers-node.md): ws, Socket.IO and the runtimes' own HTTP, and WebTransport in Deno.

    python -m crosswind.peers.node
    python -m crosswind.peers.deno

Either follows docs/peers.md. Their program is in js; `crosswind.peers.node.install` fetches its npm packages.
"""
