"""The choice of the default strategy, derived from the numbers."""

from __future__ import annotations

from temperance_studies.thesis.verdicts.evidence import Evidence
from temperance_studies.thesis.verdicts.strategies import BAYES, DEFAULT, NAIVE
from temperance_studies.thesis.verdicts.summary import Overall, clear_wins, inside, over


def recommended(rows: list[Overall]) -> Overall:
    """Return the strategy chosen by our rule.

    It has the fewest settings in which it is clearly worse than Bayes; among equals the most in
    which it is clearly better; among these the smallest geometric mean.
    """
    candidates = [row for row in rows if row.name not in (BAYES, NAIVE)]
    return min(candidates, key=lambda row: (row.losses, -row.wins, row.ratio.mean))


def argument(evidence: Evidence) -> str:
    """Return the text of the section; all numbers and names in it are computed."""
    rows = over(evidence, evidence.present())
    candidates = [row for row in rows if row.name not in (BAYES, NAIVE)]
    by_name = {row.name: row for row in rows}
    least = min(candidates, key=lambda row: row.ratio.mean)
    steady = min(candidates, key=lambda row: row.worst.mean)
    lines = [
        f"- Least geometric mean: {least.name}, {least.ratio}; it is clearly worse than Bayes in "
        f"{least.losses} of {least.settings} settings.",
        f"- Least worst case: {steady.name}, {steady.worst} in {steady.worst_setting}.",
    ]
    places = inside(evidence)
    if places:
        within = [row for row in over(evidence, places) if row.name not in (BAYES, NAIVE)]
        best = min(within, key=lambda row: row.ratio.mean)
        present = next(row for row in within if row.name == DEFAULT)
        lines.append(
            f"- Least geometric mean over the {len(places)} settings whose median best beta is not "
            f"at a bound: {best.name}, {best.ratio}; the present default there: {present.ratio}."
        )
    chosen, default = recommended(rows), by_name[DEFAULT]
    lines += [
        f"- Our rule (fewest clear losses to Bayes, then most clear wins, then geometric mean): "
        f"{chosen.name}, {chosen.losses} losses, {chosen.wins} wins, {chosen.ratio}.",
        f"- The present default, {DEFAULT}: {default.losses} losses, {default.wins} wins, "
        f"{default.ratio}; worst {default.worst} in {default.worst_setting}.",
    ]
    return "\n".join(lines) + "\n\n" + _conclusion(evidence, chosen, default)


def _conclusion(evidence: Evidence, chosen: Overall, default: Overall) -> str:
    """Return a comparison of the default with every other candidate, as text."""
    rows = over(evidence, evidence.present())
    others = [row for row in rows if row.name not in (BAYES, NAIVE, default.name)]
    ahead = [
        row.name
        for row in others
        if row.losses <= default.losses
        and row.wins >= default.wins
        and row.ratio.mean <= default.ratio.mean
    ]
    wins = {row.name: clear_wins(evidence, row.name, default.name) for row in others}
    rivals = [name for name, (better, worse) in wins.items() if better > worse]
    listed = "; ".join(f"{name} {better} to {worse}" for name, (better, worse) in wins.items())
    picked = "the present default" if chosen.name == default.name else chosen.name
    return (
        f"So the rule picks {picked}. As few losses, as many wins and as small a geometric mean as "
        f"the present default, or better: {', '.join(ahead) or 'none'}. Head to head with it, "
        f"settings in which the other is clearly better to those in which it is clearly worse: "
        f"{listed}. More often better than worse: {', '.join(rivals) or 'none'}. What a choice "
        "costs, below, is the other half of the argument: where there is no closed form, "
        "leave-one-out fits as often as there are rows."
    )
