"""The page of `crosswind ui`: runs, their reports and new studies, in a browser on this machine.

`guard` authorises requests, `runs` reads run directories, `studies` converts a form to TOML and back, `commands` runs
the command line, `app` has the addresses, `server` the socket. The page is plain modules of JavaScript (`static/`).
`by_hand` measures one path at once. Only runs keep state, so neither a browser nor the server is missed when it leaves.
"""
