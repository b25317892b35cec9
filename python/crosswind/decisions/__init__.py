"""Decisions: statements, their judge, families for his corrections, the grammar of conditions.

Nothing here knows a study, a run or a report.
"""
