"""The peer `node`."""

from crosswind.peers.node.launch import launch

launch("node")
