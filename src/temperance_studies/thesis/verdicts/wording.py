"""Fixed texts of the page."""

INTRODUCTION = """\
This page tests every empirical claim of L. Perrotta, *Practical calibration of the temperature
parameter in Gibbs posteriors*, 2020, [arXiv:2004.10522](https://arxiv.org/abs/2004.10522), "the
thesis", that can be measured at little cost, on {repeats} data sets of each setting, seed {seed},
in two versions. *As stated* are the data of the text, *as coded* those of the published code where
they differ ([errata](errata.md)): a noise variance squared, a mixture that is a sum, a polynomial
tested without noise, logistic clusters tested on other clusters, and there a prior of variance 20
for Jaakkola's posterior but 1 for the mean-field one. The algorithms are ours in both: converged
fits, exact risks, no stochastic gradients. The thesis' five strategies keep alpha fixed; beta lies
in [0, 3]; the risk is the true Gibbs risk. One command computes the page, its verdicts as well as
its numbers:"""

RULE = """\
How a verdict is found. A claim is a set of checks, one for each setting, version and strategy that
it is about. A check is a number with its standard error, paired over data sets wherever two things
are compared on the same data, and the range in which it should lie according to the claim. It
supports the claim (✓) if the number ± 2 standard errors lies inside that range, contradicts it (✗)
if it lies outside, and is open (?) otherwise. Where the claim is about a value, as in "a best beta
of about 1.7", it is enough that the number lies in the range and that two standard errors are less
than its width.

- **holds**: every check supports the claim.
- **fails**: no check does, and some contradict it.
- **open**: no check does, and none contradicts it: the data cannot tell.
- **depends**: some do, and the cells show which; "(open)" says that none contradicts it.

A claim that says several things at once, as in "worse than both, and better than Bayes", is judged
part by part. It holds if every part holds. It fails if one part fails and a check contradicts that
part. It depends otherwise. The column of checks gives the verdict on each part.

As in the thesis, the true parameter is drawn once and is the same in all settings:
errors are over data sets of that parameter, not over parameters.

Where the thesis gives no number, we take its words to mean: *almost as good as the best*, at
most a quarter of Bayes' excess risk; *similar*, within a factor of two; *imperceptible*, within 5 %
of the risk; *close to the maximum*, above 2.5; *close to 1*, between 0.5 and 1.5; *close to 0*,
below 0.25. The error of a median is half the distance between the quantiles 1/2 ± 1/(2 sqrt(n)),
that of a ratio follows from the delta method. With many checks some
are wrong by chance: of differences that are zero, about one in twenty is beyond two standard
errors. A claim with many checks must pass them all to hold. Where a row compares with the best or
worst of several strategies, that one is picked by its mean risk on the same data, which is slightly
unfavourable to the claim."""

READING = """\
Mean excess risk over the best beta in [0, 3], relative to that of Bayes; in brackets the paired
difference of risks in units of its standard error, negative where the strategy is better than
Bayes, bold where it is clearly worse. Strategies with a plain name keep alpha fixed, as in the
thesis. A ratio of zero means that the strategy finds the best beta, often the bound."""

SUMMARY = """\
*Excess risk* is the geometric mean over settings of the ratio to Bayes, {ratios}.
*Better* and *worse* count settings beyond two standard errors of the paired difference."""

TRANSFER = """\
Paired over data sets, all settings of both versions. The second column is the geometric mean of
the excess risk with beta fixed, relative to that with alpha fixed, {ratios}."""

COST = """\
Median time of one choice in this run, geometric mean over settings; the machine may have done
other work at the same time. The bootstrap has {linear} draws, in logistic models {logistic}."""

SPENT = """\
The time of all choices of the study: seconds of one worker, from the store, summed
over the data sets of both versions, by family of models. The best beta and the true risks are not
included. All figures from 30 data sets of each setting, both versions, took 107 s on two cores
(`temperance reproduce --all --repeats 30 --jobs 2`): 95 s of comparisons, 9 s of drawing, and
imports."""

NOT_MEASURED = """\
Not measured:

- That the structure of the likelihood does not affect the strategies: the thesis varies model,
  dimension and noise at once, and gives no number that could be compared.
- That sample splitting and SafeBayes converge where Bayes does not: it is about n to infinity.
- That some beta has a posterior mean without bias (the ridgeline figure): true of one data set, by
  the choice of beta.
- What Bayes by Backprop does before it has converged: the two variational posteriors are compared
  at their optimum, so that the claims are about posteriors and not about step sizes.
- The thesis' stochastic gradients in alpha: see the [errata](errata.md).
- Real data, the thesis' further work: they have a [page](real-data.md) of their own."""
