/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adaptive integration by a queue of intervals, which process 0 keeps and hands out in rounds. A
 * worker returns what it has integrated, or two halves of what it could not.
 *
 *     mpiexec -n 4 queue [DIGITS]
 */
#include "tasks.h"
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH 40

enum tags { TASK = 1, DONE, HALVES };

static int rank, size;
static struct list todo;
static long finished, rounds_idle;
static double *results; /* of all finished intervals, sorted at the end of each round */
static long results_room;

static double oscillating(double x)
{
    return sin(50 * x) * exp(-x) + 1 / (0.0005 + (x - 0.3) * (x - 0.3));
}

static double rough(double x)
{
    return sqrt(fabs(x - 0.7)) + log(1e-9 + x * x) * cos(20 * x * x);
}

static const struct {
    const char *name;
    integrand f;
    double from, to;
} problems[] = {{"oscillating", oscillating, 0, 2}, {"rough", rough, -1, 1}};

static int smaller(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void keep_result(double value)
{
    if (finished == results_room) {
        results_room = results_room ? 2 * results_room : 16;
        results = realloc(results, (size_t)results_room * sizeof *results);
        if (!results)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    results[finished++] = value;
}

/* One interval: its integral, or two halves are given back. */
static int work(const struct task *one, integrand f, double *value)
{
    double error;
    *value = estimate(f, one->from, one->to, &error);
    return error <= one->tolerance || one->depth >= MOST_DEPTH;
}

static void halve(const struct task *one)
{
    const double middle = (one->from + one->to) / 2;
    list_append(&todo, new_task(one->from, middle, one->tolerance / 2, one->depth + 1));
    list_append(&todo, new_task(middle, one->to, one->tolerance / 2, one->depth + 1));
}

static void hand_out(struct task **given)
{
    double numbers[MESSAGE];
    int to;
    for (to = 1; to < size; to++) {
        given[to] = list_take(&todo);
        if (given[to])
            pack_task(given[to], numbers);
        else
            numbers[3] = -1, numbers[0] = numbers[1] = numbers[2] = 0;
        MPI_Send(numbers, MESSAGE, MPI_DOUBLE, to, TASK, MPI_COMM_WORLD);
    }
}

static void collect(struct task **given)
{
    int from;
    for (from = 1; from < size; from++) {
        double answer[2];
        MPI_Recv(answer, 2, MPI_DOUBLE, from, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!given[from])
            rounds_idle++;
        else if (answer[0] != 0)
            keep_result(answer[1]);
        else
            halve(given[from]);
        free(given[from]);
        given[from] = NULL;
    }
}

static void serve(integrand f)
{
    double numbers[MESSAGE], answer[2] = {1, 0};
    MPI_Recv(numbers, MESSAGE, MPI_DOUBLE, 0, TASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (numbers[3] >= 0) {
        struct task *one = unpack_task(numbers);
        answer[0] = work(one, f, &answer[1]);
        free(one);
    }
    MPI_Send(answer, 2, MPI_DOUBLE, 0, DONE, MPI_COMM_WORLD);
}

static unsigned long long digest(double value, unsigned long long sum)
{
    unsigned long long bits;
    memcpy(&bits, &value, sizeof bits);
    return (sum ^ bits) * 0x9e3779b97f4a7c15ULL;
}

int main(int argc, char **argv)
{
    struct task **given = NULL;
    integrand f = NULL;
    double tolerance = 1e-9, total = 0;
    long left, rounds = 0, i;
    int which = 0, digits = 9;
    unsigned long long sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1)
        digits = atoi(argv[1]);
    if (argc > 2)
        which = atoi(argv[2]) != 0;
    tolerance = pow(10.0, -digits);
    f = problems[which].f;
    list_init(&todo);
    if (rank == 0) {
        given = calloc((size_t)size, sizeof *given);
        if (!given)
            MPI_Abort(MPI_COMM_WORLD, 1);
        for (i = 0; i < 4; i++) {
            const double width = (problems[which].to - problems[which].from) / 4;
            list_append(&todo, new_task(problems[which].from + i * width,
                                        problems[which].from + (i + 1) * width, tolerance / 4, 0));
        }
    }
    left = 1;
    while (left > 0) {
        if (rank == 0) {
            hand_out(given);
            if (size == 1) {
                struct task *one = list_take(&todo);
                double value;
                if (work(one, f, &value))
                    keep_result(value);
                else
                    halve(one);
                free(one);
            }
            collect(given);
            left = todo.length;
        } else {
            serve(f);
        }
        MPI_Bcast(&left, 1, MPI_LONG, 0, MPI_COMM_WORLD);
        rounds++;
    }

    if (rank == 0) {
        qsort(results, (size_t)finished, sizeof *results, smaller);
        for (i = 0; i < finished; i++) {
            total += results[i];
            sum = digest(results[i], sum);
        }
        printf(
            "queue: %s: %ld intervals in %ld rounds, %ld idle, integral %.17g, checksum %016llx\n",
            problems[which].name, finished, rounds, rounds_idle, total, digest(total, sum));
        free(given);
        free(results);
    }
    MPI_Finalize();
    return 0;
}
