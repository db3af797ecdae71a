"""Verdicts on the thesis' empirical claims, each derived from numbers by a rule."""

from temperance_thesis.verdicts.claim import Check, Claim, Decision
from temperance_thesis.verdicts.estimates import Estimate
from temperance_thesis.verdicts.evidence import Evidence, evidence, planned
from temperance_thesis.verdicts.page import CLAIMS, decisions, page
from temperance_thesis.verdicts.run import Run

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
