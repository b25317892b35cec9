"""What decides: statements, the judge who rules on them, the families that he corrects for, the grammar of conditions.

Nothing here knows a study, a run or a report.
"""
