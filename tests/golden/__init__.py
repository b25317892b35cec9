"""What the command line says, of this tree and of an earlier commit, compared byte by byte (`python -m golden`)."""
