"""Reference models with free scales: what they believe of a new observation."""
