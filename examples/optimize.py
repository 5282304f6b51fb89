"""Maximum likelihood with scipy.optimize: a plain loop, its gradient and Hessian. Run: python examples/optimize.py"""

import random

import numpy as np
from scipy.optimize import minimize

from pygrad import hessian, math, value_and_grad


def negative_log_likelihood(parameters, counts, doses):
    """Poisson regression, log rate = a + b * dose."""
    a, b = parameters
    total = 0.0
    for count, dose in zip(counts, doses, strict=True):
        log_rate = a + b * dose
        total += math.exp(log_rate) - count * log_rate + math.lgamma(count + 1.0)
    return total


def simulate(a, b, count, seed):
    """Poisson counts at evenly spaced doses, by inversion."""
    rng = random.Random(seed)
    doses = [3 * k / count for k in range(count)]
    counts = []
    for dose in doses:
        rate = math.exp(a + b * dose)
        k, term, u = 0, math.exp(-rate), rng.random()
        while u > term and k < 1000:
            u -= term
            k += 1
            term *= rate / k
        counts.append(float(k))
    return counts, doses


def main(count=200):
    counts, doses = simulate(0.5, 0.8, count, seed=4)
    f = value_and_grad(negative_log_likelihood, as_values=True)
    found = minimize(f, np.zeros(2), args=(counts, doses), jac=True, method="BFGS")
    curvature = hessian(negative_log_likelihood, as_values=True)(found.x, counts, doses)
    errors = np.sqrt(np.diag(np.linalg.inv(curvature)))
    for name, estimate, error in zip("ab", found.x, errors, strict=True):
        print(f"{name} = {estimate:.3f} +- {error:.3f}")
    return found.x, errors


if __name__ == "__main__":
    main()
