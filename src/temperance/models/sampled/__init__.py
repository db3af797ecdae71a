"""Risk curves of models that can only be sampled: ladders of tempered runs, reweighted."""
