"""How sure an answer is: standard errors, ranges of beta, information, certificates."""
