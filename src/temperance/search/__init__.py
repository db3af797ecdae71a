"""Search for the best beta: the axis, the minimum, cheap bounds, the range of betas."""
