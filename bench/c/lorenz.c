/* The Lorenz system by RK4 (workloads.lorenz), the last x, and its adjoint by hand.
 *
 * The way forward keeps the state before each step; the way back computes the four stages again. */
#include <stddef.h>

typedef struct { double x, y, z; } vec;
typedef struct { double sigma, rho, beta; } system_of;

static const double h = 0.01;

static inline vec slope(const system_of *p, vec s)
{
    return (vec){p->sigma * (s.y - s.x), s.x * (p->rho - s.z) - s.y, s.x * s.y - p->beta * s.z};
}

static inline vec moved(vec s, double by, vec d)
{
    return (vec){s.x + by * d.x, s.y + by * d.y, s.z + by * d.z};
}

/* Adds to `d` what the slope at `s` gives back of its adjoint `g`, and to `dp` what the parameters get. */
static inline void pull(const system_of *p, vec s, vec g, vec *d, system_of *dp)
{
    d->x += g.y * (p->rho - s.z) - g.x * p->sigma + g.z * s.y;
    d->y += g.x * p->sigma - g.y + g.z * s.x;
    d->z -= g.y * s.x + g.z * p->beta;
    dp->sigma += g.x * (s.y - s.x);
    dp->rho += g.y * s.x;
    dp->beta -= g.z * s.z;
}

double lorenz(size_t steps, const double *constants, const double *x, double *gradient, double *work)
{
    (void)constants;
    const system_of p = {x[3], x[4], x[5]};
    vec *states = (vec *)work, s = {x[0], x[1], x[2]};
    for (size_t i = 0; i < steps; i++) {
        states[i] = s;
        const vec a = slope(&p, s);
        const vec b = slope(&p, moved(s, h / 2, a));
        const vec c = slope(&p, moved(s, h / 2, b));
        const vec d = slope(&p, moved(s, h, c));
        s.x += h / 6 * (a.x + 2.0 * b.x + 2.0 * c.x + d.x);
        s.y += h / 6 * (a.y + 2.0 * b.y + 2.0 * c.y + d.y);
        s.z += h / 6 * (a.z + 2.0 * b.z + 2.0 * c.z + d.z);
    }

    vec g = {1.0, 0.0, 0.0};
    system_of dp = {0.0, 0.0, 0.0};
    for (size_t i = steps; i-- > 0;) {
        const vec at = states[i];
        const vec at_b = moved(at, h / 2, slope(&p, at));
        const vec at_c = moved(at, h / 2, slope(&p, at_b));
        const vec at_d = moved(at, h, slope(&p, at_c));
        const vec zero = {0.0, 0.0, 0.0};
        vec back = g, of_d = zero, of_c = zero, of_b = zero;
        pull(&p, at_d, (vec){h / 6 * g.x, h / 6 * g.y, h / 6 * g.z}, &of_d, &dp);
        pull(&p, at_c, moved((vec){h / 3 * g.x, h / 3 * g.y, h / 3 * g.z}, h, of_d), &of_c, &dp);
        pull(&p, at_b, moved((vec){h / 3 * g.x, h / 3 * g.y, h / 3 * g.z}, h / 2, of_c), &of_b, &dp);
        pull(&p, at, moved((vec){h / 6 * g.x, h / 6 * g.y, h / 6 * g.z}, h / 2, of_b), &back, &dp);
        g.x = back.x + of_b.x + of_c.x + of_d.x;
        g.y = back.y + of_b.y + of_c.y + of_d.y;
        g.z = back.z + of_b.z + of_c.z + of_d.z;
    }
    gradient[0] = g.x;
    gradient[1] = g.y;
    gradient[2] = g.z;
    gradient[3] = dp.sigma;
    gradient[4] = dp.rho;
    gradient[5] = dp.beta;
    return s.x;
}
