"""Verdicts on the thesis' empirical claims, each a word that follows from numbers by a rule."""

from temperance.verdicts.claim import Check, Claim, Decision
from temperance.verdicts.estimates import Estimate
from temperance.verdicts.evidence import Evidence, evidence, planned
from temperance.verdicts.page import CLAIMS, decisions, page
from temperance.verdicts.run import Run

__all__ = [
    "CLAIMS",
    "Check",
    "Claim",
    "Decision",
    "Estimate",
    "Evidence",
    "Run",
    "decisions",
    "evidence",
    "page",
    "planned",
]
