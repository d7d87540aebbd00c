/* SPDX-License-Identifier: BSD-3-Clause */
/* A machine with two nodes, as the library sees it; node_program.cpp has real ones. */
#include "nodes.h"

#include "support.h"
#include "vma.h"

#include <cerrno>
#include <map>
#include <sys/syscall.h>
#include <unistd.h>

using namespace zc;
using namespace zc::test;

namespace {

/* Where pages are: what was populated on a node, and what the test says. */
std::map<addr_t, int> place_of;
int questions;
int error;

int told_nodes(std::size_t count, void **pages, int *nodes)
{
    questions++;
    for (std::size_t i = 0; i < count; i++) {
        auto found = place_of.find(as_address(pages[i]));
        nodes[i] = found == place_of.end() ? -ENOENT : found->second;
    }
    return error;
}

void put(range r, int node)
{
    for (addr_t page = r.begin; page < r.end; page += kPage)
        place_of[page] = node;
}

int populate_here(range r)
{
    put(r, 0);
    return kernel_calls_real.populate(r);
}

int populate_there(range r, int node)
{
    put(r, node);
    return kernel_calls_real.populate(r);
}

int move_with_place(addr_t from, addr_t to, std::size_t len)
{
    for (std::size_t at = 0; at < len; at += kPage) {
        auto node = place_of.extract(from + at);
        place_of.erase(to + at);
        if (!node.empty())
            place_of[to + at] = node.mapped();
    }
    return kernel_calls_real.move(from, to, len);
}

class NodesTest : public fixture {
  protected:
    NodesTest()
    {
        place_of.clear();
        questions = error = 0;
        kernel.memory_nodes = [] { return std::size_t{2}; };
        kernel.nodes_of = told_nodes;
        kernel.populate = populate_here;
        kernel.populate_on = populate_there;
        kernel.move = move_with_place;
    }

    /** How many of the pages are on @node. */
    static std::size_t pages_on(int node, range r)
    {
        std::size_t count = 0;
        for (addr_t page = r.begin; page < r.end; page += kPage) {
            auto found = place_of.find(page);
            count += found != place_of.end() && found->second == node;
        }
        return count;
    }
};

} // namespace

TEST_F(NodesTest, ARangeIsOnOneNodeOrOnNone)
{
    nodes n;
    range r = range_at(64 * MiB, MiB);
    EXPECT_EQ(n.node_of(r), kAnyNode) << "never touched";
    put(r, 1);
    EXPECT_EQ(n.node_of(r), 1);
    EXPECT_EQ(n.node_of(range_at(r.begin + 16, 2 * kPage)), 1) << "a single whole page";
    EXPECT_EQ(n.node_of(range_at(r.begin + 16, kPage)), kAnyNode) << "no whole page";
    put(range_at(r.end - kPage, kPage), 0);
    EXPECT_EQ(n.node_of(r), kAnyNode);
    error = -EPERM;
    EXPECT_EQ(n.node_of(range_at(r.begin, kPage)), kAnyNode);
}

TEST_F(NodesTest, RangesMatchPageByPage)
{
    nodes n;
    range a = range_at(64 * MiB, MiB), b = range_at(96 * MiB, MiB);
    put(a, 1);
    put(b, 1);
    EXPECT_TRUE(n.match(a, b.begin));
    put(range_at(a.begin, MiB / 16), 0);
    EXPECT_FALSE(n.match(a, b.begin));
    put(range_at(b.begin, MiB / 16), 0);
    EXPECT_TRUE(n.match(a, b.begin));
    EXPECT_TRUE(n.match(range_at(128 * MiB, MiB), b.begin)) << "never touched";
    error = -EPERM;
    EXPECT_FALSE(n.match(a, b.begin)) << "without the right to ask it is not known";
}

TEST_F(NodesTest, ALandingBufferIsWhereTheUsersIs)
{
    buffer near(MiB), far(MiB);
    for (buffer *b : {&near, &far}) {
        std::memset(b->data(), 9, MiB);
        put(b->all(), b == &far);
    }
    for (unsigned i = 0; i < 10; i++) {
        EXPECT_EQ(deliver(far.data() + 16, 64 * KiB, i).reason, ZC_REASON_NONE);
        EXPECT_EQ(deliver(near.data() + 16, 64 * KiB, i).reason, ZC_REASON_NONE);
    }
    EXPECT_EQ(pages_on(1, far.all()), MiB / kPage);
    EXPECT_EQ(pages_on(0, near.all()), MiB / kPage);
    /* Landing buffer and spare each, on either node, and no more. */
    EXPECT_LE(stats().pages_populated, 4 * (64 * KiB / kPage + 1));
}

TEST_F(NodesTest, MispredictedBuffersStayWhereTheyAre)
{
    buffer near(MiB), far(MiB);
    std::memset(near.data(), 9, MiB);
    std::memset(far.data(), 9, MiB);
    put(near.all(), 0);
    put(far.all(), 1);
    zc_landing_t *l = acquire(64 * KiB, near.data() + 16);
    fill(static_cast<char *>(zc_landing_data(l)), 64 * KiB, 3);
    zc_delivery_t how = deliver_landing(l, far.data() + 16, 64 * KiB);
    EXPECT_EQ(how.reason, ZC_REASON_NODE) << zc_reason_name(how.reason);
    EXPECT_EQ(first_wrong(far.data() + 16, 64 * KiB, 3), 64 * KiB);
    EXPECT_EQ(pages_on(1, far.all()), MiB / kPage);
    EXPECT_EQ(stats().copied_by_reason[ZC_REASON_NODE], 1u);
}

TEST_F(NodesTest, ABufferOnSeveralNodesIsCopied)
{
    buffer b(MiB);
    std::memset(b.data(), 9, MiB);
    put(b.all(), 0);
    put(range_at(b.at() + MiB / 2, MiB / 2), 1);
    for (unsigned i = 0; i < 4; i++)
        EXPECT_EQ(deliver(b.data(), MiB, i).reason, ZC_REASON_NODE);
    EXPECT_EQ(pages_on(1, b.all()), MiB / 2 / kPage);
}

TEST_F(NodesTest, TheModuleIsAskedForNoMore)
{
    fake_device fake;
    params_.means = 1u << ZC_MEANS_COPY | 1u << ZC_MEANS_KMOD;
    buffer b(MiB);
    std::memset(b.data(), 9, MiB);
    put(b.all(), 0);
    zc_landing_t *l = acquire(64 * KiB, b.data() + 16);
    put(b.all(), 1);
    EXPECT_EQ(deliver_landing(l, b.data() + 16, 64 * KiB).reason, ZC_REASON_NODE);
    EXPECT_TRUE(fake.calls().empty());
}

TEST_F(NodesTest, OneNodeCostsNothing)
{
    kernel.memory_nodes = [] { return std::size_t{1}; };
    buffer b(MiB);
    std::memset(b.data(), 9, MiB);
    EXPECT_EQ(deliver(b.data() + 16, 64 * KiB, 1).reason, ZC_REASON_NONE);
    EXPECT_EQ(questions, 0);
}

TEST(KernelNodesTest, ThePolicyOfTheThreadIsRestored)
{
    EXPECT_GE(kernel_calls_real.memory_nodes(), 1u);
    buffer b(4 * kPage);
    ASSERT_EQ(kernel_calls_real.populate_on(b.all(), 0), 0);
    EXPECT_EQ(resident_bytes(b.all()), b.size());
    int mode = -1;
    unsigned long mask[16] = {};
    if (syscall(SYS_get_mempolicy, &mode, mask, 1025, nullptr, 0) == 0) {
        EXPECT_EQ(mode, 0);
        EXPECT_EQ(mask[0], 0u);
    }
    void *page = b.data();
    int node = -1;
    if (kernel_calls_real.nodes_of(1, &page, &node) == 0) {
        EXPECT_EQ(node, 0);
    }
}
