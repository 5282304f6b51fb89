/* emit_rows.c: rows and numbers as C source. See emit_rows.h; Note [Bits] says what the text has to mind. */
#include "emit_rows.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Note [Bits]. The emitted numbers are pygrad's to the last bit, whatever the compiler sees through. It may evaluate or
 * replace a call of libm whose operands it knows (pow(x, -1) is 1 / x to gcc, log(3) a number), and what comes out is
 * rounded otherwise than libm's own. So a row that calls what IEEE 754 does not define to the last bit takes its operands
 * through volatile. Additions, products and their like come out the same whoever does them. */

typedef struct {
    const char *name;
    int rounded;              /* calls a function of libm whose last bit is its own */
    const short *needs;       /* earlier items, and -1 */
    const char *const *lines; /* and NULL */
} emit_item;

#include "emit_texts.h"

enum { ITEMS = sizeof items / sizeof items[0] };

/* The rows' formulas, after the preprocessor has put in what their names mean: as scalar.c compiles them. <math.h> may
 * have macros of its own and is not included. */
#define TEXT(...) TEXT_OF_EXPANDED(__VA_ARGS__)
#define TEXT_OF_EXPANDED(...) #__VA_ARGS__
#define UNARY(name, value, ...) [PG_OP_##name] = TEXT(value),
#define BINARY(name, value, ...) [PG_OP_##name] = TEXT(value),
#define TERNARY(name, value, ...) [PG_OP_##name] = TEXT(value),
static const char *const formulas[PG_OP_TABLE_END] = {
#include "scalar_names.h"
#include "ops.def"
#include "scalar_names_end.h"
};

/* ---- text ---- */

void pg_put(pg_text *e, const char *format, ...) {
    while (!e->failed) {
        va_list arguments;
        va_start(arguments, format);
        int length = vsnprintf(e->text + e->length, e->room - e->length, format, arguments);
        va_end(arguments);
        if (length >= 0 && (size_t)length < e->room - e->length) {
            e->length += (size_t)length;
            return;
        }
        size_t room = 2 * e->room + (length > 0 ? (size_t)length : 0);
        char *text = length < 0 || room < e->room ? NULL : realloc(e->text, room);
        e->failed = !text;
        if (text) {
            e->text = text;
            e->room = room;
        }
    }
}

/* By hand: printf asks the locale for its decimal point. */
void pg_put_number(pg_text *e, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    const char *sign = bits >> 63 ? "-" : "";
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7ff), digits = 13;
    double magnitude = bits >> 63 ? -number : number;
    if (exponent == 0x7ff) {
        pg_put(e, "%s%s", sign, fraction ? "NAN" : "HUGE_VAL");
    } else if (magnitude < 1e9 && magnitude == (double)(long)magnitude) {
        pg_put(e, "%s%ld.0", sign, (long)magnitude);
    } else {
        while (digits > 1 && !(fraction & 15)) fraction >>= 4, digits--;
        pg_put(e, "%s0x%d.%0*llxp%d", sign, exponent > 0, digits, (unsigned long long)fraction,
            exponent > 0 ? exponent - 1023 : -1022);
    }
}

void pg_put_name(pg_text *e, const char *name) {
    for (const unsigned char *at = (const unsigned char *)name; *at; at++) {
        int turns = at[0] == 0xe2 && (at[1] == 0x80 || at[1] == 0x81) && at[2]; /* right to left, ... in UTF-8 */
        int ends = (at[0] == '*' && at[1] == '/') || (at[0] == '/' && at[1] == '*');
        pg_put(e, "%c", *at < ' ' || *at == 127 || *at == '\\' || *at == '?' || turns || ends ? '_' : *at);
        if (turns) at += 2;
    }
}

/* ---- names ---- */

const char *pg_emit_name_wrong(const char *name) {
    static const char *const taken[] = {
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
        "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof",
        "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "main", "size_t",
        "NULL", "NAN", "INFINITY", "HUGE_VAL"};
    if (!isalpha((unsigned char)name[0])) return "does not begin with a letter";
    for (const char *at = name; *at; at++)
        if (!(isalnum((unsigned char)*at) || *at == '_') || (unsigned char)*at > 127)
            return "has a character that is no letter, digit or underscore of ASCII";
    if (strncmp(name, "pg_", 3) == 0) return "begins with pg_, as what is emitted with it";
    if (strlen(name) > 200) return "is longer than 200 characters";
    if (pg_op_find(name) >= 0) return "is the name of an op, and maybe of a function of C";
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (strcmp(name, taken[i]) == 0) return "is a word of C";
    for (size_t i = 0; i < ITEMS; i++)
        if (strcmp(name, items[i].name) == 0) return "is the name of a function or constant that is emitted with it";
    return NULL;
}

/* ---- rows, and what they call ---- */

/* Marks the items that a formula calls. Whether a call in it is rounded as libm pleases. */
static int mark_called(const char *formula, char *used) {
    int rounded = 0;
    for (const char *at = formula; *at;) {
        size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
        if (length) {
            size_t i = 0;
            while (i < ITEMS && (strncmp(items[i].name, at, length) != 0 || items[i].name[length])) i++;
            if (i < ITEMS) {
                used[i] = 1;
                rounded |= items[i].rounded;
            } else {
                rounded |= at[length] == '(';
            }
        }
        at += length ? length : 1;
    }
    return rounded;
}

static void put_row(pg_text *e, int op, int rounded) {
    static const char *const operands[] = {"double a", "double a, double b", "double a, double b, double c"};
    static const char *const given[] = {"double p", "double p, double q", "double p, double q, double r"};
    static const char *const taken[] = {"a_ = p", "a_ = p, b_ = q", "a_ = p, b_ = q, c_ = r"};
    static const char *const read[] = {"a = a_", "a = a_, b = b_", "a = a_, b = b_, c = c_"};
    int last = pg_ops[op].arity - 1;
    if (!rounded) {
        pg_put(e, "static double pg_row_%s(%s) { return %s; }\n", pg_ops[op].name, operands[last], formulas[op]);
        return;
    }
    pg_put(e, "static double pg_row_%s(%s) {\n", pg_ops[op].name, given[last]);
    pg_put(e, "    const volatile double %s;\n    const double %s;\n", taken[last], read[last]);
    pg_put(e, "    return %s;\n}\n", formulas[op]);
}

void pg_put_rows(pg_text *e, const char *used_ops) {
    char used[ITEMS] = {0}, rounded[PG_OP_TABLE_END] = {0};
    int volatiles = 0;
    for (int op = 1; op < PG_OP_TABLE_END; op++) {
        if (used_ops[op]) rounded[op] = (char)mark_called(formulas[op], used);
        volatiles |= rounded[op];
    }
    for (size_t i = ITEMS; i-- > 0;)
        for (const short *need = items[i].needs; used[i] && *need >= 0; need++) used[*need] = 1;
    for (size_t i = 0; i < ITEMS; i++) {
        for (const char *const *line = items[i].lines; used[i] && *line; line++) pg_put(e, "%s", *line);
        if (used[i] && *items[i].lines) pg_put(e, "\n");
    }
    if (volatiles)
        pg_put(e, "/* Operands go through volatile where a compiler that knew them might round otherwise than libm. */\n");
    for (int op = 1; op < PG_OP_TABLE_END; op++)
        if (used_ops[op]) put_row(e, op, rounded[op]);
    pg_put(e, "\n");
}
