"""Reference models with free scales: their predictive distribution of a new observation."""
