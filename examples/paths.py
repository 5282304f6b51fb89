"""Greeks over 10,000 Monte-Carlo paths: one program, captured once, over a batch; in threads, processes, Dask or MPI.

    python examples/paths.py                           threads of this process
    python examples/paths.py processes                 4 processes
    python examples/paths.py dask                      a local Dask cluster of 4 processes: pip install dask distributed
    mpiexec -n 5 python -m mpi4py.futures examples/paths.py mpi      4 workers and this one: pip install mpi4py

Every way gives the same numbers to the last bit.
"""

import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import pygrad
from pygrad import math, maximum


def payoff(market, noise, strike=100.0):
    """A call on one path under Scott's stochastic volatility.

    The market is spot, rate, log-volatility, its speed, level and volatility; noise holds two normal increments a step.
    """
    spot, rate, log_vol, speed, level, vol_of_vol = market
    steps = len(noise) // 2
    dt = 1.0 / steps
    for k in range(steps):
        spot = spot + spot * (rate * dt + math.exp(log_vol) * noise[2 * k])
        log_vol = log_vol + speed * dt * (level - log_vol) + vol_of_vol * noise[2 * k + 1]
    return math.exp(-rate) * maximum(spot - strike, 0.0)


GREEKS = pygrad.value_and_grad(pygrad.compile(payoff))
MARKET = [100.0, 0.03, -1.6, 2.0, -1.5, 0.4]


def simulated(paths, steps, seed=7):
    """An array of shape (paths, 2 * steps), a column after the other, so that lanes lie side by side."""
    noise = np.random.default_rng(seed).normal(0.0, steps**-0.5, (2 * steps, paths))
    return noise.T


def report(values, gradients):
    error = values.std() / len(values) ** 0.5
    delta, rho, vega = gradients.mean(axis=0)[:3]
    print(f"price {values.mean():.4f} +- {error:.4f}  delta {delta:.4f}  rho {rho:.3f}  vega {vega:.3f}")


def main(how="threads", paths=10_000, steps=252, workers=4):
    noise = simulated(paths, steps)
    if how == "threads":
        found = GREEKS.map(MARKET, noise)
    elif how == "processes":
        with ProcessPoolExecutor(workers) as executor:
            found = GREEKS.map(MARKET, noise, executor=executor)
    elif how == "dask":
        from distributed import Client, LocalCluster

        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
        with cluster, Client(cluster) as client:
            found = GREEKS.map(MARKET, noise, executor=client.get_executor())
    elif how == "mpi":
        from mpi4py.futures import MPIPoolExecutor

        with MPIPoolExecutor() as executor:
            found = GREEKS.map(MARKET, noise, executor=executor)
    else:
        raise SystemExit(f"paths.py: threads, processes, dask or mpi, found {how!r}")
    report(*found)
    return found


if __name__ == "__main__":
    alone = GREEKS.map(MARKET, simulated(10_000, 252), threads=1)
    found = main(*sys.argv[1:2])
    same = all(np.array_equal(a, b) for a, b in zip(alone, found, strict=True))
    print("equal to one thread to the last bit" if same else "NOT equal to one thread")
