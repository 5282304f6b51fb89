/* path.c over many paths, each with its own noise: see lanes.h. work: 4 * steps * WIDTH numbers. */
#include "lanes.h"

void path_lanes(size_t steps, size_t count, const double *noise, const double *x, double *values, double *gradients,
                double *work)
{
    const double rate = x[1], speed = x[3], level = x[4], vol_of_vol = x[5], strike = x[6];
    const double dt = 1.0 / (double)steps, drift = rate * dt, pull = speed * dt, discount = exp(-rate);
    lanes *spots = (lanes *)work, *log_vols = spots + steps, *growths = log_vols + steps, *shocks = growths + steps;
    for (size_t first = 0; first < count; first += WIDTH) {
        const lanes *dws = (const lanes *)(noise + 2 * steps * first), *dvs = dws + 1; /* every other row */
        lanes spot, log_vol;
        EACH spot[j] = x[0];
        EACH log_vol[j] = x[2];
        for (size_t i = 0; i < steps; i++)
            EACH {
                spots[i][j] = spot[j];
                log_vols[i][j] = log_vol[j];
                shocks[i][j] = exp(log_vol[j]) * dws[2 * i][j];
                growths[i][j] = 1.0 + drift + shocks[i][j];
                spot[j] *= growths[i][j];
                log_vol[j] += pull * (level - log_vol[j]) + vol_of_vol * dvs[2 * i][j];
            }

        lanes d_spot, d_log_vol = {0}, d_drift = {0}, d_pull = {0}, d_level = {0}, d_vol_of_vol = {0}, payoff, d_strike;
        EACH {
            d_spot[j] = spot[j] > strike ? discount : 0.0;
            payoff[j] = d_spot[j] * (spot[j] - strike);
            d_strike[j] = -d_spot[j];
        }
        for (size_t i = steps; i-- > 0;)
            EACH {
                const double through_spot = d_spot[j] * spots[i][j];
                d_drift[j] += through_spot;
                d_pull[j] += d_log_vol[j] * (level - log_vols[i][j]);
                d_level[j] += d_log_vol[j];
                d_vol_of_vol[j] += d_log_vol[j] * dvs[2 * i][j];
                d_log_vol[j] = d_log_vol[j] * (1.0 - pull) + through_spot * shocks[i][j];
                d_spot[j] *= growths[i][j];
            }
        for (int j = 0; j < filled(first, count); j++) {
            double *gradient = gradients + 7 * (first + (size_t)j);
            values[first + (size_t)j] = payoff[j];
            gradient[0] = d_spot[j];
            gradient[1] = d_drift[j] * dt - payoff[j];
            gradient[2] = d_log_vol[j];
            gradient[3] = d_pull[j] * dt;
            gradient[4] = d_level[j] * pull;
            gradient[5] = d_vol_of_vol[j];
            gradient[6] = d_strike[j];
        }
    }
}
