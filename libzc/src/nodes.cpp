/* SPDX-License-Identifier: BSD-3-Clause */
#include "nodes.h"

#include "kernel.h"

#include <array>

namespace zc {

namespace {

/* Pages looked at; a part of the range smaller than one in so many may go unseen. */
constexpr std::size_t kSamples = 32;

struct sample {
    std::array<void *, kSamples> pages;
    std::array<int, kSamples> nodes; /* negative: no page there */
    std::size_t count;
};

/** Spread evenly, both ends among them. False if the kernel does not tell. */
bool look(range r, sample &out)
{
    std::size_t pages = r.size() / kPage;
    out.count = std::min(pages, kSamples);
    for (std::size_t i = 0; i < out.count; i++) {
        std::size_t page = out.count == 1 ? 0 : i * (pages - 1) / (out.count - 1);
        out.pages[i] = as_pointer(r.begin + page * kPage);
    }
    return kernel.nodes_of(out.count, out.pages.data(), out.nodes.data()) == 0;
}

} // namespace

nodes::nodes() : several_(kernel.memory_nodes() > 1) {}

int nodes::node_of(range r) const
{
    sample s;
    range pages = whole_units(r, kPage);
    if (!several_ || pages.empty() || !look(pages, s))
        return kAnyNode;
    int node = kAnyNode;
    for (std::size_t i = 0; i < s.count; i++) {
        if (s.nodes[i] < 0)
            continue;
        if (node != kAnyNode && node != s.nodes[i])
            return kAnyNode;
        node = s.nodes[i];
    }
    return node;
}

bool nodes::match(range user, addr_t landing) const
{
    sample theirs, ours;
    if (!several_)
        return true;
    if (!look(user, theirs) || !look(range_at(landing, user.size()), ours))
        return false;
    for (std::size_t i = 0; i < theirs.count; i++)
        if (theirs.nodes[i] >= 0 && theirs.nodes[i] != ours.nodes[i])
            return false;
    return true;
}

} // namespace zc
