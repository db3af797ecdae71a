"""Verdicts on the thesis' empirical claims, each derived from numbers by a rule."""

from temperance_studies.thesis.verdicts.claim import Check, Claim, Decision
from temperance_studies.thesis.verdicts.estimates import Estimate
from temperance_studies.thesis.verdicts.evidence import Evidence, evidence, planned
from temperance_studies.thesis.verdicts.page import CLAIMS, decisions, page
from temperance_studies.thesis.verdicts.run import Run

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
