"""The special functions in plain Python: the readable twin of csrc/special.h.

Owns the list of them, and what they promise.  Every function runs the same operations in
the same order as pg_<name> in C, so that the two agree bit for bit; change both or neither.
All are total: poles, overflow and domain errors give inf or nan, never an exception.
The families know no arrays, no derivatives and not the extension module.
Next: reference_special_*.py, a file a family, named as in C.
"""

from pygrad.reference_special_arithmetic import cbrt, floordiv, ieee_remainder, ldexp, mod, pow_less_one, power
from pygrad.reference_special_erf import erfcx, gaussian, ierfcx, ndtr, norm_pdf
from pygrad.reference_special_gamma import digamma, gamma, lgamma, polygamma
from pygrad.reference_special_sinc import sinc, sinc_derivative

__all__ = [
    "cbrt", "digamma", "erfcx", "floordiv", "gamma", "gaussian", "ieee_remainder", "ierfcx", "ldexp", "lgamma", "mod",
    "ndtr", "norm_pdf", "polygamma", "pow_less_one", "power", "sinc", "sinc_derivative",
]  # fmt: skip
