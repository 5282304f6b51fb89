/* An Asian call over many paths (rolled.asian), and its adjoint by hand: see lanes.h.
 *
 * All that the way back needs is the spot of each step: what comes after a step goes through it as a sum. By the
 * volatility the exponent's derivative is dw - vol * dt. work: steps * WIDTH numbers. */
#include "lanes.h"

void asian_lanes(size_t steps, size_t count, const double *noise, const double *x, double *values, double *gradients,
                 double *work)
{
    const double rate = x[1], vol = x[2], strike = 100.0;
    const double dt = 1.0 / (double)steps, drift = (rate - 0.5 * vol * vol) * dt, discount = exp(-rate);
    lanes *spots = (lanes *)work;
    for (size_t first = 0; first < count; first += WIDTH) {
        const lanes *dws = (const lanes *)(noise + steps * first);
        lanes spot, total = {0};
        EACH spot[j] = x[0];
        for (size_t i = 0; i < steps; i++)
            EACH {
                spot[j] *= exp(drift + vol * dws[i][j]);
                spots[i][j] = spot[j];
                total[j] += spot[j];
            }

        lanes seed, payoff, later = {0}, d_rate = {0}, d_vol = {0};
        EACH {
            const double over = total[j] / (double)steps - strike;
            seed[j] = over > 0.0 ? discount / (double)steps : 0.0;
            payoff[j] = over > 0.0 ? discount * over : 0.0;
        }
        for (size_t i = steps; i-- > 0;)
            EACH {
                later[j] += spots[i][j];
                d_rate[j] += later[j];
                d_vol[j] += later[j] * (dws[i][j] - vol * dt);
            }
        for (int j = 0; j < filled(first, count); j++) {
            double *gradient = gradients + 3 * (first + (size_t)j);
            values[first + (size_t)j] = payoff[j];
            gradient[0] = seed[j] * total[j] / x[0];
            gradient[1] = seed[j] * d_rate[j] * dt - payoff[j];
            gradient[2] = seed[j] * d_vol[j];
        }
    }
}
