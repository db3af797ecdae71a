"""Which strategy should be the default: an argument from the numbers."""

from __future__ import annotations

from temperance.verdicts.evidence import Evidence
from temperance.verdicts.strategies import BAYES, DEFAULT, NAIVE
from temperance.verdicts.summary import Overall, clear_wins, inside, over


def recommended(rows: list[Overall]) -> Overall:
    """Return the strategy by our rule.

    Fewest settings in which it is clearly worse than Bayes; among equals the most in which it is
    clearly better; among these the least geometric mean.
    """
    candidates = [row for row in rows if row.name not in (BAYES, NAIVE)]
    return min(candidates, key=lambda row: (row.losses, -row.wins, row.ratio.mean))


def argument(evidence: Evidence) -> str:
    """Return the section's text; every number and name in it is computed."""
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
    if chosen.name == default.name:
        return f"So the rule picks the present default, {default.name}."
    better, worse = clear_wins(evidence, chosen.name, default.name)
    text = (
        f"So the rule picks {chosen.name} and not the present default. Head to head, paired, "
        f"{chosen.name} is clearly better than {default.name} in {better} of {chosen.settings} "
        f"settings and clearly worse in {worse}."
    )
    if better <= worse:
        text += " These data give no reason to change the default."
    return text
