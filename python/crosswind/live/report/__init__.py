"""The page at the end of `crosswind live`: one HTML file, readable offline (`--html FILE`).

    History: a session's windows and events -> Account -> page: header, conditions, charts, tables

Its renderer is crosswind.report. Only `surroundings` looks at the machine.
"""
