/* The call on one path under stochastic volatility (workloads.path), and its adjoint by hand.
 *
 * The way forward keeps spot, log-volatility and volatility before each step, the way back reads them. */
#include <math.h>
#include <stddef.h>

double path(size_t steps, const double *noise, const double *x, double *gradient, double *work)
{
    const double rate = x[1], speed = x[3], level = x[4], vol_of_vol = x[5], strike = x[6];
    const double dt = 1.0 / (double)steps, drift = rate * dt, pull = speed * dt;
    double *spots = work, *log_vols = work + steps, *vols = work + 2 * steps;
    double spot = x[0], log_vol = x[2];
    for (size_t i = 0; i < steps; i++) {
        const double vol = exp(log_vol);
        spots[i] = spot;
        log_vols[i] = log_vol;
        vols[i] = vol;
        spot += spot * (drift + vol * noise[2 * i]);
        log_vol += pull * (level - log_vol) + vol_of_vol * noise[2 * i + 1];
    }

    const double discount = exp(-rate), in_the_money = spot > strike ? 1.0 : 0.0;
    const double payoff = discount * in_the_money * (spot - strike);
    double d_spot = discount * in_the_money, d_log_vol = 0.0;
    double d_drift = 0.0, d_pull = 0.0, d_level = 0.0, d_vol_of_vol = 0.0;
    for (size_t i = steps; i-- > 0;) {
        const double dw = noise[2 * i], through_spot = d_spot * spots[i];
        d_drift += through_spot;
        d_pull += d_log_vol * (level - log_vols[i]);
        d_level += d_log_vol;
        d_vol_of_vol += d_log_vol * noise[2 * i + 1];
        d_log_vol = d_log_vol * (1.0 - pull) + through_spot * vols[i] * dw;
        d_spot *= 1.0 + drift + vols[i] * dw;
    }
    gradient[0] = d_spot;
    gradient[1] = d_drift * dt - payoff;
    gradient[2] = d_log_vol;
    gradient[3] = d_pull * dt;
    gradient[4] = d_level * pull;
    gradient[5] = d_vol_of_vol;
    gradient[6] = -discount * in_the_money;
    return payoff;
}
