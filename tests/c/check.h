/* check.h: what the tests in C count and print with. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static int failures;

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);         \
            failures++;                                                    \
        }                                                                  \
    } while (0)

#endif
