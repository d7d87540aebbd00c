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
 *     one PROGRAM          one process only
 *     multiple PROGRAM     two commands at once, of which one has no arguments
 *     path FOLDER WDIR     the name "spawns", where to look for it, and where to start it
 *     windows PROGRAM      parents and children have a window, and put into it and draw numbers,
 * too
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

enum { LONGEST = 1 << 19, CHILDREN = 2, ROOM = 1024, WORDS = 16 };
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
static MPI_Comm up = MPI_COMM_NULL, down = MPI_COMM_NULL;

/* Of each process of two worlds. */
typedef struct {
    long drawn; /* by all, of the first */
    unsigned char bytes[LONGEST];
} place_t;
static place_t *up_place, *down_place;
static MPI_Win up_window = MPI_WIN_NULL, down_window = MPI_WIN_NULL;

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
    if (comm == MPI_COMM_NULL)
        return;
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

/** put - to the next of @comm by @win, and from the one before it */
static void put(MPI_Comm comm, MPI_Win win, const place_t *place, long round)
{
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

/** have_window - of @all, if the worlds have one */
static void have_window(MPI_Comm all, MPI_Win *win, place_t **place)
{
    if (strcmp(job.words[0], "windows") != 0)
        return;
    MPI_Win_allocate(sizeof **place, 1, MPI_INFO_NULL, all, place, win);
    (*place)->drawn = 0;
    MPI_Barrier(all);
    MPI_Win_lock_all(0, *win);
}

static void free_window(MPI_Win *win)
{
    if (*win == MPI_WIN_NULL)
        return;
    MPI_Win_unlock_all(*win);
    MPI_Win_free(win);
}

static MPI_Comm merged(MPI_Comm inter, int is_child)
{
    MPI_Comm all;
    MPI_Intercomm_merge(inter, is_child, &all);
    MPI_Comm_disconnect(&inter);
    MPI_Bcast(&job, sizeof job, MPI_BYTE, 0, all);
    return all;
}

static int spawn_multiple(MPI_Comm *inter)
{
    char *commands[] = {job.words[1], job.words[1]};
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
    down = merged(inter, 0);
    job.level--;
    have_window(down, &down_window, &down_place);
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
    if (rank == 0 && up == MPI_COMM_NULL)
        word = is_there(over) || (job.level == 0 && is_there("over")) ? OVER
               : down != MPI_COMM_NULL && is_there("part")            ? PART
               : is_there("spawn")                                    ? SPAWN
                                                                      : GO_ON;
    if (up != MPI_COMM_NULL)
        MPI_Bcast(&word, 1, MPI_INT, 0, up);
    else
        MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (down != MPI_COMM_NULL)
        MPI_Bcast(&word, 1, MPI_INT, 0, down);
    return word;
}

static void part(void)
{
    free_window(&down_window);
    free_window(&up_window);
    if (down != MPI_COMM_NULL)
        MPI_Comm_disconnect(&down);
    if (up != MPI_COMM_NULL)
        MPI_Comm_disconnect(&up);
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
        up = merged(parent, 1);
        have_window(up, &up_window, &up_place);
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
        exchange(up, round);
        put(up, up_window, up_place, round);
        exchange(MPI_COMM_WORLD, round);
        exchange(down, round);
        put(down, down_window, down_place, round);
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
