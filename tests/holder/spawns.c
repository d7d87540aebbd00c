/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Worlds that spawn others, and send each other messages, whose contents and order are checked; an
 * MPI program that knows nothing of moves.
 *
 *     spawns FILE DEPTH COMMAND [ARGUMENT...]
 *
 * goes on until FILE.over is there. When FILE.spawn is there it spawns two processes by COMMAND,
 * which is this program again; and those spawn two if DEPTH is 2. COMMAND is a program, or one of
 *
 *     one PROGRAM                one process only
 *     multiple PROGRAM [SECOND]  two commands at once, of which one has no arguments
 *     path FOLDER WDIR           the name "spawns", where to look for it, and where to start it
 *     windows PROGRAM            parents and children put into a window, and draw numbers, too
 *
 * Messages take several communicators in turn, which lie on several VCIs where there are.
 *
 * When FILE.part is there, the worlds part: each goes on until there is FILE.over-LEVEL. LEVEL is 0
 * for what the launcher has started, and FILE.over is another name for FILE.over-0.
 *
 * Each rank prints "LEVEL rank R round N" once a second and "LEVEL rank R ends after N rounds" at
 * its end; a process that was spawned prints first "LEVEL rank R in FOLDER with ARGUMENTS".
 */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 1 << 19, CHILDREN = 2, ROOM = 1024, WORDS = 16, COMMS = 3 };
enum { GO_ON, SPAWN, PART, OVER };
static const int sizes[] = {1, 1000, 8000, 70000, LONGEST};

/* What those that are spawned are told. */
static struct {
    char file[ROOM];
    char words[WORDS][ROOM];
    int number, level, depth;
    long round;
} job;

static int rank, ranks; /* in MPI_COMM_WORLD */

/* Of each process of two worlds. */
typedef struct {
    long drawn; /* by all, of the first */
    unsigned char bytes[LONGEST];
} place_t;

/* Those of two worlds. */
typedef struct {
    int connected;
    MPI_Comm comms[COMMS];
    MPI_Win window; /* of the first */
    place_t *place;
} worlds_t;

static worlds_t up = {.window = MPI_WIN_NULL}, down = {.window = MPI_WIN_NULL};
static unsigned char out[LONGEST], in[LONGEST];

static void fail(const char *what, long round)
{
    fprintf(stderr, "spawns: %d rank %d: %s in round %ld\n", job.level, rank, what, round);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static int is_there(const char *suffix)
{
    char name[ROOM + 64];
    snprintf(name, sizeof name, "%s.%s", job.file, suffix);
    return access(name, F_OK) == 0;
}

static unsigned char content(int from, int to, long round, int i)
{
    return (unsigned char)(from * 31 + to * 17 + round * 7 + i + i / 253);
}

/** exchange - a message to the next of @comm, of which any may be of another world, and a sum */
static void exchange(MPI_Comm comm, long round)
{
    int own, members, got;
    MPI_Status status;
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &members);
    const int to = (own + 1) % members, from = (own + members - 1) % members;
    const int size = sizes[round % (long)(sizeof sizes / sizeof *sizes)];
    for (int i = 0; i < size; i++)
        out[i] = content(own, to, round, i);
    MPI_Sendrecv(out, size, MPI_BYTE, to, (int)(round % 1000), in, LONGEST, MPI_BYTE, from,
                 (int)(round % 1000), comm, &status);
    MPI_Get_count(&status, MPI_BYTE, &got);
    if (got != size)
        fail("a message has another length", round);
    for (int i = 0; i < size; i++) {
        if (in[i] != content(from, own, round, i))
            fail("a message has changed", round);
    }
    long sum = 0, mine = round + own;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
    if (sum != members * round + members * (members - 1L) / 2)
        fail("a sum is wrong", round);
}

/** put - to the next process of @worlds by their window, and from the one before it */
static void put(const worlds_t *worlds, long round)
{
    const MPI_Comm comm = worlds->comms[0];
    const MPI_Win win = worlds->window;
    const place_t *place = worlds->place;
    static const long one = 1;
    long drawn = -1, sum = 0;
    int own, members;
    if (win == MPI_WIN_NULL)
        return;
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &members);
    const int to = (own + 1) % members, from = (own + members - 1) % members;
    const int size = sizes[round % (long)(sizeof sizes / sizeof *sizes)];
    for (int i = 0; i < size; i++)
        out[i] = content(own, to, round, i);
    MPI_Put(out, size, MPI_BYTE, to, offsetof(place_t, bytes), size, MPI_BYTE, win);
    MPI_Fetch_and_op(&one, &drawn, MPI_LONG, 0, offsetof(place_t, drawn), MPI_SUM, win);
    MPI_Win_flush_all(win);
    MPI_Get(in, size, MPI_BYTE, to, offsetof(place_t, bytes), size, MPI_BYTE, win);
    MPI_Win_flush_all(win);
    if (memcmp(in, out, size) != 0)
        fail("what was put is not got back", round);
    MPI_Barrier(comm);
    MPI_Win_sync(win);
    for (int i = 0; i < size; i++) {
        if (place->bytes[i] != content(from, own, round, i))
            fail("memory has changed", round);
    }
    long before = 0;
    MPI_Allreduce(&drawn, &sum, 1, MPI_LONG, MPI_SUM, comm);
    MPI_Allreduce(&drawn, &before, 1, MPI_LONG, MPI_MIN, comm);
    if (sum != members * before + members * (members - 1L) / 2 || before % members != 0)
        fail("a number is drawn twice", round);
}

/** have_window - of @worlds, if they are to have one */
static void have_window(worlds_t *worlds)
{
    if (strcmp(job.words[0], "windows") != 0)
        return;
    MPI_Win_allocate(sizeof *worlds->place, 1, MPI_INFO_NULL, worlds->comms[0], &worlds->place,
                     &worlds->window);
    worlds->place->drawn = 0;
    MPI_Barrier(worlds->comms[0]);
    MPI_Win_lock_all(0, worlds->window);
}

static void free_window(worlds_t *worlds)
{
    if (worlds->window == MPI_WIN_NULL)
        return;
    MPI_Win_unlock_all(worlds->window);
    MPI_Win_free(&worlds->window);
}

static void exchange_with(const worlds_t *worlds, long round)
{
    if (worlds->connected)
        exchange(worlds->comms[round % COMMS], round);
}

static void merge(MPI_Comm inter, int is_child, worlds_t *worlds)
{
    MPI_Intercomm_merge(inter, is_child, &worlds->comms[0]);
    MPI_Comm_disconnect(&inter);
    for (int i = 1; i < COMMS; i++)
        MPI_Comm_dup(worlds->comms[0], &worlds->comms[i]);
    MPI_Bcast(&job, sizeof job, MPI_BYTE, 0, worlds->comms[0]);
    worlds->connected = 1;
}

static void disconnect(worlds_t *worlds)
{
    for (int i = 0; worlds->connected && i < COMMS; i++)
        MPI_Comm_disconnect(&worlds->comms[i]);
    worlds->connected = 0;
}

static int spawn_multiple(MPI_Comm *inter)
{
    char *commands[] = {job.words[1], job.words[job.number > 2 ? 2 : 1]};
    char *arguments[] = {"two words", "", NULL};
    char **argvs[] = {arguments, MPI_ARGV_NULL};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    int each[] = {1, CHILDREN - 1}, codes[CHILDREN];
    return MPI_Comm_spawn_multiple(2, commands, argvs, each, infos, 0, MPI_COMM_WORLD, inter,
                                   codes);
}

static int spawn_by_path(MPI_Comm *inter)
{
    char *arguments[] = {"two words", NULL};
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "path", job.words[1]);
    MPI_Info_set(info, "wdir", job.words[2]);
    const int failed = MPI_Comm_spawn("spawns", arguments, CHILDREN, info, 0, MPI_COMM_WORLD, inter,
                                      MPI_ERRCODES_IGNORE);
    /* It is the program's still, as it was. */
    char value[ROOM];
    int found = 0;
    MPI_Info_get(info, "path", sizeof value - 1, value, &found);
    if (!found || strcmp(value, job.words[1]) != 0)
        fail("the info has changed", 0);
    MPI_Info_free(&info);
    return failed;
}

static int spawn_one(MPI_Comm *inter)
{
    return MPI_Comm_spawn(job.words[1], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter,
                          MPI_ERRCODES_IGNORE);
}

static int spawn_program(MPI_Comm *inter)
{
    return MPI_Comm_spawn(job.words[1], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                          inter, MPI_ERRCODES_IGNORE);
}

static int spawn_by_words(MPI_Comm *inter)
{
    char *arguments[WORDS] = {NULL};
    for (int i = 1; i < job.number; i++)
        arguments[i - 1] = job.words[i];
    return MPI_Comm_spawn(job.words[0], arguments, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                          inter, MPI_ERRCODES_IGNORE);
}

static void spawn(long round)
{
    MPI_Comm inter = MPI_COMM_NULL;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int failed = !strcmp(job.words[0], "one")        ? spawn_one(&inter)
                       : !strcmp(job.words[0], "multiple") ? spawn_multiple(&inter)
                       : !strcmp(job.words[0], "path")     ? spawn_by_path(&inter)
                       : !strcmp(job.words[0], "windows")  ? spawn_program(&inter)
                                                           : spawn_by_words(&inter);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (failed) {
        MPI_Error_string(failed, text, &length);
        printf("%d rank %d cannot spawn: %s\n", job.level, rank, text);
        fflush(stdout);
        return;
    }
    job.level++;
    job.depth--;
    job.round = round + 1;
    merge(inter, 0, &down);
    job.level--;
    have_window(&down);
}

static void introduce(int argc, char **argv)
{
    char folder[ROOM] = "", arguments[ROOM] = "";
    if (!getcwd(folder, sizeof folder))
        fail("there is no folder", 0);
    for (int i = 1; i < argc; i++) {
        const size_t length = strlen(arguments);
        snprintf(arguments + length, sizeof arguments - length, " [%s]", argv[i]);
    }
    printf("%d rank %d in %s with%s\n", job.level, rank, folder, arguments);
    fflush(stdout);
}

/** next - what the first world's rank 0 says, or that of one that has no world above it */
static int next(void)
{
    int word = GO_ON;
    char over[32];
    snprintf(over, sizeof over, "over-%d", job.level);
    if (rank == 0 && !up.connected)
        word = is_there(over) || (job.level == 0 && is_there("over")) ? OVER
               : down.connected && is_there("part")                   ? PART
               : is_there("spawn")                                    ? SPAWN
                                                                      : GO_ON;
    MPI_Bcast(&word, 1, MPI_INT, 0, up.connected ? up.comms[0] : MPI_COMM_WORLD);
    if (down.connected)
        MPI_Bcast(&word, 1, MPI_INT, 0, down.comms[0]);
    return word;
}

static void part(void)
{
    free_window(&down);
    free_window(&up);
    disconnect(&down);
    disconnect(&up);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    int word = GO_ON, tried = 0;
    long round = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (parent != MPI_COMM_NULL) {
        merge(parent, 1, &up);
        have_window(&up);
        round = job.round;
        introduce(argc, argv);
    } else {
        snprintf(job.file, sizeof job.file, "%s", argv[1]);
        job.depth = atoi(argv[2]);
        for (int i = 3; i < argc && job.number < WORDS; i++)
            snprintf(job.words[job.number++], ROOM, "%s", argv[i]);
    }
    for (double said = MPI_Wtime(); word != OVER; round++) {
        word = next();
        exchange_with(&up, round);
        put(&up, round);
        exchange(MPI_COMM_WORLD, round);
        exchange_with(&down, round);
        put(&down, round);
        if (word == SPAWN && !tried && job.depth > 0) {
            tried = 1;
            spawn(round);
        } else if (word == PART) {
            tried = 1;
            part();
        }
        if (MPI_Wtime() - said > 1) {
            said = MPI_Wtime();
            printf("%d rank %d round %ld\n", job.level, rank, round);
            fflush(stdout);
        }
    }
    part();
    printf("%d rank %d ends after %ld rounds\n", job.level, rank, round);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
