"""Draw from heart.stan with PyStan and write heart-draws.csv (a minute): ``python heart_draws.py``.

Draws of the exponential model at beta = 1 and at the beta that plot_stan_draws.py finds with
them, and of the Weibull model at beta = 1.
"""

import csv
from pathlib import Path

import stan
from statsmodels.datasets import heart

HERE = Path(__file__).parent
RUNS = (("exponential", 1.0), ("exponential", 0.5), ("weibull", 1.0))


def draws_of(model, beta):
    """Return chain, level, slope and shape of every draw."""
    table = heart.load_pandas().data
    data = {
        "n": len(table),
        "time": table["survival"].tolist(),
        "died": table["censors"].tolist(),
        "age": ((table["age"] - 45) / 10).tolist(),
        "weibull": int(model == "weibull"),
        "beta": beta,
    }
    program = stan.build((HERE / "heart.stan").read_text(), data=data, random_seed=1)
    fit = program.sample(num_chains=4, num_samples=400)
    shape = fit["shape"][0] if model == "weibull" else [""] * 1600
    chain = [i % 4 for i in range(1600)]  # draws of the chains in turn
    return zip(chain, fit["level"][0], fit["slope"][0], shape, strict=True)


if __name__ == "__main__":
    with open(HERE / "heart-draws.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model", "beta", "chain", "level", "slope", "shape"])
        for model, beta in RUNS:
            for chain, *values in draws_of(model, beta):
                writer.writerow(
                    [model, beta, chain, *(f"{value:.3f}" if value else "" for value in values)]
                )
