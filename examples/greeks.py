"""Sensitivities of an option, averaged over simulated paths. Run: python examples/greeks.py"""

import random

from pygrad import math, maximum, value_and_grad


def payoff(market, draws, strike=100.0, years=1.0):
    """Discounted payoff of a call at the end of one path of geometric Brownian motion."""
    spot, volatility, rate = market["spot"], market["volatility"], market["rate"]
    dt = years / len(draws)
    for z in draws:
        spot = spot * math.exp((rate - 0.5 * volatility**2) * dt + volatility * math.sqrt(dt) * z)
    return math.exp(-rate * years) * maximum(spot - strike, 0.0)


def main(paths=2000, steps=12):
    rng = random.Random(5)
    market = {"spot": 100.0, "volatility": 0.2, "rate": 0.03}
    f = value_and_grad(payoff)
    price, greeks = 0.0, dict.fromkeys(market, 0.0)
    for _ in range(paths):
        value, gradient = f(market, [rng.gauss(0, 1) for _ in range(steps)])
        price += value / paths
        for name in greeks:
            greeks[name] += gradient[name] / paths
    print(f"price {price:.3f}  delta {greeks['spot']:.3f}  vega {greeks['volatility']:.2f}  rho {greeks['rate']:.2f}")
    return price, greeks


if __name__ == "__main__":
    main()
