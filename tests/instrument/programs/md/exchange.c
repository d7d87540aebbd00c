/* SPDX-License-Identifier: BSD-3-Clause */
/* Atoms that go to, or are near, the neighbouring slabs. */
#include "md.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double *outgoing[2];
static int outgoing_room[2], outgoing_count[2];

static void reserve_outgoing(int side, int numbers)
{
    if (numbers <= outgoing_room[side])
        return;
    outgoing_room[side] = numbers * 2 + 64;
    outgoing[side] = realloc(outgoing[side], (size_t)outgoing_room[side] * sizeof(double));
    if (!outgoing[side])
        die("no memory to send from");
}

void add_atom(struct atoms *a, const struct atom *one)
{
    if (a->nown == a->room) {
        a->room = a->room * 3 / 2 + 16;
        a->own = realloc(a->own, (size_t)a->room * sizeof *a->own);
        if (!a->own)
            die("no memory for atoms");
    }
    a->own[a->nown++] = *one;
}

static void put(int side, const double *numbers, int count)
{
    reserve_outgoing(side, outgoing_count[side] + count);
    memcpy(outgoing[side] + outgoing_count[side], numbers, (size_t)count * sizeof(double));
    outgoing_count[side] += count;
}

/* What the other side has for us; the caller frees it. */
static double *swap(int side, int *count)
{
    const int to = side ? box.right : box.left, from = side ? box.left : box.right;
    double *got;
    MPI_Request request[2];
    MPI_Sendrecv(&outgoing_count[side], 1, MPI_INT, to, 10 + side, count, 1, MPI_INT, from,
                 10 + side, box.line, MPI_STATUS_IGNORE);
    got = malloc((size_t)(*count + 1) * sizeof(double));
    if (!got)
        die("no memory to receive into");
    MPI_Irecv(got, *count, MPI_DOUBLE, from, 20 + side, box.line, &request[0]);
    MPI_Isend(outgoing[side], outgoing_count[side], MPI_DOUBLE, to, 20 + side, box.line,
              &request[1]);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    return got;
}

static double wrapped(double d, double length)
{
    return d - length * floor(d / length);
}

static int by_id(const void *a, const void *b)
{
    return ((const struct atom *)a)->id - ((const struct atom *)b)->id;
}

void migrate(struct atoms *a)
{
    int i, side, kept = 0, count;
    outgoing_count[0] = outgoing_count[1] = 0;
    for (i = 0; i < a->nown; i++) {
        struct atom *one = &a->own[i];
        double packed[8];
        double away;
        int d;
        for (d = 0; d < 3; d++)
            one->x[d] = wrapped(one->x[d], box.length[d]);
        if (one->x[0] >= box.low && one->x[0] < box.high) {
            a->own[kept++] = *one;
            continue;
        }
        away = one->x[0] - (box.low + box.high) / 2;
        away -= box.length[0] * nearbyint(away / box.length[0]);
        for (d = 0; d < 3; d++) {
            packed[d] = one->x[d];
            packed[3 + d] = one->v[d];
        }
        packed[6] = one->id;
        packed[7] = one->type;
        put(away > 0, packed, 8);
    }
    a->nown = kept;
    for (side = 0; side < 2; side++) {
        double *got = swap(side, &count);
        for (i = 0; i + 8 <= count; i += 8) {
            struct atom one;
            memset(&one, 0, sizeof one);
            memcpy(one.x, got + i, 3 * sizeof(double));
            memcpy(one.v, got + i + 3, 3 * sizeof(double));
            one.id = (int)got[i + 6];
            one.type = (int)got[i + 7];
            add_atom(a, &one);
        }
        free(got);
    }
    /* The order of sums does not depend on when an atom came. */
    qsort(a->own, (size_t)a->nown, sizeof *a->own, by_id);
}

void exchange_ghosts(struct atoms *a)
{
    int i, side, count;
    outgoing_count[0] = outgoing_count[1] = 0;
    for (i = 0; i < a->nown; i++) {
        const struct atom *one = &a->own[i];
        double packed[4];
        memcpy(packed, one->x, 3 * sizeof(double));
        packed[3] = one->type;
        if (one->x[0] < box.low + box.cutoff)
            put(0, packed, 4);
        if (one->x[0] >= box.high - box.cutoff)
            put(1, packed, 4);
    }
    a->nghosts = 0;
    for (side = 0; side < 2; side++) {
        double *got = swap(side, &count);
        if (a->nghosts * 4 + count > a->ghost_room) {
            a->ghost_room = (a->nghosts * 4 + count) * 2 + 16;
            a->ghosts = realloc(a->ghosts, (size_t)a->ghost_room * sizeof(double));
            if (!a->ghosts)
                die("no memory for ghosts");
        }
        memcpy(a->ghosts + a->nghosts * 4, got, (size_t)count * sizeof(double));
        a->nghosts += count / 4;
        free(got);
    }
}
