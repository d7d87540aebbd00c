/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that has left has a copy, which is given a token that was used: the other ranks refuse it,
 * and the rank that came back first loses nothing.
 *
 *     copied FILE        goes on until FILE.0 is there; holder.c tells rank 0 to leave
 *     copied FILE late   the other ranks answer the copy after seconds: until then it keeps its
 *                        connections, on which answers may be under way
 *
 * While it is detached, rank 0 waits for its token in poll(), which is this program's: there it
 * makes the copy, a child that gets its orders from this program.
 */
#include "check.h"
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { LATE_MS = 3000 };

static int orders = -1; /* of the copy; -1: there is none yet */
static pid_t copy;
static int is_copy, answers_late;
static int processes[64]; /* by rank */

static void make_copy(int fd)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        _exit(2);
    orders = ends[0];
    copy = fork();
    if (copy == 0) {
        is_copy = 1;
        dup2(ends[1], fd);
        close(ends[0]);
    }
    close(ends[1]);
}

/* libmpi's calls come here, too. */
int poll(struct pollfd *fds, nfds_t nr, int timeout)
{
    const char *text = getenv("MPIR_CVAR_CH4_ZC_DETACH_FD");
    if (check_rank == 0 && orders < 0 && nr == 1 && timeout == -1 && text &&
        fds[0].fd == atoi(text))
        make_copy(fds[0].fd);
    return (int)syscall(SYS_poll, fds, nr, timeout);
}

static void check_no_answer(void)
{
    struct pollfd one = {.fd = orders, .events = POLLIN};
    CHECK(poll(&one, 1, LATE_MS) == 0, "the copy has waited for no answer");
}

/** check_copy - it is given the token that this process has got, and answers that it is refused */
static void check_copy(void)
{
    static const char token[] = "BIND 1\n";
    char answer[256];
    size_t length = 0;
    for (int rank = 1; answers_late && rank < check_ranks; rank++)
        kill(processes[rank], SIGSTOP);
    CHECK(write(orders, token, sizeof token - 1) == sizeof token - 1, "the copy has gone");
    if (answers_late) {
        check_no_answer();
        for (int rank = 1; rank < check_ranks; rank++)
            kill(processes[rank], SIGCONT);
    }
    do {
        const ssize_t more = read(orders, answer + length, sizeof answer - 1 - length);
        CHECK(more > 0, "the copy has gone");
        length += (size_t)more;
    } while (answer[length - 1] != '\n');
    answer[length - 1] = '\0';
    CHECK(strstr(answer, "REFUSED another copy"), "the copy answered: %s", answer);
    kill(copy, SIGKILL);
    waitpid(copy, NULL, 0);
    printf("# the copy was refused\n");
}

static void exchange(int round)
{
    static unsigned char out[MIB], in[MIB];
    const size_t bytes = round % 2 ? sizeof out : (size_t)round % 1000;
    MPI_Request request;
    pattern_fill(out, bytes, check_seed + (uint64_t)round);
    MPI_Isend(out, bytes, MPI_BYTE, (check_rank + 1) % check_ranks, 1, MPI_COMM_WORLD, &request);
    MPI_Recv(in, sizeof in, MPI_BYTE, (check_rank + check_ranks - 1) % check_ranks, 1,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check_content(in, bytes, check_seed + (uint64_t)round, "message");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static MPI_Win window;
static unsigned char *memory;

/** put - into a window, of which the copy gives up what it has, too */
static void put(int round)
{
    static unsigned char out[4 * KIB];
    pattern_fill(out, sizeof out, check_seed - (uint64_t)round);
    MPI_Win_fence(0, window);
    MPI_Put(out, sizeof out, MPI_BYTE, (check_rank + 1) % check_ranks, 0, sizeof out, MPI_BYTE,
            window);
    MPI_Win_fence(0, window);
    check_content(memory, sizeof out, check_seed - (uint64_t)round, "put");
}

int main(int argc, char **argv)
{
    char name[4096];
    struct stat status;
    int go_on = 1, bound = 0, checked = 0;
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(argc == 2 || argc == 3, "usage: copied FILE [late]");
    answers_late = argc == 3;
    const int self = getpid();
    CHECK(check_ranks <= (int)(sizeof processes / sizeof processes[0]), "too many ranks");
    MPI_Allgather(&self, 1, MPI_INT, processes, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Win_allocate(4 * KIB, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    snprintf(name, sizeof name, "%s.0", argv[1]);
    for (int round = 0; go_on; round++) {
        exchange(round);
        put(round);
        CHECK(!is_copy, "the copy goes on");
        if (bound && !checked) {
            check_copy();
            checked = 1;
        }
        go_on = stat(name, &status) != 0 || (check_rank == 0 && !checked);
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        bound = orders >= 0; /* to all, which have had a message from it since */
    }
    MPI_Win_free(&window);
    return check_finish();
}
