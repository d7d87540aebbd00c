/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs whose state is not kept in arrays, or not only there:
 *
 *   saving particles FILE   a list of particles on each rank, of another length in each iteration,
 *                           which is packed into arrays only when it is to be saved
 *   saving unwilling FILE   rank 2 refuses to be saved, with 7, as long as FILE.willing is missing
 *   saving lingering FILE   functions return once FILE.save.RANK, FILE.release.RANK or
 *                           FILE.rebuild.RANK is gone; ranks send no messages to each other
 *   saving output FILE      each rank writes a line per iteration to FILE.RANK, by way of a buffer,
 *                           and has an exit handler that writes another
 *
 * Each ends once FILE exists.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zcm/zcm.h>

#include "check.h"

static int rank;
static const char *stop_file;

/* At the end of an iteration: the test has had enough. */
static int is_over(void)
{
    const struct timespec little = {.tv_nsec = 2000000};
    int stop = rank == 0 && access(stop_file, F_OK) == 0;
    nanosleep(&little, NULL);
    MPI_Bcast(&stop, 1, MPI_INT, 0, zcm_world());
    return stop;
}

/* ---- particles ---- */

struct particle {
    struct particle *next;
    double at, speed;
    long number;
};

static struct {
    long step;
    struct particle *first;
    size_t count; /* of particles packed */
    double *at;   /* two for each */
    long *number;
    int saved; /* how often it was packed */
} box;

/* What is in the box in step @step, whatever has happened before. */
static size_t expected(long step)
{
    return rank == 1 && step % 2 ? 0 : (size_t)((step * 37 + rank * 11) % 500);
}

static void put(double at, double speed, long number)
{
    struct particle *one = malloc(sizeof *one);
    CHECK(one, "out of memory");
    *one = (struct particle){box.first, at, speed, number};
    box.first = one;
}

static void take(void)
{
    struct particle *one = box.first;
    box.first = one->next;
    free(one);
}

static void move_particles(void)
{
    size_t count = 0;
    box.step++;
    for (struct particle *one = box.first; one; one = one->next, count++)
        one->at += one->speed;
    for (; count > expected(box.step); count--)
        take();
    for (; count < expected(box.step); count++)
        put((double)count, 0.5, (long)count * 1000 + rank);
    long seen = (long)count;
    for (struct particle *one = box.first; one; one = one->next)
        CHECK(one->number == --seen * 1000 + rank && one->speed == 0.5, "step %ld: particle %ld",
              box.step, seen);
    CHECK(seen == 0, "step %ld: %ld particles are missing", box.step, seen);
}

/* The last time's arrays are given up, new ones are registered, without elements if need be. */
static int pack(void *arg)
{
    CHECK(arg == &box, "another argument");
    if (box.saved > 0) {
        CHECK(zcm_unregister("at") == 0 && zcm_unregister("number") == 0, "unregister");
        free(box.at);
        free(box.number);
    }
    box.count = 0;
    for (struct particle *one = box.first; one; one = one->next)
        box.count++;
    box.saved++;
    box.at = malloc(box.count * 2 * sizeof *box.at);
    box.number = malloc(box.count * sizeof *box.number);
    size_t i = 0;
    for (struct particle *one = box.first; one; one = one->next, i++) {
        box.at[2 * i] = one->at;
        box.at[2 * i + 1] = one->speed;
        box.number[i] = one->number;
    }
    if (zcm_register("at", box.at, box.count * 2, MPI_DOUBLE) != 0)
        return -1;
    return zcm_register("number", box.number, box.count, MPI_LONG);
}

static void unpack(void)
{
    const char *names[] = {"at", "number", "saved", "step", NULL};
    const long long count = zcm_saved_count("number");
    CHECK(count >= 0 && zcm_saved_count("at") == 2 * count, "%lld particles", count);
    CHECK(zcm_saved_count("another") == -ENOENT && zcm_saved_count(NULL) == -EINVAL,
          "what was not saved");
    for (size_t i = 0; i < 5; i++) {
        const char *name = zcm_saved_name(i);
        CHECK(name == names[i] || (name && names[i] && !strcmp(name, names[i])), "name %zu: %s", i,
              name ? name : "none");
    }
    box.count = (size_t)count;
    box.at = malloc(box.count * 2 * sizeof *box.at);
    box.number = malloc(box.count * sizeof *box.number);
    CHECK(zcm_register("at", box.at, box.count * 2, MPI_DOUBLE) == 0 &&
              zcm_register("number", box.number, box.count, MPI_LONG) == 0,
          "register");
    for (size_t i = box.count; i-- > 0;)
        put(box.at[2 * i], box.at[2 * i + 1], box.number[i]);
}

static void particles(void)
{
    zcm_register("step", &box.step, 1, MPI_LONG);
    zcm_register("saved", &box.saved, 1, MPI_INT);
    CHECK(zcm_on_save(pack, &box) == 0, "on_save");
    if (zcm_resumed()) {
        unpack();
        CHECK(box.saved > 0, "resumed, and never packed");
        printf("rank %d goes on with %zu particles at %ld\n", rank, box.count, box.step);
    } else {
        CHECK(zcm_saved_count("step") == -ENOENT && !zcm_saved_name(0), "nothing was saved");
    }
    do {
        CHECK(zcm_safe_point() == 0, "safe point");
        CHECK(zcm_saved_count("step") == -ENOENT && !zcm_saved_name(0), "after the safe point");
        move_particles();
    } while (!is_over());
    while (box.first)
        take();
}

/* ---- unwilling ---- */

static int refuse(void *arg)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.willing", stop_file);
    return rank == 2 && access(path, F_OK) != 0 ? *(int *)arg : 0;
}

static void unwilling(void)
{
    static int code = 7;
    long i = 0;
    zcm_register("i", &i, 1, MPI_LONG);
    zcm_on_save(refuse, &code);
    do {
        CHECK(zcm_safe_point() == 0, "safe point");
        i++;
    } while (!is_over());
}

/* ---- lingering ---- */

static void linger(const char *where)
{
    const struct timespec little = {.tv_nsec = 2000000};
    char path[4096];
    snprintf(path, sizeof path, "%s.%s.%d", stop_file, where, rank);
    while (access(path, F_OK) == 0)
        nanosleep(&little, NULL);
}

static int save_late(void *arg)
{
    (void)arg;
    linger("save");
    return 0;
}

static void release_late(MPI_Comm world, void *arg)
{
    (void)world, (void)arg;
    linger("release");
}

static void rebuild_late(MPI_Comm world, void *arg)
{
    (void)world, (void)arg;
    linger("rebuild");
}

static void lingering(void)
{
    const struct timespec little = {.tv_nsec = 2000000};
    long i = 0;
    zcm_register("i", &i, 1, MPI_LONG);
    zcm_on_save(save_late, NULL);
    zcm_on_rebuild(release_late, rebuild_late, NULL);
    do {
        CHECK(zcm_safe_point() == 0, "safe point");
        i++;
        nanosleep(&little, NULL);
    } while (access(stop_file, F_OK) != 0);
}

/* ---- output ---- */

static FILE *out;

/* As a program would remove what it has no need of any more. */
static void at_the_end(void)
{
    fprintf(out, "end\n");
}

static void output(void)
{
    char path[4096];
    long i = 0;
    snprintf(path, sizeof path, "%s.%d", stop_file, rank);
    out = fopen(path, "a");
    CHECK(out, "%s", path);
    atexit(at_the_end);
    zcm_register("i", &i, 1, MPI_LONG);
    do {
        CHECK(zcm_safe_point() == 0, "safe point");
        fprintf(out, "%ld\n", i);
        i++;
        if (zcm_resumed() && i % 7 == 0)
            fflush(out); /* so that what its predecessor has kept to itself would come later */
    } while (!is_over());
    fprintf(out, "last\n");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    stop_file = argv[2];
    printf("begins\n"); /* in a buffer: it comes out whatever becomes of the process */
    MPI_Init(&argc, &argv);
    if (zcm_on_save(pack, NULL) != -EINVAL || zcm_saved_count("x") != -EINVAL ||
        zcm_saved_name(0) || zcm_init(&argc, &argv) != 0)
        return 1;
    MPI_Comm_rank(zcm_world(), &rank);
    if (!strcmp(argv[1], "particles"))
        particles();
    else if (!strcmp(argv[1], "unwilling"))
        unwilling();
    else if (!strcmp(argv[1], "lingering"))
        lingering();
    else if (!strcmp(argv[1], "output"))
        output();
    else
        return 2;
    if (rank == 0)
        printf("all right\n");
    CHECK(zcm_finalize() == 0, "zcm_finalize");
    MPI_Finalize();
    return 0;
}
