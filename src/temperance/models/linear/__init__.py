"""Linear models: moments of predictions under any plan, in closed form."""
