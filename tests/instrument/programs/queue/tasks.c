/* SPDX-License-Identifier: BSD-3-Clause */
#include "tasks.h"
#include <math.h>
#include <mpi.h>
#include <stdlib.h>

void list_init(struct list *l)
{
    l->head = NULL;
    l->tail = &l->head;
    l->length = 0;
}

void list_append(struct list *l, struct task *one)
{
    one->next = NULL;
    *l->tail = one;
    l->tail = &one->next;
    l->length++;
}

struct task *list_take(struct list *l)
{
    struct task *one = l->head;
    if (!one)
        return NULL;
    l->head = one->next;
    if (!l->head)
        l->tail = &l->head;
    l->length--;
    one->next = NULL;
    return one;
}

struct task *new_task(double from, double to, double tolerance, int depth)
{
    struct task *one = malloc(sizeof *one);
    if (!one)
        MPI_Abort(MPI_COMM_WORLD, 1);
    one->from = from;
    one->to = to;
    one->tolerance = tolerance;
    one->depth = depth;
    one->next = NULL;
    return one;
}

void pack_task(const struct task *one, double *numbers)
{
    numbers[0] = one->from;
    numbers[1] = one->to;
    numbers[2] = one->tolerance;
    numbers[3] = one->depth;
}

struct task *unpack_task(const double *numbers)
{
    return new_task(numbers[0], numbers[1], numbers[2], (int)numbers[3]);
}

static double simpson(integrand f, double from, double to, int n)
{
    const double h = (to - from) / n;
    double sum = f(from) + f(to);
    int i;
    for (i = 1; i < n; i++)
        sum += (i % 2 ? 4 : 2) * f(from + i * h);
    return sum * h / 3;
}

double estimate(integrand f, double from, double to, double *error)
{
    const double coarse = simpson(f, from, to, 8), fine = simpson(f, from, to, 16);
    *error = fabs(fine - coarse) / 15;
    return fine;
}
