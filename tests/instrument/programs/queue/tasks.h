/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TASKS_H
#define TASKS_H

/* An interval over which a function is to be integrated. */
struct task {
    double from, to, tolerance;
    int depth;
    struct task *next;
};

struct list {
    struct task *head, **tail;
    long length;
};

enum { MESSAGE = 4 }; /* numbers of a task in a message */

void list_init(struct list *l);
void list_append(struct list *l, struct task *one);
struct task *list_take(struct list *l);
struct task *new_task(double from, double to, double tolerance, int depth);
void pack_task(const struct task *one, double *numbers);
struct task *unpack_task(const double *numbers);

typedef double (*integrand)(double);
double estimate(integrand f, double from, double to, double *error);
#endif
