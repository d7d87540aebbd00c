/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deliveries on a machine with two NUMA nodes, by either means that exchanges pages:
 * where the pages of a buffer are, the kernel says, before and after. Prints TAP, and
 * exits with 4 where there is one node only. Linked statically, so that a guest, which
 * has two nodes and /dev/zc, needs nothing else: tests/run kmod runs it there.
 *
 * "--unaware" takes the library's knowledge away, to see these tests fail: neither
 * mremap(2) nor the module asks for nodes.
 */
#include "kernel.h"
#include "zc/zc.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

using namespace zc;

namespace {

constexpr int kSkipped = 4;
constexpr std::size_t kBytes = std::size_t{4} << 20;
constexpr int kMessages = 10;

zc_means_t means;
int tests, failures;

void result(bool good, const char *what)
{
    std::printf("%sok %d - %s: %s\n", good ? "" : "not ", ++tests, zc_means_name(means), what);
    std::fflush(stdout);
    failures += !good;
}

/** The calling thread's pages come from @node; if it is negative, from where it runs. That
 *  is not quite the default: there the kernel would move pages to the node that uses them. */
void allocate_on(int node)
{
    constexpr int kBind = 2, kLocal = 4;
    unsigned long mask = node < 0 ? 0 : 1ul << node;
    if (syscall(SYS_set_mempolicy, node < 0 ? kLocal : kBind, node < 0 ? nullptr : &mask,
                node < 0 ? 0 : 8 * sizeof(mask)) != 0) {
        std::printf("Bail out! set_mempolicy\n");
        std::exit(1);
    }
}

int policy()
{
    int mode = -1;
    (void)syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0);
    return mode;
}

/** The calling thread runs on a processor of @node from now on, if that has any. */
void run_on(int node)
{
    std::array<char, 64> path;
    std::snprintf(path.data(), path.size(), "/sys/devices/system/node/node%d/cpulist", node);
    std::FILE *list = std::fopen(path.data(), "r");
    unsigned processor = 0;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (list && std::fscanf(list, "%u", &processor) == 1) {
        CPU_SET(processor, &set);
        (void)sched_setaffinity(0, sizeof(set), &set);
    }
    if (list)
        std::fclose(list);
}

char *new_buffer()
{
    void *p = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        std::printf("Bail out! mmap\n");
        std::exit(1);
    }
    (void)madvise(p, kBytes, MADV_NOHUGEPAGE);
    return static_cast<char *>(p);
}

/** As a thread on @node would touch it first. */
void place(char *at, std::size_t bytes, int node)
{
    allocate_on(node);
    std::memset(at, 9, bytes);
    allocate_on(-1);
}

/** How many of the pages are on @node. */
std::size_t pages_on(int node, char *at, std::size_t bytes)
{
    std::size_t count = bytes / kPage, there = 0;
    std::vector<void *> pages(count);
    std::vector<int> nodes(count);
    for (std::size_t i = 0; i < count; i++)
        pages[i] = at + i * kPage;
    if (kernel_calls_real.nodes_of(count, pages.data(), nodes.data()) != 0) {
        std::printf("Bail out! move_pages\n");
        std::exit(1);
    }
    for (int n : nodes)
        there += n == node;
    return there;
}

zc_t *create()
{
    zc_params_t params{};
    params.size = sizeof(params);
    params.means = 1u << ZC_MEANS_COPY | 1u << means;
    params.flags = ZC_FLAG_ALWAYS_REBIND;
    zc_t *zc = nullptr;
    if (zc_create(&params, &zc) != 0) {
        std::printf("Bail out! zc_create\n");
        std::exit(1);
    }
    return zc;
}

/** A message for @to, landed as if for @expected; true if it arrived. */
bool deliver(zc_t *zc, char *expected, char *to, char seed, zc_delivery_t &how)
{
    zc_landing_t *landing = nullptr;
    if (zc_landing_acquire(zc, kBytes, expected, &landing) != 0)
        return false;
    std::memset(zc_landing_data(landing), seed, kBytes);
    if (zc_deliver(zc, landing, to, kBytes, &how) != 0)
        return false;
    for (std::size_t i = 0; i < kBytes; i++)
        if (to[i] != seed)
            return false;
    return true;
}

void a_buffer_stays_where_it_was_touched_first()
{
    for (int node : {0, 1}) {
        zc_t *zc = create();
        char *b = new_buffer();
        place(b, kBytes, node);
        run_on(1 - node);
        std::size_t there = pages_on(node, b, kBytes);
        bool arrived = there == kBytes / kPage, moved = true;
        for (char i = 1; i <= kMessages; i++) {
            zc_delivery_t how{};
            arrived = deliver(zc, b, b, i, how) && arrived;
            moved = moved && how.bytes_rebound == kBytes && how.means == means;
            /* After two exchanges a buffer may have its first pages again. */
            there = std::min(there, pages_on(node, b, kBytes));
        }
        std::printf("# node %d: at least %zu of %zu pages after each of %d messages\n", node, there,
                    kBytes / kPage, kMessages);
        result(arrived, "messages arrive");
        result(moved, "they are exchanged");
        result(there == kBytes / kPage, "the buffer stays on its node");
        zc_destroy(zc);
        munmap(b, kBytes);
    }
}

void what_would_move_is_copied()
{
    zc_t *zc = create();
    char *near = new_buffer(), *far = new_buffer();
    place(near, kBytes, 0);
    place(far, kBytes / 2, 0);
    place(far + kBytes / 2, kBytes / 2, 1);
    zc_delivery_t how{};
    bool arrived = deliver(zc, near, far, 3, how);
    result(arrived && how.reason == ZC_REASON_NODE, "expected elsewhere: copied");
    arrived = deliver(zc, far, far, 4, how);
    result(arrived && how.reason == ZC_REASON_NODE, "a buffer on two nodes: copied");
    result(pages_on(0, far, kBytes / 2) == kBytes / 2 / kPage &&
               pages_on(1, far + kBytes / 2, kBytes / 2) == kBytes / 2 / kPage,
           "and stays where it is");
    zc_destroy(zc);
    munmap(near, kBytes);
    munmap(far, kBytes);
}

void the_policy_goes_with_nobody()
{
    zc_t *zc = create();
    char *b = new_buffer();
    place(b, kBytes, 1);
    int before = policy();
    zc_delivery_t how{};
    bool arrived = deliver(zc, b, b, 5, how) && how.bytes_rebound == kBytes;
    result(before >= 0 && policy() == before, "the thread's policy is what it was");
    /* What is touched anew comes from where its thread runs. */
    (void)madvise(b, kBytes, MADV_DONTNEED);
    place(b, kBytes, 0);
    result(arrived && pages_on(0, b, kBytes) == kBytes / kPage,
           "pages of the buffer may come from elsewhere later");
    zc_destroy(zc);
    munmap(b, kBytes);
}

} // namespace

int main(int argc, char **argv)
{
    if (kernel_calls_real.memory_nodes() < 2) {
        std::printf("1..0 # SKIP one NUMA node\n");
        return kSkipped;
    }
    if (argc > 1 && std::strcmp(argv[1], "--unaware") == 0)
        kernel.memory_nodes = [] { return std::size_t{1}; };
    allocate_on(-1);
    for (zc_means_t one : {ZC_MEANS_MREMAP, ZC_MEANS_KMOD}) {
        means = one;
        if (means == ZC_MEANS_KMOD && access("/dev/zc", R_OK | W_OK) != 0) {
            std::printf("ok %d - /dev/zc # SKIP cannot be opened here\n", ++tests);
            continue;
        }
        a_buffer_stays_where_it_was_touched_first();
        what_would_move_is_copied();
        the_policy_goes_with_nobody();
    }
    std::printf("1..%d\n", tests);
    return failures > 0;
}
