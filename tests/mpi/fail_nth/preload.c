/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * To be preloaded into the processes of an MPI job: one call of one function fails, as it would
 * without memory, and everything is as ever otherwise. (The kernel's fail-nth, for a library.)
 *
 * Only calls that libmpi, libzc, libzcpredict and libzclane make themselves are counted and fail:
 * what UCX does without memory is UCX's. Where a call comes from is its *site*: the innermost
 * frames of its stack within those libraries. Calls are told apart by function and site, because
 * their order changes from run to run, but each site is reached each time.
 *
 *   FAIL_NTH_OUT     this process writes FAIL_NTH_OUT.WHO at its end, one line for each site:
 *                        site FUNCTION SITE CALLS FRAME...
 *                    and when a call fails:
 *                        failed FUNCTION SITE NUMBER FRAME...
 *                    where FRAME is LIBRARY+OFFSET of a return address. Unset: nothing happens
 *   FAIL_NTH_WORLD   before the rank in WHO; for processes that are not of the first world
 *   FAIL_NTH_WHO     whose call fails; of no other process
 *   FAIL_NTH_CALL    the function
 *   FAIL_NTH_SITE    the site; unset: any
 *   FAIL_NTH_N       which of those calls, from 1
 *   FAIL_NTH_TIMES   how many in a row, from that one on; 0: all. Default 1
 *   FAIL_NTH_NEXT    how many of the function's calls fail after those, wherever they come from:
 *                    for what is tried another way when it has failed. Default 0
 *   FAIL_NTH_STATUS  what UCX says: no-memory (default) or io-error
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

/* In libmpi, files are also the process manager's and hwloc's: not ours. */
#define FUNCTIONS(X)                                                                               \
    X(malloc, ALL)                                                                                 \
    X(calloc, ALL)                                                                                 \
    X(realloc, ALL)                                                                                \
    X(posix_memalign, ALL)                                                                         \
    X(aligned_alloc, ALL)                                                                          \
    X(strdup, ALL)                                                                                 \
    X(strndup, ALL)                                                                                \
    X(operator_new, CXX)                                                                           \
    X(mmap, ALL)                                                                                   \
    X(munmap, ZC)                                                                                  \
    X(mprotect, ALL)                                                                               \
    X(madvise, ALL)                                                                                \
    X(mincore, ALL)                                                                                \
    X(ioctl, ZC)                                                                                   \
    X(open, ZC)                                                                                    \
    X(read, ZC)                                                                                    \
    X(pread, ZC)                                                                                   \
    X(fopen, ALL)                                                                                  \
    X(open_memstream, ALL)                                                                         \
    X(syscall, ALL)                                                                                \
    X(getrandom, ALL)                                                                              \
    X(timerfd_create, ALL)                                                                         \
    X(sched_getaffinity, ALL)                                                                      \
    X(pthread_create, ALL)                                                                         \
    X(ucp_config_read, ALL)                                                                        \
    X(ucp_config_modify, ALL)                                                                      \
    X(ucp_init_version, ALL)                                                                       \
    X(ucp_worker_create, ALL)                                                                      \
    X(ucp_worker_query, ALL)                                                                       \
    X(ucp_worker_get_address, ALL)                                                                 \
    X(ucp_worker_get_efd, ALL)                                                                     \
    X(ucp_worker_arm, ALL)                                                                         \
    X(ucp_worker_set_am_recv_handler, ALL)                                                         \
    X(ucp_worker_flush_nbx, ALL)                                                                   \
    X(ucp_ep_create, ALL)                                                                          \
    X(ucp_ep_flush_nbx, ALL)                                                                       \
    X(ucp_ep_close_nbx, ALL)                                                                       \
    X(ucp_ep_rkey_unpack, ALL)                                                                     \
    X(ucp_dt_create_generic, ALL)                                                                  \
    X(ucp_mem_map, ALL)                                                                            \
    X(ucp_mem_unmap, ALL)                                                                          \
    X(ucp_request_check_status, ALL)                                                               \
    X(ucp_rkey_pack, ALL)                                                                          \
    X(ucp_am_send_nbx, ALL)                                                                        \
    X(ucp_am_recv_data_nbx, ALL)                                                                   \
    X(ucp_put_nbx, ALL)                                                                            \
    X(ucp_get_nbx, ALL)                                                                            \
    X(ucp_atomic_op_nbx, ALL)

enum function {
#define X(name, callers) F_##name,
    FUNCTIONS(X)
#undef X
        NR_FUNCTIONS
};

enum {
    LIBMPI = 1,
    LIBZC = 2,
    LIBZCPREDICT = 4,
    LIBSTDCXX = 8,
    LIBZCLANE = 16,
    ZC = LIBZC | LIBZCPREDICT | LIBZCLANE,
    CXX = ZC | LIBSTDCXX,
    ALL = LIBMPI | ZC,
};

static const struct {
    const char *name;
    int callers;
} functions[] = {
#define X(name, callers) {#name, callers},
    FUNCTIONS(X)
#undef X
};

/* ---- the libraries ---- */

static const struct {
    const char *name;
    int bit;
} known[] = {{"libmpi.so", LIBMPI},
             {"libzc.so", LIBZC},
             {"libzcpredict.so", LIBZCPREDICT},
             {"libzclane.so", LIBZCLANE},
             {"libstdc++.so", LIBSTDCXX}};
enum { NR_KNOWN = sizeof known / sizeof known[0], MAX_PIECES = 16 };

/* Their code. */
static struct piece {
    int library; /* of `known` */
    uintptr_t base, begin, end;
} pieces[MAX_PIECES];
static int nr_pieces;

static int find_library(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    for (int i = 0; i < NR_KNOWN; i++) {
        if (strncmp(name, known[i].name, strlen(known[i].name)) != 0)
            continue;
        for (int p = 0; p < info->dlpi_phnum; p++) {
            const ElfW(Phdr) *segment = &info->dlpi_phdr[p];
            if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) && nr_pieces < MAX_PIECES)
                pieces[nr_pieces++] =
                    (struct piece){i, info->dlpi_addr, info->dlpi_addr + segment->p_vaddr,
                                   info->dlpi_addr + segment->p_vaddr + segment->p_memsz};
        }
    }
    return 0;
}

static const struct piece *piece_of(const void *address)
{
    for (int i = 0; i < nr_pieces; i++)
        if ((uintptr_t)address >= pieces[i].begin && (uintptr_t)address < pieces[i].end)
            return &pieces[i];
    return NULL;
}

/* ---- sites ---- */

enum { FRAMES = 14, NAMING = 7, DEPTH = 48, MAX_SITES = 1 << 13 };

struct site {
    enum function function;
    uint64_t name; /* 0: free */
    unsigned long calls;
    int nr_frames;
    void *frames[FRAMES];
};

static struct site sites[MAX_SITES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool counting;
static __thread bool inside __attribute__((tls_model("initial-exec")));

static void look(enum function function, struct site *site)
{
    void *stack[DEPTH];
    int depth = backtrace(stack, DEPTH);

    memset(site, 0, sizeof *site);
    site->function = function;
    site->name = 0xcbf29ce484222325u + function; /* FNV-1a, word by word */
    for (int i = 0; i < depth && site->nr_frames < FRAMES; i++) {
        const struct piece *piece = piece_of(stack[i]);
        if (piece && known[piece->library].bit != LIBSTDCXX) {
            site->frames[site->nr_frames++] = stack[i];
            if (site->nr_frames > NAMING)
                continue;
            site->name ^= (uintptr_t)stack[i] - piece->base + (uintptr_t)piece->library;
            site->name *= 0x100000001b3u;
        }
    }
    site->name += site->name == 0;
}

/* The entry of @seen, made if there is none; NULL: no room. */
static struct site *entry_of(const struct site *seen)
{
    for (unsigned i = 0; i < MAX_SITES; i++) {
        struct site *site = &sites[(seen->name + i) % MAX_SITES];
        if (site->name == 0)
            *site = *seen;
        if (site->name == seen->name && site->function == seen->function)
            return site;
    }
    return NULL;
}

/* ---- what is asked for ---- */

static struct {
    char out[4096];
    bool here;
    int function;  /* -1: none */
    uint64_t site; /* 0: any */
    unsigned long first, times, next;
    unsigned long met, next_met;
    ucs_status_t status;
} wanted = {.function = -1};

static void write_site(const char *what, const struct site *site, unsigned long number)
{
    char line[1024];
    int at = snprintf(line, sizeof line, "%s %s %016llx %lu", what, functions[site->function].name,
                      (unsigned long long)site->name, number);
    for (int i = 0; i < site->nr_frames; i++) {
        const struct piece *piece = piece_of(site->frames[i]);
        at += snprintf(line + at, sizeof line - (size_t)at, " %s+%llx", known[piece->library].name,
                       (unsigned long long)((uintptr_t)site->frames[i] - piece->base));
    }
    line[at++] = '\n';
    int (*real_open)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    int fd = real_open(wanted.out, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, line, (size_t)at) != at)
        abort();
    close(fd);
}

static bool fails(enum function function, const void *caller)
{
    if (__builtin_expect(!counting || inside, 0))
        return false;
    const struct piece *piece = piece_of(caller);
    if (!piece || !(known[piece->library].bit & functions[function].callers) ||
        (wanted.function >= 0 && (int)function != wanted.function))
        return false;

    const int saved = errno;
    bool yes = false;
    struct site seen;
    inside = true;
    look(function, &seen);
    pthread_mutex_lock(&lock);
    if (wanted.function < 0) {
        struct site *site = entry_of(&seen);
        if (site)
            site->calls++;
    } else if (wanted.here && wanted.met >= wanted.first && wanted.times > 0 &&
               wanted.met - wanted.first + 1 >= wanted.times && wanted.next_met < wanted.next) {
        wanted.next_met++;
        yes = true;
        write_site("failed", &seen, wanted.next_met);
    } else if (wanted.here && (wanted.site == 0 || wanted.site == seen.name)) {
        wanted.met++;
        yes = wanted.met >= wanted.first &&
              (wanted.times == 0 || wanted.met - wanted.first < wanted.times);
        if (yes)
            write_site("failed", &seen, wanted.met);
    }
    pthread_mutex_unlock(&lock);
    inside = false;
    errno = saved;
    return yes;
}

static unsigned long number_of(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoul(text, NULL, 0) : otherwise;
}

static const char *text_of(const char *name)
{
    const char *text = getenv(name);
    return text ? text : "";
}

__attribute__((constructor)) static void begin(void)
{
    const char *out = getenv("FAIL_NTH_OUT"), *rank = getenv("PMI_RANK");
    char who[64];
    void *frame;

    dl_iterate_phdr(find_library, NULL);
    if (!out || !rank || nr_pieces == 0)
        return;
    snprintf(who, sizeof who, "%s%s", text_of("FAIL_NTH_WORLD"), rank);
    snprintf(wanted.out, sizeof wanted.out, "%s.%s", out, who);
    if (*text_of("FAIL_NTH_CALL")) {
        for (int f = 0; f < NR_FUNCTIONS; f++)
            if (!strcmp(functions[f].name, text_of("FAIL_NTH_CALL")))
                wanted.function = f;
        if (wanted.function < 0) {
            fprintf(stderr, "fail_nth: no such function: %s\n", text_of("FAIL_NTH_CALL"));
            _exit(2);
        }
    }
    wanted.here = !strcmp(text_of("FAIL_NTH_WHO"), who);
    wanted.site = strtoull(text_of("FAIL_NTH_SITE"), NULL, 16);
    wanted.first = number_of("FAIL_NTH_N", 1);
    wanted.times = number_of("FAIL_NTH_TIMES", 1);
    wanted.next = number_of("FAIL_NTH_NEXT", 0);
    wanted.status =
        !strcmp(text_of("FAIL_NTH_STATUS"), "io-error") ? UCS_ERR_IO_ERROR : UCS_ERR_NO_MEMORY;
    (void)backtrace(&frame, 1); /* it loads libgcc the first time */
    counting = true;
}

__attribute__((destructor)) static void end(void)
{
    counting = false;
    for (int i = 0; i < MAX_SITES; i++)
        if (sites[i].name)
            write_site("site", &sites[i], sites[i].calls);
}

/* ---- the functions ---- */

#define FAILS(name) fails(F_##name, __builtin_return_address(0))

#define REAL(name)                                                                                 \
    ({                                                                                             \
        static __typeof__(&name) real;                                                             \
        if (!real)                                                                                 \
            real = (__typeof__(real))dlsym(RTLD_NEXT, #name);                                      \
        real;                                                                                      \
    })

#define WITH_ERRNO(result, error) (errno = (error), (result))

/* glibc's own, since dlsym() may allocate. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    return FAILS(malloc) ? WITH_ERRNO(NULL, ENOMEM) : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return FAILS(calloc) ? WITH_ERRNO(NULL, ENOMEM) : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return FAILS(realloc) ? WITH_ERRNO(NULL, ENOMEM) : __libc_realloc(old, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    if (FAILS(posix_memalign))
        return ENOMEM;
    void *new = __libc_memalign(alignment, bytes);
    if (new)
        *out = new;
    return new ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return FAILS(aligned_alloc) ? WITH_ERRNO(NULL, ENOMEM) : __libc_memalign(alignment, bytes);
}

#undef strdup
#undef strndup
char *strdup(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *new = FAILS(strdup) ? NULL : __libc_malloc(bytes);
    return new ? memcpy(new, text, bytes) : WITH_ERRNO(NULL, ENOMEM);
}

char *strndup(const char *text, size_t most)
{
    const size_t length = strnlen(text, most);
    char *new = FAILS(strndup) ? NULL : __libc_malloc(length + 1);
    if (!new)
        return WITH_ERRNO(NULL, ENOMEM);
    new[length] = 0;
    return memcpy(new, text, length);
}

/* C++'s operators: of one object, of arrays; with an alignment; without an exception. */
void *_Znwm(size_t bytes);
void *_Znam(size_t bytes);
void *_ZnwmSt11align_val_t(size_t bytes, size_t alignment);
void *_ZnamSt11align_val_t(size_t bytes, size_t alignment);
void *_ZnwmRKSt9nothrow_t(size_t bytes, const void *tag);
void *_ZnamRKSt9nothrow_t(size_t bytes, const void *tag);

static void *checked_new(void *new)
{
    if (!new)
        ((void (*)(void))dlsym(RTLD_DEFAULT, "_ZSt17__throw_bad_allocv"))();
    return new;
}

void *_Znwm(size_t bytes)
{
    return checked_new(FAILS(operator_new) ? NULL : __libc_malloc(bytes ? bytes : 1));
}

void *_Znam(size_t bytes)
{
    return checked_new(FAILS(operator_new) ? NULL : __libc_malloc(bytes ? bytes : 1));
}

void *_ZnwmSt11align_val_t(size_t bytes, size_t alignment)
{
    return checked_new(FAILS(operator_new) ? NULL : __libc_memalign(alignment, bytes));
}

void *_ZnamSt11align_val_t(size_t bytes, size_t alignment)
{
    return checked_new(FAILS(operator_new) ? NULL : __libc_memalign(alignment, bytes));
}

void *_ZnwmRKSt9nothrow_t(size_t bytes, const void *tag)
{
    (void)tag;
    return FAILS(operator_new) ? NULL : __libc_malloc(bytes ? bytes : 1);
}

void *_ZnamRKSt9nothrow_t(size_t bytes, const void *tag)
{
    (void)tag;
    return FAILS(operator_new) ? NULL : __libc_malloc(bytes ? bytes : 1);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return FAILS(mmap) ? WITH_ERRNO(MAP_FAILED, ENOMEM)
                       : REAL(mmap)(at, bytes, protection, flags, fd, offset);
}

int munmap(void *at, size_t bytes)
{
    return FAILS(munmap) ? WITH_ERRNO(-1, ENOMEM) : REAL(munmap)(at, bytes);
}

int mprotect(void *at, size_t bytes, int protection)
{
    return FAILS(mprotect) ? WITH_ERRNO(-1, ENOMEM) : REAL(mprotect)(at, bytes, protection);
}

int madvise(void *at, size_t bytes, int advice)
{
    return FAILS(madvise) ? WITH_ERRNO(-1, ENOMEM) : REAL(madvise)(at, bytes, advice);
}

int mincore(void *at, size_t bytes, unsigned char *pages)
{
    return FAILS(mincore) ? WITH_ERRNO(-1, ENOMEM) : REAL(mincore)(at, bytes, pages);
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return FAILS(ioctl) ? WITH_ERRNO(-1, ENOMEM) : REAL(ioctl)(fd, request, argument);
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return FAILS(open) ? WITH_ERRNO(-1, ENFILE) : REAL(open)(path, flags, mode);
}

ssize_t read(int fd, void *buffer, size_t bytes)
{
    return FAILS(read) ? WITH_ERRNO(-1, ENOMEM) : REAL(read)(fd, buffer, bytes);
}

ssize_t pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    return FAILS(pread) ? WITH_ERRNO(-1, ENOMEM) : REAL(pread)(fd, buffer, bytes, offset);
}

FILE *fopen(const char *path, const char *mode)
{
    return FAILS(fopen) ? WITH_ERRNO(NULL, ENFILE) : REAL(fopen)(path, mode);
}

FILE *open_memstream(char **text, size_t *bytes)
{
    return FAILS(open_memstream) ? WITH_ERRNO(NULL, ENOMEM) : REAL(open_memstream)(text, bytes);
}

long syscall(long number, ...)
{
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    /* A futex is woken without memory: to fail that is to lose a wake-up, which Linux does not. */
    return number != SYS_futex && FAILS(syscall)
               ? WITH_ERRNO(-1, ENOMEM)
               : REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

ssize_t getrandom(void *buffer, size_t bytes, unsigned flags)
{
    return FAILS(getrandom) ? WITH_ERRNO(-1, ENOSYS) : REAL(getrandom)(buffer, bytes, flags);
}

int timerfd_create(int clock, int flags)
{
    return FAILS(timerfd_create) ? WITH_ERRNO(-1, ENFILE) : REAL(timerfd_create)(clock, flags);
}

int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    return FAILS(sched_getaffinity) ? WITH_ERRNO(-1, EPERM)
                                    : REAL(sched_getaffinity)(pid, bytes, set);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    return FAILS(pthread_create) ? EAGAIN : REAL(pthread_create)(thread, attributes, run, argument);
}

/* ---- UCX's ---- */

#define STATUS(name, parameters, arguments)                                                        \
    ucs_status_t name parameters                                                                   \
    {                                                                                              \
        return FAILS(name) ? wanted.status : REAL(name) arguments;                                 \
    }

#define POINTER(name, parameters, arguments)                                                       \
    ucs_status_ptr_t name parameters                                                               \
    {                                                                                              \
        return FAILS(name) ? UCS_STATUS_PTR(wanted.status) : REAL(name) arguments;                 \
    }

STATUS(ucp_config_read, (const char *prefix, const char *file, ucp_config_t **config),
       (prefix, file, config))
STATUS(ucp_config_modify, (ucp_config_t * config, const char *name, const char *value),
       (config, name, value))
STATUS(ucp_init_version,
       (unsigned major, unsigned minor, const ucp_params_t *params, const ucp_config_t *config,
        ucp_context_h *context),
       (major, minor, params, config, context))
STATUS(ucp_worker_create,
       (ucp_context_h context, const ucp_worker_params_t *params, ucp_worker_h *worker),
       (context, params, worker))
STATUS(ucp_worker_query, (ucp_worker_h worker, ucp_worker_attr_t *attributes), (worker, attributes))
STATUS(ucp_worker_get_address, (ucp_worker_h worker, ucp_address_t **address, size_t *length),
       (worker, address, length))
STATUS(ucp_worker_get_efd, (ucp_worker_h worker, int *fd), (worker, fd))
STATUS(ucp_worker_arm, (ucp_worker_h worker), (worker))
STATUS(ucp_worker_set_am_recv_handler, (ucp_worker_h worker, const ucp_am_handler_param_t *params),
       (worker, params))
STATUS(ucp_ep_create, (ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep),
       (worker, params, ep))
STATUS(ucp_ep_rkey_unpack, (ucp_ep_h ep, const void *packed, ucp_rkey_h *key), (ep, packed, key))
STATUS(ucp_mem_map, (ucp_context_h context, const ucp_mem_map_params_t *params, ucp_mem_h *memory),
       (context, params, memory))
STATUS(ucp_dt_create_generic,
       (const ucp_generic_dt_ops_t *operations, void *context, ucp_datatype_t *type),
       (operations, context, type))

/* The memory is UCX's no more, whatever it says. */
ucs_status_t ucp_mem_unmap(ucp_context_h context, ucp_mem_h memory)
{
    const ucs_status_t status = REAL(ucp_mem_unmap)(context, memory);
    return FAILS(ucp_mem_unmap) ? wanted.status : status;
}

/* What has been begun ends with an error. (While it has not ended, UCX uses its memory.) */
ucs_status_t ucp_request_check_status(void *request)
{
    const ucs_status_t status = REAL(ucp_request_check_status)(request);
    return status != UCS_INPROGRESS && FAILS(ucp_request_check_status) ? wanted.status : status;
}

STATUS(ucp_rkey_pack, (ucp_context_h context, ucp_mem_h memory, void **packed, size_t *bytes),
       (context, memory, packed, bytes))
POINTER(ucp_worker_flush_nbx, (ucp_worker_h worker, const ucp_request_param_t *param),
        (worker, param))
POINTER(ucp_ep_flush_nbx, (ucp_ep_h ep, const ucp_request_param_t *param), (ep, param))
POINTER(ucp_ep_close_nbx, (ucp_ep_h ep, const ucp_request_param_t *param), (ep, param))
POINTER(ucp_am_send_nbx,
        (ucp_ep_h ep, unsigned id, const void *header, size_t header_length, const void *buffer,
         size_t count, const ucp_request_param_t *param),
        (ep, id, header, header_length, buffer, count, param))
POINTER(ucp_am_recv_data_nbx,
        (ucp_worker_h worker, void *descriptor, void *buffer, size_t count,
         const ucp_request_param_t *param),
        (worker, descriptor, buffer, count, param))
POINTER(ucp_put_nbx,
        (ucp_ep_h ep, const void *buffer, size_t count, uint64_t remote, ucp_rkey_h key,
         const ucp_request_param_t *param),
        (ep, buffer, count, remote, key, param))
POINTER(ucp_get_nbx,
        (ucp_ep_h ep, void *buffer, size_t count, uint64_t remote, ucp_rkey_h key,
         const ucp_request_param_t *param),
        (ep, buffer, count, remote, key, param))
POINTER(ucp_atomic_op_nbx,
        (ucp_ep_h ep, ucp_atomic_op_t operation, const void *buffer, size_t count, uint64_t remote,
         ucp_rkey_h key, const ucp_request_param_t *param),
        (ep, operation, buffer, count, remote, key, param))
