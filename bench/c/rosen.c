/* Rosenbrock's function of n variables and its gradient, by hand: what a term gives to its two neighbours. */
#include <stddef.h>
#include <string.h>

double rosen(size_t n, const double *constants, const double *x, double *gradient, double *work)
{
    (void)constants;
    (void)work;
    double total = 0.0;
    memset(gradient, 0, n * sizeof *gradient);
    for (size_t i = 0; i + 1 < n; i++) {
        double t = x[i + 1] - x[i] * x[i];
        double s = 1.0 - x[i];
        total += 100.0 * t * t + s * s;
        gradient[i] -= 400.0 * t * x[i] + 2.0 * s;
        gradient[i + 1] = 200.0 * t;
    }
    return total;
}
