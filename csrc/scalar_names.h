/* scalar_names.h: what the names in the table's formulas mean in C. Include it after scalar.h, just before ops.def,
 * and scalar_names_end.h just after: `gamma`, `nan`, ... mean other things elsewhere. No include guard, on purpose. */
#define select(condition, p, q) ((condition) ? (p) : (q))
#define nan NAN
#define zmul pg_zmul
#define sign pg_sign
#define power pg_power_inline
#define pow_less_one pg_pow_less_one
#define sigmoid pg_sigmoid
#define maximum pg_maximum
#define floordiv pg_floordiv
#define mod pg_mod
#define ieee_remainder pg_ieee_remainder
#define ldexp pg_ldexp
#define cbrt pg_cbrt
#define gaussian pg_gaussian
#define norm_pdf pg_norm_pdf
#define ndtr pg_ndtr
#define erfcx pg_erfcx
#define ierfcx pg_ierfcx
#define gamma pg_gamma
#define lgamma pg_lgamma
#define digamma pg_digamma
#define polygamma pg_polygamma
#define sinc pg_sinc
#define sinc_derivative pg_sinc_derivative
#define ALIAS(spelling, name)
#define DEFAULT(name, operand, keyword, value)
