"""Search for the best beta: the search scale, the minimum, cheap bounds, the range of betas."""
