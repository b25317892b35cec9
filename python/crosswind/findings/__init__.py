"""What a study finds, by kind: what is declared of it, how it is judged, and how it is shown.

A kind has a folder with `declare` (its table in a study), `judge` (from samples to a result) and `show` (its words,
tables and charts). What all of them share stands here: the statement, the judge, and the families it corrects for.
"""
