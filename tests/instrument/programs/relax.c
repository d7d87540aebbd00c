/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Relaxation on a ring, in the manner of older programs: a message is a header with its values
 * behind it in one block, coefficients are in a struct whose last array goes on behind it, the
 * exchange uses persistent requests that a function makes, lines are written by a pointer to a
 * function with any number of arguments, and the solver is handed what it works on.
 *
 *     mpiexec -n 4 relax [TITLE [STEPS]]
 */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int error_ = (call);                                                                       \
        if (error_ != MPI_SUCCESS)                                                                 \
            MPI_Abort(MPI_COMM_WORLD, error_);                                                     \
    } while (0)

enum { CELLS = 37, EDGE = 4 };

struct message {
    int length;
    double at; /* the time of what follows */
};

struct weights {
    int length;
    double of[1];
};

struct output {
    void (*line)(const char *format, ...);
};

static double cells[CELLS], scratch[CELLS];
static int lines;

static void print_line(const char *format, ...)
{
    char text[160];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    printf("%3d %s\n", ++lines, text);
}

static double *values_of(struct message *m)
{
    return (double *)(m + 1);
}

static struct message *new_message(int length)
{
    struct message *m = malloc(sizeof *m + (size_t)length * sizeof(double));
    if (!m)
        MPI_Abort(MPI_COMM_WORLD, 1);
    m->length = length;
    m->at = 0;
    for (int i = 0; i < length; i++)
        values_of(m)[i] = 0;
    return m;
}

static struct weights *new_weights(int length)
{
    struct weights *w = malloc(sizeof *w + (size_t)(length - 1) * sizeof(double));
    if (!w)
        MPI_Abort(MPI_COMM_WORLD, 1);
    w->length = length;
    for (int i = 0; i < length; i++)
        w->of[i] = 1.0 / (length + i % 3);
    return w;
}

static void prepare(struct message *out, struct message *in, int to, int from, MPI_Request *both)
{
    const int bytes = (int)sizeof *out + out->length * (int)sizeof(double);
    MPI_Send_init(out, bytes, MPI_BYTE, to, 4, MPI_COMM_WORLD, &both[0]);
    MPI_Recv_init(in, bytes, MPI_BYTE, from, 4, MPI_COMM_WORLD, &both[1]);
}

static int relax(double *u, struct weights *w, struct message *out, struct message *in,
                 MPI_Request *both, const struct output *to, int steps)
{
    double *v = memcpy(scratch, u, sizeof scratch), largest = 0, all = 0;
    for (int step = 0; step < steps; step++) {
        out->at += 0.25;
        for (int i = 0; i < out->length; i++)
            values_of(out)[i] = u[CELLS - EDGE + i] + out->at * 1e-3;
        CHECK(MPI_Startall(2, both));
        CHECK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        for (int i = 0; i < in->length; i++)
            v[i] = 0.5 * v[i] + 0.4 * values_of(in)[i] + in->at * 1e-4;
        largest = 0;
        for (int i = EDGE; i < CELLS; i++) {
            v[i] = 0.25 * v[i] + 0.5 * u[i - 1] + w->of[i % w->length] * u[i];
            w->of[i % w->length] *= 0.9999;
            if (v[i] > largest)
                largest = v[i];
        }
        for (int i = 0; i < CELLS; i++)
            u[i] = 0.75 * u[i] + 0.2 * v[i];
        CHECK(MPI_Allreduce(&largest, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
        if (to->line && step % 100 == 99)
            to->line("step %d, largest %.17g", step, all);
    }
    return 0;
}

static unsigned long long digest(const void *at, size_t bytes)
{
    unsigned long long sum = 1469598103934665603u;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ ((const unsigned char *)at)[i]) * 1099511628211u;
    return sum;
}

int main(int argc, char **argv)
{
    const char *title = "relaxation";
    int rank, size, steps = 300, error;
    MPI_Request both[2];

    CHECK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1)
        title = argv[1];
    if (argc > 2)
        steps = atoi(argv[2]);
    for (int i = 0; i < CELLS; i++)
        cells[i] = 1.0 + rank + i * 0.125;
    struct weights *w = new_weights(11);
    struct message *out = new_message(EDGE), *in = new_message(EDGE);
    struct output to = {rank == 0 ? print_line : NULL};
    prepare(out, in, (rank + 1) % size, (rank + size - 1) % size, both);

    if ((error = relax(cells, w, out, in, both, &to, steps)) != 0)
        MPI_Abort(MPI_COMM_WORLD, error);

    unsigned long long mine = digest(cells, sizeof cells) ^ digest(w->of, 11 * sizeof(double)) ^
                              digest(scratch, sizeof scratch) ^ digest(&out->at, sizeof out->at),
                       all;
    MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d steps, %d lines, checksum %016llx\n", title, steps, lines, all);
    for (int i = 0; i < 2; i++)
        MPI_Request_free(&both[i]);
    free(w);
    free(out);
    free(in);
    CHECK(MPI_Finalize());
    return 0;
}
