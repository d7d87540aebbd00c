/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Particles that repel each other in a periodic box, cut into slabs: one slab per rank.
 *
 *     mpiexec -n 4 ./particles [PARTICLES [STEPS]]
 *
 * In each step a rank gets copies of the particles near the borders of its slab from its two
 * neighbours, moves its own, and hands over those that have left the slab. The number of particles
 * of a rank changes with every step, and its array grows when it has to. They begin as a cloud on
 * the left that flies to the right, so that a rank can have none.
 *
 * Rank 0 reads the parameters and broadcasts them. At the end it prints a checksum, which is the
 * same for every run with as many ranks.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEFT = 0, RIGHT = 1 };

static const double box = 1.0, height = 1.0, reach = 0.02, stiffness = 40.0, dt = 5e-4;

struct particle {
    double x, y, vx, vy;
    long id;
};

struct array {
    struct particle *all;
    long count, capacity;
};

struct slab {
    MPI_Comm line; /* the ranks from left to right, periodic */
    MPI_Datatype type;
    int rank, size, neighbour[2];
    double begin, end;
    struct array own, ghosts, leaving[2];
};

static void *allocated(void *p)
{
    if (!p) {
        fprintf(stderr, "particles: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

static void reserve(struct array *a, long capacity)
{
    if (capacity <= a->capacity)
        return;
    a->capacity = capacity * 3 / 2 + 16;
    a->all = allocated(realloc(a->all, (size_t)a->capacity * sizeof *a->all));
}

static void append(struct array *a, const struct particle *p)
{
    reserve(a, a->count + 1);
    a->all[a->count++] = *p;
}

/* Sends @out to one side, and appends to @in what comes from the other. */
static void shift(const struct slab *s, int side, const struct array *out, struct array *in)
{
    long coming = 0;
    MPI_Sendrecv(&out->count, 1, MPI_LONG, s->neighbour[side], 1, &coming, 1, MPI_LONG,
                 s->neighbour[!side], 1, s->line, MPI_STATUS_IGNORE);
    reserve(in, in->count + coming);
    MPI_Sendrecv(out->all, (int)out->count, s->type, s->neighbour[side], 2, in->all + in->count,
                 (int)coming, s->type, s->neighbour[!side], 2, s->line, MPI_STATUS_IGNORE);
    in->count += coming;
}

static double shortest(double d, double length)
{
    return d - length * nearbyint(d / length);
}

static int by_id(const void *a, const void *b)
{
    const long left = ((const struct particle *)a)->id, right = ((const struct particle *)b)->id;
    return (left > right) - (left < right);
}

/* Copies of the neighbours' particles that are near enough to act on ours. */
static void exchange_ghosts(struct slab *s)
{
    s->ghosts.count = s->leaving[LEFT].count = s->leaving[RIGHT].count = 0;
    for (long i = 0; i < s->own.count; i++) {
        const struct particle *p = &s->own.all[i];
        if (p->x < s->begin + reach)
            append(&s->leaving[LEFT], p);
        if (p->x >= s->end - reach)
            append(&s->leaving[RIGHT], p);
    }
    for (int side = LEFT; side <= RIGHT && s->size > 1; side++)
        shift(s, side, &s->leaving[side], &s->ghosts);
}

static void push(struct particle *p, const struct particle *other)
{
    const double dx = shortest(p->x - other->x, box), dy = shortest(p->y - other->y, height);
    const double distance = sqrt(dx * dx + dy * dy);
    if (p->id == other->id || distance >= reach || distance == 0)
        return;
    const double force = stiffness * (reach - distance) / distance;
    p->vx += dt * force * dx;
    p->vy += dt * force * dy;
}

static void advance(struct slab *s)
{
    for (long i = 0; i < s->own.count; i++) {
        struct particle *p = &s->own.all[i];
        for (long j = 0; j < s->own.count; j++)
            push(p, &s->own.all[j]);
        for (long j = 0; j < s->ghosts.count; j++)
            push(p, &s->ghosts.all[j]);
    }
    for (long i = 0; i < s->own.count; i++) {
        struct particle *p = &s->own.all[i];
        p->x += dt * p->vx;
        p->x -= box * floor(p->x / box);
        p->y += dt * p->vy;
        p->y -= height * floor(p->y / height);
    }
}

/* Particles outside the slab go to the neighbour; a step is shorter than a slab is wide. */
static void hand_over(struct slab *s)
{
    long kept = 0;
    s->leaving[LEFT].count = s->leaving[RIGHT].count = 0;
    for (long i = 0; i < s->own.count; i++) {
        const struct particle *p = &s->own.all[i];
        const double from_middle = shortest(p->x - (s->begin + s->end) / 2, box);
        if (s->size == 1 || fabs(from_middle) <= (s->end - s->begin) / 2)
            s->own.all[kept++] = *p;
        else
            append(&s->leaving[from_middle > 0 ? RIGHT : LEFT], p);
    }
    s->own.count = kept;
    for (int side = LEFT; side <= RIGHT && s->size > 1; side++)
        shift(s, side, &s->leaving[side], &s->own);
    /* The order of additions, and so the result, does not depend on when a particle came. */
    qsort(s->own.all, (size_t)s->own.count, sizeof *s->own.all, by_id);
}

static void begin(struct slab *s)
{
    int size, periodic = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 1, &s->line);
    MPI_Comm_rank(s->line, &s->rank);
    MPI_Comm_size(s->line, &s->size);
    MPI_Cart_shift(s->line, 0, 1, &s->neighbour[LEFT], &s->neighbour[RIGHT]);
    MPI_Type_contiguous((int)sizeof(struct particle), MPI_BYTE, &s->type);
    MPI_Type_commit(&s->type);
    s->begin = box * s->rank / s->size;
    s->end = box * (s->rank + 1) / s->size;
}

static void fill(struct slab *s, long particles)
{
    unsigned long seed = 12345;
    for (long id = 0; id < particles; id++) {
        double drawn[4];
        for (int i = 0; i < 4; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            drawn[i] = (double)(seed >> 11) / (double)(1ul << 53);
        }
        const struct particle p = {drawn[0] * box / 8, drawn[1] * height, 4 + drawn[2] / 2,
                                   4 * drawn[3] - 2, id};
        if (p.x >= s->begin && p.x < s->end)
            append(&s->own, &p);
    }
}

static unsigned long digest(const struct particle *p)
{
    unsigned long words[sizeof *p / sizeof(unsigned long)], sum = 0;
    memcpy(words, p, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15u;
    return sum;
}

int main(int argc, char **argv)
{
    struct slab s = {0};
    long parameters[2] = {2000, 400}, step = 0; /* particles, steps */

    MPI_Init(&argc, &argv);
    begin(&s);
    if (s.rank == 0)
        for (int i = 0; i < 2 && i + 1 < argc; i++)
            parameters[i] = atol(argv[i + 1]);
    MPI_Bcast(parameters, 2, MPI_LONG, 0, s.line);
    fill(&s, parameters[0]);

    for (; step < parameters[1]; step++) {
        exchange_ghosts(&s);
        advance(&s);
        hand_over(&s);
    }

    /* Of bits, so that it is the same in whatever order MPI adds. */
    unsigned long mine[2] = {(unsigned long)s.own.count, 0}, all[2];
    for (long i = 0; i < s.own.count; i++)
        mine[1] += digest(&s.own.all[i]);
    MPI_Reduce(mine, all, 2, MPI_UNSIGNED_LONG, MPI_SUM, 0, s.line);
    if (s.rank == 0)
        printf("%lu particles after %ld steps, checksum %016lx\n", all[0], step, all[1]);
    MPI_Comm_free(&s.line);
    MPI_Type_free(&s.type);
    free(s.own.all);
    free(s.ghosts.all);
    free(s.leaving[LEFT].all);
    free(s.leaving[RIGHT].all);
    MPI_Finalize();
    return 0;
}
