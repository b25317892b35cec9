"""The page at the end of `crosswind live`: one HTML file, which opens offline (`--html FILE`).

    History: the windows and events of a session -> Account -> page: header, conditions, charts, tables

It is drawn as the reports of studies are (crosswind.report). Only `surroundings` looks at the machine.
"""
