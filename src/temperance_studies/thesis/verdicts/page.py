r"""The page of verdicts: one row for each claim, with its numbers."""

from __future__ import annotations

from temperance_studies.settings import AS_CODED, AS_STATED, VERSIONS, Version
from temperance_studies.study import ratios
from temperance_studies.study.strategies import LINEAR_DRAWS, LOGISTIC_DRAWS
from temperance_studies.thesis.verdicts import (
    conclusion,
    introduction,
    linear,
    logistic,
    other_regressions,
)
from temperance_studies.thesis.verdicts.claim import OPEN, SHOWN, Claim, Decision
from temperance_studies.thesis.verdicts.default import argument
from temperance_studies.thesis.verdicts.evidence import Evidence
from temperance_studies.thesis.verdicts.markdown import table
from temperance_studies.thesis.verdicts.run import Run
from temperance_studies.thesis.verdicts.summary import (
    cost_rows,
    inside,
    over,
    overall_rows,
    setting_rows,
    spent_rows,
    transfer_rows,
)
from temperance_studies.thesis.verdicts.wording import (
    COST,
    INTRODUCTION,
    NOT_MEASURED,
    READING,
    RULE,
    SPENT,
    SUMMARY,
    TRANSFER,
)

CLAIMS: tuple[Claim, ...] = (
    *introduction.CLAIMS,
    *linear.CLAIMS,
    *other_regressions.CLAIMS,
    *logistic.CLAIMS,
    *conclusion.CLAIMS,
)


def decisions(evidence: Evidence) -> dict[str, Decision]:
    """Return the decision on every claim, by key."""
    return {claim.key: claim.decide(evidence) for claim in CLAIMS}


def page(evidence: Evidence, run: Run | None = None) -> str:
    """Return the page in Markdown.

    Parameters
    ----------
    evidence : Evidence
    run : Run, optional
        The run that made the page, described in the introduction.
    """
    made = run or Run()
    found = decisions(evidence)
    parts = [
        "# What the thesis claims, and what we measure",
        INTRODUCTION.format(repeats=evidence.repeats, seed=evidence.seed),
        f"```sh\n{made.command}\n```",
        made.described(evidence.seconds),
        RULE,
        "## Verdicts",
        _tally(found),
        _verdicts(found),
        "## Against Bayes, setting by setting",
        READING,
        *(part for version in VERSIONS for part in _by_setting(evidence, version)),
        "## Over all settings",
        SUMMARY.format(ratios=ratios.RULE),
        _overall(evidence),
        "## Is it better to keep beta fixed or alpha?",
        TRANSFER.format(ratios=ratios.RULE),
        table(*transfer_rows(evidence)),
        "## Which strategy should be the default of models without a reference?",
        argument(evidence),
        "## What a choice costs",
        COST.format(linear=LINEAR_DRAWS, logistic=LOGISTIC_DRAWS),
        table(*cost_rows(evidence)),
        SPENT,
        table(*spent_rows(evidence)),
        "## What could not be decided",
        _undecided(found),
        NOT_MEASURED,
        "## Comparison by comparison",
        f"The checks of claims with more than {SHOWN} in a version.",
        _details(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _tally(found: dict[str, Decision]) -> str:
    words: list[str] = [decision.word for decision in found.values()]
    holds, fails, open_, depends = map(words.count, ("holds", "fails", "open", "depends"))
    ours = sum(claim.where == conclusion.OURS for claim in CLAIMS)
    undecided = sum(each.undecided for each in found.values())
    return (
        f"Of {len(words) - ours} claims of the thesis and {ours} of ours {holds} hold, {fails} "
        f"fail, {open_} cannot be told, and {depends} depend on the setting, the version or the "
        f"strategy; no check contradicts {undecided} of the latter."
    )


def _verdicts(found: dict[str, Decision]) -> str:
    header = ["", "claim", "in", "test", "as stated", "as coded", "checks", "verdict"]
    return table(
        header,
        [
            [
                str(number),
                claim.quote,
                claim.where,
                found[claim.key].test,
                found[claim.key].stated,
                found[claim.key].coded,
                found[claim.key].support,
                f"**{found[claim.key].word}**" + (" (open)" if found[claim.key].undecided else ""),
            ]
            for number, claim in enumerate(CLAIMS, 1)
        ],
    )


def _by_setting(evidence: Evidence, version: Version) -> list[str]:
    title = {AS_STATED: "### As stated", AS_CODED: "### As coded"}[version]
    names = {key: setting.name for key, setting in evidence.settings(version).items()}
    legend = "; ".join(f"`{key}` {name}" for key, name in names.items())
    return [title, table(*setting_rows(evidence, version)), f"Settings: {legend}."]


def _overall(evidence: Evidence) -> str:
    places = evidence.present()
    groups = {
        "all settings of both versions": places,
        "as stated": [place for place in places if place[0] == AS_STATED],
        "as coded": [place for place in places if place[0] == AS_CODED],
        "settings whose median best beta is not at a bound": inside(evidence),
    }
    return "\n\n".join(
        f"### {title[0].upper()}{title[1:]}: {len(group)}\n\n"
        + table(*overall_rows(over(evidence, group)))
        for title, group in groups.items()
        if group
    )


def _undecided(found: dict[str, Decision]) -> str:
    lines = []
    for number, claim in enumerate(CLAIMS, 1):
        checks = found[claim.key].checks
        still_open = [check for check in checks if check.mark == OPEN]
        if 2 * len(still_open) >= len(checks):
            lines.append(
                f"- {number}, {claim.quote} {len(still_open)} of {len(checks)} checks are open."
            )
    if not lines:
        return "No claim has half of its checks open or more."
    return "Claims with half of their checks open or more, where more data sets could tell:\n\n" + (
        "\n".join(lines)
    )


def _details(found: dict[str, Decision]) -> str:
    rows = []
    for number, claim in enumerate(CLAIMS, 1):
        for version in VERSIONS:
            checks = [check for check in found[claim.key].checks if check.version == version]
            if len(checks) > SHOWN:
                rows.append([str(number), version, "; ".join(map(str, checks))])
    return table(["claim", "version", "measured ± standard error"], rows)
