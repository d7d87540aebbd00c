/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts a rank, and tells it again and again to leave and to come back: what holds a rank that may
 * be moved, reduced to one place. mpiexec starts it instead of the rank.
 *
 *     holder [OPTION...] -- PROGRAM [ARGUMENT...]
 *
 *     -r LIST    the ranks that are told so, "1" or "0,2"; default 0
 *     -n TIMES   how often each of them has to have left; default 100; 0: as often as it can
 *     -w MS      the longest time between two orders, at random; default 5
 *     -a MS      the longest time that the rank stays away, at random; default 2
 *     -b FILE    the first order waits until this is there
 *     -u FILE    is made by each of them when it is through, with its rank behind it
 *     -e WHY     expect refusals for this reason only, and no detachment
 *     -t WHY     expect refusals for this reason among the detachments, and go on until there
 *                is one
 *     -l WHY     a refusal for this reason is no error, and need not come
 *     -x RANK    this rank is stopped again and again for 3 s, with 1.5 s in between
 *     -k RANK    this rank is killed when one of those that are told has left the third time
 *     -d         a rank that is told is killed when it is away the third time and FILE.kill is
 *                there, and the holder with it
 *     -o         at that time the first connection ends that another world has to the holder,
 * though the rank lives -g         none comes back before all that are told are away, or a second
 * has passed; all are to be away at a time as often as each has to leave -f         ask for the
 * rank's userfaultfd(2) first, which tells what it writes -m         give it memory first, each
 * time, in which it writes what it sends, and look at that -s         give a stale token before
 * each true one -c         compare what the detached rank holds: descriptors and mappings of UCX
 *
 * It ends as the program does, and badly if the rank did not what it was told.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct {
    const char *ranks, *begin, *until, *expected, *tolerated, *allowed;
    int stopped, killed;
    int times, between_ms, away_ms;
    bool stale, census, userfault, group, memory, dies, parted;
} options = {
    .ranks = "0", .stopped = -1, .killed = -1, .times = 100, .between_ms = 5, .away_ms = 2};

/** Of all ranks that are told to leave, in memory that their holders share. */
struct group {
    int away;     /* how many are */
    int together; /* how often all were */
};
static struct group *group;

static int rank;
static pid_t child, server = -1;
static unsigned port; /* of the server */
static uint64_t token;
static FILE *orders;
static int refusals, tolerated;

static void die(const char *what, const char *more)
{
    fprintf(stderr, "holder of rank %d: %s%s%s\n", rank, what, *more ? ": " : "", more);
    if (child > 0)
        kill(child, SIGKILL);
    exit(3);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static void sleep_up_to(int ms)
{
    struct timespec span = {.tv_nsec = ms ? rand() % (ms * 1000) * 1000L : 0};
    span.tv_sec = span.tv_nsec / 1000000000;
    span.tv_nsec %= 1000000000;
    nanosleep(&span, NULL);
}

/** says - the next line of the rank begins with @word; what follows is left in @rest */
static bool says(const char *word, char *rest, size_t room)
{
    char line[256];
    if (!fgets(line, sizeof line, orders))
        return false;
    line[strcspn(line, "\n")] = '\0';
    const size_t length = strlen(word);
    const bool right = strncmp(line, word, length) == 0;
    snprintf(rest, room, "%s", right ? line + length + (line[length] == ' ') : line);
    return right;
}

static void tell(const char *order)
{
    fputs(order, orders);
    fflush(orders);
}

/** nothing_of_ucx - what the rank must not hold while it is detached */
static void nothing_of_ucx(void)
{
    char path[64], name[512], target[256];
    snprintf(path, sizeof path, "/proc/%d/fd", child);
    DIR *all = opendir(path);
    for (const struct dirent *one; all && (one = readdir(all));) {
        snprintf(name, sizeof name, "%s/%s", path, one->d_name);
        const ssize_t length = readlink(name, target, sizeof target - 1);
        if (length <= 0)
            continue;
        target[length] = '\0';
        /* The landing thread keeps its timer; a socket of UCX is one of TCP. */
        if (strstr(target, "eventpoll") || strstr(target, "eventfd") ||
            strstr(target, "infiniband") || strstr(target, "io_uring"))
            die("the rank has, detached", target);
    }
    if (all)
        closedir(all);
    snprintf(path, sizeof path, "/proc/%d/task", child);
    all = opendir(path);
    for (const struct dirent *one; all && (one = readdir(all));) {
        snprintf(name, sizeof name, "%s/%s/comm", path, one->d_name);
        FILE *comm = fopen(name, "r");
        if (comm && fgets(target, sizeof target, comm) && strstr(target, "async"))
            die("the rank has a thread, detached", target);
        if (comm)
            fclose(comm);
    }
    if (all)
        closedir(all);
}

/** nr_tcp - how many sockets of the rank are of TCP */
static int nr_tcp(void)
{
    char path[64], name[512], target[256], line[512];
    int found = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", child);
    DIR *all = opendir(path);
    for (const struct dirent *one; all && (one = readdir(all));) {
        snprintf(name, sizeof name, "%s/%s", path, one->d_name);
        const ssize_t length = readlink(name, target, sizeof target - 1);
        unsigned long inode;
        target[length < 0 ? 0 : length] = '\0';
        if (sscanf(target, "socket:[%lu]", &inode) != 1)
            continue;
        char number[32];
        snprintf(number, sizeof number, " %lu ", inode);
        snprintf(name, sizeof name, "/proc/%d/net/tcp", child);
        FILE *table = fopen(name, "r");
        while (table && fgets(line, sizeof line, table))
            found += strstr(line, number) != NULL;
        if (table)
            fclose(table);
    }
    if (all)
        closedir(all);
    return found;
}

/** resident_kib - memory of the rank */
static long resident_kib(void)
{
    char path[64], line[256];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", child);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

/* Of the rank, detached, the 20th time and the last. */
static long resident_early, resident_late;

/* The rank has the launcher's connection besides, which may be of TCP. */
static int launchers = -1;

static void check_detached(void)
{
    if (!options.census)
        return;
    nothing_of_ucx();
    const int now = nr_tcp();
    if (launchers < 0)
        launchers = now;
    if (now > launchers || now > 1)
        die("the rank has connections, detached", "");
}

static void name_file(char *name, size_t room, const char *suffix)
{
    snprintf(name, room, "%s%s", options.until ? options.until : "holder", suffix);
}

static void mark(const char *suffix)
{
    char name[4096];
    name_file(name, sizeof name, suffix);
    FILE *file = fopen(name, "w");
    if (!file)
        die("cannot make", name);
    fclose(file);
}

static int nr_told(void)
{
    int nr = 1;
    for (const char *comma = options.ranks; (comma = strchr(comma, ',')); comma++)
        nr++;
    return nr;
}

static void open_group(void)
{
    char name[4096];
    name_file(name, sizeof name, ".group");
    const int fd = open(name, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *group) != 0)
        die("cannot make", name);
    group = mmap(NULL, sizeof *group, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (group == MAP_FAILED)
        die("cannot map", name);
    close(fd);
}

/** tell_company - the other ranks of the group are going to leave as well */
static void tell_company(void)
{
    char list[256], order[32], *rest = NULL;
    snprintf(list, sizeof list, "%s", options.ranks);
    for (char *one = strtok_r(list, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        snprintf(order, sizeof order, "WITH %d\n", atoi(one));
        tell(order);
    }
}

/** await_group - the rank is away: until all are, or one has been refused for long */
static void await_group(void)
{
    const double end = seconds() + 1;
    const int before = __atomic_load_n(&group->together, __ATOMIC_SEQ_CST);
    if (__atomic_add_fetch(&group->away, 1, __ATOMIC_SEQ_CST) == nr_told())
        __atomic_add_fetch(&group->together, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&group->together, __ATOMIC_SEQ_CST) == before && seconds() < end)
        usleep(1000);
    __atomic_sub_fetch(&group->away, 1, __ATOMIC_SEQ_CST);
}

/** take_userfault - asks for it, and looks at it; nothing is buffered of the rank's answers yet */
static void take_userfault(void)
{
    char line[64] = "";
    struct iovec content = {.iov_base = line, .iov_len = sizeof line - 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &content,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct uffdio_api what = {.api = UFFD_API};
    int fd = -1;

    tell("TRACK\n");
    if (recvmsg(fileno(orders), &message, MSG_CMSG_CLOEXEC) <= 0 || strcmp(line, "TRACKED\n") != 0)
        die("the rank does not let itself be tracked", line);
    if (control.header.cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
    if (ioctl(fd, UFFDIO_API, &what) != 0)
        die("what comes with TRACKED is no userfaultfd", strerror(errno));
    close(fd);
}

/** What the rank writes: mpi-ch4-netmod/zc/zc_traffic.h */
static struct traffic {
    uint32_t magic, entries, rank, world;
    uint64_t job, sent, reserved[4];
    struct {
        uint64_t time_ns;
        uint32_t receiver, kib;
    } ring[64];
} * traffic;

static int64_t ns_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/** tell_with - the order TELL, and @fd with it, if that is one; returns whether the rank agrees */
static bool tell_with(int fd, const char *why)
{
    char line[64], rest[256];
    struct iovec content = {.iov_base = line};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1};

    content.iov_len = (size_t)snprintf(line, sizeof line, "TELL %lld\n",
                                       (long long)(ns_of(CLOCK_REALTIME) - ns_of(CLOCK_MONOTONIC)));
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    }
    if (sendmsg(fileno(orders), &message, MSG_NOSIGNAL) < 0)
        return false;
    if (says("TELLING", rest, sizeof rest))
        return true;
    if (!why || !strstr(rest, why) || strncmp(rest, "UNTOLD", 6) != 0)
        die("the rank does not tell", rest);
    return false;
}

static int make_traffic(size_t bytes)
{
    const int fd = memfd_create("traffic", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        die("no memory", strerror(errno));
    return fd;
}

/** give_memory - after some that it must not take */
static void give_memory(void)
{
    const char *text = getenv("PMI_SIZE");
    const struct traffic right = {.magic = 0x7254635a,
                                  .entries = 64,
                                  .rank = (uint32_t)rank,
                                  .world = (uint32_t)(text ? atoi(text) : 1)};
    struct traffic wrong[] = {right, right, right, right};
    const int small = make_traffic(sizeof right - sizeof right.ring[0]);
    const int fd = make_traffic(sizeof right);

    wrong[0].magic++;
    wrong[1].entries--;
    wrong[2].rank++;
    wrong[3].world++;
    tell_with(-1, "there is no memory for it");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (pwrite(fd, &wrong[i], sizeof wrong[i], 0) < 0 ||
            tell_with(fd, "of another rank, or job"))
            die("the rank takes what is not for it", "");
    }
    if (pwrite(small, &right, sizeof right - sizeof right.ring[0], 0) < 0 ||
        tell_with(small, "of another rank, or job"))
        die("the rank takes what is too small", "");
    close(small);
    traffic = mmap(NULL, sizeof right, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (traffic == MAP_FAILED)
        die("no memory", strerror(errno));
    *traffic = right;
    tell_with(fd, NULL);
    close(fd);
}

/** check_traffic - the rank sends to the others all the time */
static void check_traffic(void)
{
    const double end = seconds() + 10;
    while (__atomic_load_n(&traffic->sent, __ATOMIC_ACQUIRE) < 2 && seconds() < end)
        usleep(1000);
    const uint64_t sent = __atomic_load_n(&traffic->sent, __ATOMIC_ACQUIRE);
    const int64_t now = ns_of(CLOCK_MONOTONIC);
    if (sent < 2)
        die("the rank tells nothing", "");
    for (uint64_t i = sent > 64 ? sent - 32 : 0; i < sent; i++) {
        const int64_t age = now - (int64_t)traffic->ring[i % 64].time_ns;
        if (traffic->ring[i % 64].receiver >= traffic->world ||
            traffic->ring[i % 64].kib > 4 << 10 || age > INT64_C(20000000000) ||
            age < -INT64_C(10000000000))
            die("the rank tells nonsense", "");
    }
}

/** give_up_memory - it is detached, and cannot have it */
static void give_up_memory(void)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/maps", child);
    FILE *maps = fopen(path, "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (strstr(line, "memfd:traffic"))
            die("the rank has the memory still", "");
    }
    if (maps)
        fclose(maps);
    munmap(traffic, sizeof *traffic);
}

static volatile sig_atomic_t one_ends;

static void end_one(int signal)
{
    one_ends = signal;
}

/** is_open - its peer has not closed it; nothing is sent over it */
static bool is_open(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/** forget_closed - connections that their peers have closed, of @nr; returns how many are left */
static int forget_closed(int *taken, int nr)
{
    int left = 0;
    for (int i = 0; i < nr; i++) {
        if (is_open(taken[i]))
            taken[left++] = taken[i];
        else
            close(taken[i]);
    }
    return left;
}

/** take_connections - each gets the token, and lasts until the end; but one is closed when told */
static void take_connections(int listening)
{
    enum { MOST = 512 };
    const struct sigaction on_signal = {.sa_handler = end_one};
    int taken[MOST], nr = 0;
    sigaction(SIGUSR2, &on_signal, NULL);
    while (nr < MOST) {
        const int fd = accept(listening, NULL, NULL);
        if (fd >= 0) {
            send(fd, &token, sizeof token, MSG_NOSIGNAL);
            taken[nr++] = fd;
        }
        if (nr == MOST)
            nr = forget_closed(taken, nr);
        for (int i = 0; one_ends && i < nr; i++) {
            if (is_open(taken[i])) {
                shutdown(taken[i], SHUT_RDWR);
                one_ends = 0;
            }
        }
    }
}

/** serve - begins to, in a process of its own that ends with the holder */
static void serve(void)
{
    const pid_t self = getpid();
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, 64) != 0 || getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        die("cannot listen", strerror(errno));
    port = ntohs(address.sin_port);
    token = (uint64_t)self << 32 | (uint32_t)rand();
    server = fork();
    if (server < 0)
        die("cannot fork", strerror(errno));
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fileno(orders));
        if (getppid() == self)
            take_connections(fd);
        _exit(0);
    }
    close(fd);
}

static void tell_of_life(void)
{
    char order[64];
    if (server < 0)
        serve();
    snprintf(order, sizeof order, "LIVES %u %llx 60\n", port, (unsigned long long)token);
    tell(order);
}

static void await_mark(const char *suffix)
{
    char name[4096];
    const double end = seconds() + 30;
    name_file(name, sizeof name, suffix);
    while (access(name, F_OK) != 0) {
        if (seconds() > end)
            die("there is no", name);
        usleep(10000);
    }
}

/** away_the_third_time - what is to happen then */
static void away_the_third_time(void)
{
    if (options.killed < 0 && !options.dies && !options.parted)
        return;
    mark(".away");
    if (options.dies)
        await_mark(".kill");
    usleep(500000);
    if (options.parted) {
        kill(server, SIGUSR2);
        usleep(500000); /* and that is noticed */
    }
    if (options.dies) {
        kill(child, SIGKILL);
        raise(SIGKILL);
    }
}

/** go_round - false: the rank has ended */
static bool go_round(unsigned *incarnation)
{
    char rest[256], order[64];

    if (group)
        tell_company();
    if (options.memory) {
        give_memory();
        check_traffic();
    }
    tell_of_life();
    tell("LEAVE\n");
    if (!says("DETACHED", rest, sizeof rest)) {
        if (feof(orders) || ferror(orders))
            return false;
        if (strncmp(rest, "REFUSED ", 8) != 0)
            die("an unexpected answer", rest);
        if (options.expected && !strstr(rest, options.expected))
            die("refused for another reason", rest);
        if (options.tolerated && strstr(rest, options.tolerated))
            tolerated++;
        else if (!(options.allowed && strstr(rest, options.allowed)) && !options.expected &&
                 options.times && !strstr(rest, "AGAIN") && !strstr(rest, "no other rank") &&
                 !strstr(rest, "MPI_Finalize"))
            die("refused", rest);
        refusals++;
        return true;
    }
    if (options.expected)
        die("the rank has left, and should not have", "");
    check_detached();
    if (options.memory)
        give_up_memory();
    resident_late = resident_kib();
    if (*incarnation == 19)
        resident_early = resident_late;
    if (*incarnation == 2)
        away_the_third_time();
    if (group)
        await_group();
    sleep_up_to(options.away_ms);
    if (options.stale) {
        snprintf(order, sizeof order, "BIND %u\n", *incarnation);
        tell(order);
        if (!says("REFUSED", rest, sizeof rest))
            die("a stale token was accepted", rest);
    }
    snprintf(order, sizeof order, "BIND %u\n", ++*incarnation);
    tell(order);
    if (!says("BOUND", rest, sizeof rest)) {
        if (feof(orders) || ferror(orders))
            return false;
        die("the rank does not come back", rest);
    }
    return true;
}

/** is_left - has the rank less behind it than it has to have? */
static bool is_left(unsigned incarnation)
{
    if (options.expected)
        return refusals < options.times;
    return (int)incarnation < options.times || (options.tolerated && tolerated == 0) ||
           (group && __atomic_load_n(&group->together, __ATOMIC_SEQ_CST) < options.times);
}

static void hold(void)
{
    unsigned incarnation = 0;
    int rounds = 0;
    double longest = 0, sum = 0;

    if (options.group)
        open_group();
    while (options.begin && access(options.begin, F_OK) != 0)
        sleep_up_to(10);
    if (options.userfault)
        take_userfault();

    while (options.times == 0 || is_left(incarnation)) {
        const unsigned before = incarnation;
        sleep_up_to(options.between_ms);
        const double since = seconds();
        if (!go_round(&incarnation))
            break;
        const double took = seconds() - since;
        rounds++;
        if (incarnation > before) {
            sum += took;
            longest = took > longest ? took : longest;
        }
    }
    fprintf(stderr,
            "holder: rank %d left %u times, refused %d times; %.1f ms each, longest %.1f ms; "
            "detached, %ld KiB the 20th time, %ld the last\n",
            rank, incarnation, refusals, incarnation ? 1e3 * sum / incarnation : 0, 1e3 * longest,
            resident_early, resident_late);
    if (options.tolerated && tolerated == 0)
        die("the rank was never refused", options.tolerated);
    if (is_left(incarnation))
        die("the program has ended too early", "");
    if (options.until) {
        char suffix[16];
        snprintf(suffix, sizeof suffix, ".%d", rank);
        mark(suffix);
    }
}

static bool is_told(void)
{
    char list[256], *rest = NULL;
    snprintf(list, sizeof list, "%s", options.ranks);
    for (char *one = strtok_r(list, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
        if (atoi(one) == rank)
            return true;
    return false;
}

/** kill_when_away - when another rank has left; it may be waited for then */
static void kill_when_away(void)
{
    char name[4096];
    name_file(name, sizeof name, ".away");
    while (access(name, F_OK) != 0)
        usleep(10000);
    kill(child, SIGKILL);
}

/** stop_now_and_then - until the rank ends, whose status is left to be waited for */
static void stop_now_and_then(void)
{
    siginfo_t ended = {0};
    for (int signal = SIGSTOP; ended.si_pid == 0; signal = signal == SIGSTOP ? SIGCONT : SIGSTOP) {
        for (int i = 0; i < (signal == SIGCONT ? 30 : 15) && ended.si_pid == 0; i++) {
            usleep(100000);
            waitid(P_PID, child, &ended, WEXITED | WNOHANG | WNOWAIT);
        }
        if (ended.si_pid == 0)
            kill(child, signal);
    }
}

int main(int argc, char **argv)
{
    for (int option; (option = getopt(argc, argv, "+r:n:w:a:b:u:e:t:l:x:k:dogfmsc")) != -1;) {
        switch (option) {
        case 'r':
            options.ranks = optarg;
            break;
        case 'n':
            options.times = atoi(optarg);
            break;
        case 'w':
            options.between_ms = atoi(optarg);
            break;
        case 'a':
            options.away_ms = atoi(optarg);
            break;
        case 'b':
            options.begin = optarg;
            break;
        case 'u':
            options.until = optarg;
            break;
        case 'e':
            options.expected = optarg;
            break;
        case 't':
            options.tolerated = optarg;
            break;
        case 'l':
            options.allowed = optarg;
            break;
        case 'x':
            options.stopped = atoi(optarg);
            break;
        case 'k':
            options.killed = atoi(optarg);
            break;
        case 'd':
            options.dies = true;
            break;
        case 'o':
            options.parted = true;
            break;
        case 'g':
            options.group = true;
            break;
        case 'f':
            options.userfault = true;
            break;
        case 'm':
            options.memory = true;
            break;
        case 's':
            options.stale = true;
            break;
        case 'c':
            options.census = true;
            break;
        default:
            die("usage", "holder [-r LIST] [-n TIMES] ... -- PROGRAM ...");
        }
    }
    const char *text = getenv("PMI_RANK");
    int ends[2];
    rank = text ? atoi(text) : 0;
    srand((unsigned)time(NULL) ^ (unsigned)getpid());
    if (!argv[optind] || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        die("cannot begin", strerror(errno));
    child = fork();
    if (child == 0) {
        char number[16];
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        snprintf(number, sizeof number, "%d", ends[1]);
        setenv("MPIR_CVAR_CH4_ZC_DETACH_FD", number, 1);
        execvp(argv[optind], argv + optind);
        _exit(127);
    }
    close(ends[1]);
    signal(SIGPIPE, SIG_IGN); /* the rank may end before an order */
    signal(SIGUSR1, SIG_IGN); /* Hydra tells all whom it has started of a death that ends no job */
    orders = fdopen(ends[0], "r+");
    if (is_told())
        hold();
    if (rank == options.stopped)
        stop_now_and_then();
    if (rank == options.killed)
        kill_when_away();
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
