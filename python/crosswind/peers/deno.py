"""The peer `deno`: python -m crosswind.peers.deno."""

from crosswind.peers.node.launch import launch

launch("deno")
