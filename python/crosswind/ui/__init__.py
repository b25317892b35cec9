"""The page of `crosswind ui`: runs, their reports and new studies, in a browser on this machine.

`guard` decides who is answered, `runs` reads what a run's directory says, `studies` what a form and its TOML mean,
`commands` runs what the command line does, `app` has the addresses, `server` the socket. The page is plain modules of
JavaScript (`static/`). `by_hand` measures one path at once.
What is kept is kept by runs alone, so that neither a browser nor the server is missed when it leaves.
"""
