/* SPDX-License-Identifier: BSD-3-Clause */
/* Run-time configuration of the shallow-water solver.
 * Settings are given as key=value, e.g. "mpiexec -n 4 ./shallow domain.nx=64 run.t_end=90". */
#include "mesh.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum option_kind { OPT_INT, OPT_REAL, OPT_TEXT };

#define OPTION(key, kind, field)                                                                   \
    {                                                                                              \
        key, kind, offsetof(struct config, field)                                                  \
    }

static const struct option {
    const char *key;
    enum option_kind kind;
    size_t offset;
} options[] = {
    OPTION("domain.nx", OPT_INT, domain.nx),
    OPTION("domain.ny", OPT_INT, domain.ny),
    OPTION("boundary.west", OPT_TEXT, boundary.kind[SIDE_WEST]),
    OPTION("boundary.east", OPT_TEXT, boundary.kind[SIDE_EAST]),
    OPTION("numerics.cfl", OPT_REAL, numerics.cfl),
    OPTION("run.t_end", OPT_REAL, run.t_end),
    OPTION("run.outputs", OPT_INT, run.n_outputs),
    OPTION("run.log", OPT_TEXT, run.log_level),
};

static const struct config defaults = {
    .domain = {.length = 4000.0,
               .width = 2000.0,
               .depth = 10.0,
               .jitter = 0.22,
               .nx = 96,
               .ny = 48,
               .seed = 20011},
    .island = {.x = 2300.0, .y = 940.0, .radius = 260.0},
    .boundary = {.kind = {"wave", "farfield", "wall", "wall", "wall"},
                 .wave = {.amplitude = 0.6, .period = 90.0}},
    .numerics = {.cfl = 0.8, .dt_growth = 1.1, .limiter_k = 0.1},
    .run = {.t_end = 150.0,
            .n_outputs = 6,
            .max_steps = 100000,
            .title = "shallow",
            .log_level = "warn"},
};

static void parse_argument(struct config *cfg, const char *arg)
{
    const struct option *opt = options, *last = options + sizeof options / sizeof options[0];
    size_t n = strcspn(arg, "=");
    const char *value = arg + n + 1;
    char *end = NULL;
    void *field;
    while (opt < last && (strlen(opt->key) != n || strncmp(opt->key, arg, n) != 0))
        opt++;
    SW_REQUIRE(opt < last && arg[n] == '=', "\"%s\" is not a setting with a value", arg);
    field = (char *)cfg + opt->offset;
    if (opt->kind == OPT_TEXT) {
        SW_REQUIRE(strlen(value) < NAME_LENGTH, "the value of %s is too long", opt->key);
        snprintf(field, NAME_LENGTH, "%s", value);
        return;
    }
    if (opt->kind == OPT_INT)
        *(int *)field = (int)strtol(value, &end, 10);
    else
        *(double *)field = strtod(value, &end);
    SW_REQUIRE(end != value && *end == '\0', "bad value \"%s\" for %s", value, opt->key);
}

void config_load(struct config *cfg, int argc, char **argv, MPI_Comm comm)
{
    int rank;
    SW_MPI(MPI_Comm_rank(comm, &rank));
    if (rank == 0) {
        *cfg = defaults;
        for (int i = 1; i < argc; i++)
            parse_argument(cfg, argv[i]);
        SW_REQUIRE(cfg->domain.nx >= 4 && cfg->domain.ny >= 4, "the grid is too coarse");
        SW_REQUIRE(cfg->run.t_end > 0.0 && cfg->run.n_outputs > 0, "nothing to compute");
    }
    SW_MPI(MPI_Bcast(cfg, (int)sizeof *cfg, MPI_BYTE, 0, comm));
}
