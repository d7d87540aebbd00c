/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A counter of the netmod, read as a performance variable: without entering MPI.
 *
 *     struct counter landed = counter_open("landed");
 *     ... counter_read(&landed) ...
 */
#ifndef ZC_COUNTER_H
#define ZC_COUNTER_H

#include "check.h"

struct counter {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
};

/** counter_open_class - the counter @name, whose class is @var_class, after check_init() */
static inline struct counter counter_open_class(const char *name, int var_class)
{
    struct counter c;
    char wanted[128];
    int level, index, count;
    snprintf(wanted, sizeof wanted, "ch4_zc_%s", name);
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level) == MPI_SUCCESS, "MPI_T");
    CHECK(MPI_T_pvar_session_create(&c.session) == MPI_SUCCESS, "no session of MPI_T");
    CHECK(MPI_T_pvar_get_index(wanted, var_class, &index) == MPI_SUCCESS,
          "no performance variable %s", wanted);
    CHECK(MPI_T_pvar_handle_alloc(c.session, index, NULL, &c.handle, &count) == MPI_SUCCESS,
          "no handle of %s", wanted);
    return c;
}

static inline struct counter counter_open(const char *name)
{
    return counter_open_class(name, MPI_T_PVAR_CLASS_COUNTER);
}

static inline unsigned long long counter_read(const struct counter *c)
{
    unsigned long long value = 0;
    CHECK(MPI_T_pvar_read(c->session, c->handle, &value) == MPI_SUCCESS, "cannot read a counter");
    return value;
}

/** counter_await - has @c reached @value within @seconds, outside MPI? */
static inline int counter_await(const struct counter *c, unsigned long long value, int seconds)
{
    for (int ms = 0; ms < seconds * 1000 && counter_read(c) < value; ms++)
        check_sleep_ms(1);
    return counter_read(c) >= value;
}

static inline void counter_close(struct counter *c)
{
    MPI_T_pvar_session_free(&c->session);
    MPI_T_finalize();
}

#endif
