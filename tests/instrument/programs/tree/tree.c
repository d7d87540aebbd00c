/* SPDX-License-Identifier: BSD-3-Clause */
#include "tree.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int max_level = 4;

struct cell *new_cell(struct cell *parent, double x, double y, double size)
{
    struct cell *one = calloc(1, sizeof(struct cell));
    if (one == NULL) {
        fprintf(stderr, "mesh: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    one->parent = parent;
    one->x = x;
    one->y = y;
    one->size = size;
    one->level = parent ? parent->level + 1 : 0;
    return one;
}

void split(struct cell *one)
{
    int i;
    const double half = one->size / 2;
    for (i = 0; i < 4; i++) {
        struct cell *c = new_cell(one, one->x + (i % 2) * half, one->y + (i / 2) * half, half);
        c->value = one->value;
        one->child[i] = c;
    }
}

/* The children of a cell become part of it again. */
void join(struct cell *one)
{
    int i;
    one->value = 0;
    for (i = 0; i < 4; i++) {
        one->value += one->child[i]->value / 4;
        free(one->child[i]);
        one->child[i] = NULL;
    }
}

void free_tree(struct cell *one)
{
    int i;
    for (i = 0; i < 4; i++)
        if (one->child[i])
            free_tree(one->child[i]);
    free(one);
}

static void append_leaves(struct forest *f, struct cell *one)
{
    int i;
    if (one->child[0]) {
        for (i = 0; i < 4; i++)
            append_leaves(f, one->child[i]);
        one->next_leaf = NULL;
        return;
    }
    one->next_leaf = NULL;
    if (f->last_leaf)
        f->last_leaf->next_leaf = one;
    else
        f->first_leaf = one;
    f->last_leaf = one;
    f->nleaves++;
}

void link_leaves(struct forest *f)
{
    int i;
    f->first_leaf = f->last_leaf = NULL;
    f->nleaves = 0;
    for (i = 0; i < f->nroots; i++)
        append_leaves(f, f->root[i]);
}

struct cell *find_leaf(struct forest *f, double x, double y)
{
    int i;
    for (i = 0; i < f->nroots; i++) {
        struct cell *one = f->root[i];
        if (x < one->x || x >= one->x + one->size || y < one->y || y >= one->y + one->size)
            continue;
        while (one->child[0]) {
            const double half = one->size / 2;
            const int right = x >= one->x + half, up = y >= one->y + half;
            one = one->child[2 * up + right];
        }
        return one;
    }
    return NULL;
}

int depth_of(const struct cell *one)
{
    int i, deepest = one->level;
    if (!one->child[0])
        return deepest;
    for (i = 0; i < 4; i++) {
        const int d = depth_of(one->child[i]);
        if (d > deepest)
            deepest = d;
    }
    return deepest;
}
