"""Risk curves of models that can only be sampled: draws at several betas, reweighted."""
