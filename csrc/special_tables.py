"""Prints the coefficient tables of the special functions; run by hand, needs mpmath.

    python special_tables.py > special_tables.h
    python special_tables.py --python > ../pygrad/reference_special_tables.py

Each fitted table is a Chebyshev interpolation at 50 digits on the stated interval,
expanded in powers of the distance to the centre of the interval and rounded to double.
The truncation error of each is below 2e-17 of the function's smallest value there.
The asymptotic tables come straight from the Bernoulli numbers and a recurrence.
"""

import sys
from functools import partial

import mpmath
from mpmath import bernoulli, chebyt, cos, digamma, erfc, exp, loggamma, mp, mpf, pi, sqrt

mp.dps = 50
PSI_ROOT = mpmath.findroot(digamma, mpf("1.46163214496836"))


def fit(f, a, b, terms, centre=None):
    """Coefficients of the Chebyshev interpolant of f on [a, b] in powers of t - centre."""
    a, b = mpf(a), mpf(b)
    middle, half = (a + b) / 2, (b - a) / 2
    angles = [pi * (k + mpf(1) / 2) / 40 for k in range(40)]
    samples = [(w, f(middle + half * cos(w))) for w in angles]
    cheb = [sum(v * cos(j * w) for w, v in samples) / 20 for j in range(terms)]
    cheb[0] /= 2
    start = ((middle if centre is None else mpf(centre)) - middle) / half
    series = [mpmath.taylor(partial(chebyt, j), start, terms) for j in range(terms)]
    return [sum(cheb[j] * series[j][i] for j in range(terms)) / half**i for i in range(terms)]


def erfcx(x):
    return exp(x * x) * erfc(x)


def scaled_erfcx(s):
    """sqrt(pi) x erfcx(x) as a function of s = 1/x^2."""
    return sqrt(pi / s) * erfcx(1 / sqrt(s))


def digamma_factor(t):
    return digamma(1 + t) / (1 + t - PSI_ROOT)


def ierfcx_start(count):
    """p_1 .. p_count of the expansion in special_erf.c, lowest power first; 2 p_k =
    (1 - c^2) p_{k-1}' - (2k - 3) c p_{k-1} - sum_{0<i<k} p_i p_{k-i}."""
    polys = [None, [mpf(-1) / 2, mpf(1) / 2]]
    for k in range(2, count + 1):
        total = [mpf(0)] * (k + 1)
        for i, a in enumerate(polys[k - 1]):
            if i:
                total[i - 1] += i * a
            total[i + 1] -= i * a + (2 * k - 3) * a
        for i in range(1, k):
            for p, a in enumerate(polys[i]):
                for q, b in enumerate(polys[k - i]):
                    total[p + q] -= a * b
        polys.append([t / 2 for t in total])
    return [p + [mpf(0)] * (count + 1 - len(p)) for p in polys[1:]]


TABLES = {
    "ERFCX": [fit(erfcx, -0.5, 0.5, 20), fit(erfcx, 0.5, 1.5, 20), fit(erfcx, 1.5, 3, 20), fit(erfcx, 3, 5, 20)],
    "ERFCX_LARGE": fit(scaled_erfcx, 0, 0.04, 14, centre=0),
    "IERFCX_START": ierfcx_start(8),
    "RECIPROCAL_GAMMA": fit(lambda t: mpmath.rgamma(1 + t), 0, 1, 17),
    "LGAMMA": [
        fit(lambda t: loggamma(1 + t) / t if t else -mpmath.euler, -0.25, 0.25, 19),
        fit(lambda t: loggamma(mpf(3) / 2 + t), -0.25, 0.25, 19),
        fit(lambda t: loggamma(2 + t) / t if t else 1 - mpmath.euler, -0.25, 0.5, 19),
        fit(lambda t: loggamma(3 + t), -0.5, 0.5, 19),
    ],
    "DIGAMMA": [fit(digamma_factor, 0, 0.75, 21), fit(digamma_factor, 0.75, 2, 21)],
    "STIRLING": [bernoulli(2 * k) / (2 * k * (2 * k - 1)) for k in range(1, 12)],
    "DIGAMMA_LARGE": [bernoulli(2 * k) / (2 * k) for k in range(1, 13)],
    "ZETA_TAIL": [bernoulli(2 * k) / mpmath.fac(2 * k) for k in range(1, 13)],
    "PSI_ROOT_LESS_ONE": [PSI_ROOT - 1, PSI_ROOT - 1 - mpf(float(PSI_ROOT - 1))],
}


def lines(row, indent):
    words = [repr(float(v)) for v in row]
    return ",\n".join(" " * indent + ", ".join(words[i : i + 4]) for i in range(0, len(words), 4))


def show(name, table, python):
    left, right = "()" if python else "{}"
    if isinstance(table[0], list):
        body = ",\n".join("    " + left + lines(row, 5)[5:] + right for row in table)
        shape = f"[{len(table)}][{len(table[0])}]"
    else:
        body, shape = lines(table, 4), f"[{len(table)}]"
    head = name if python else "static const double " + name + shape
    print(head + " = " + left + "\n" + body + "\n" + right + ("" if python else ";"))
    print()


HEAD = """special_tables - coefficients of the special functions, printed by
csrc/special_tables.py, which says what each table fits: do not edit.
Knows no formula.  Next: special_erf.c and special_gamma.c, and their twins."""


if __name__ == "__main__":
    python = "--python" in sys.argv
    print('"""' + HEAD + '"""' if python else "/* " + HEAD.replace("\n", "\n * ") + " */")
    print()
    for name, table in TABLES.items():
        show(name, table, python)
