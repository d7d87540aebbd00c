/* SPDX-License-Identifier: BSD-3-Clause */
#include "graph.h"

#include <algorithm>

#include "hash.h"

namespace zc::predict {

/* A program has far fewer samples than contexts they occur in. */
graph::graph(size_t max_bytes) : samples_(max_bytes / 4), nodes_(max_bytes - max_bytes / 4) {}

uint64_t graph::node_hash(const context &last)
{
    uint64_t hash = 3;
    for (uint64_t sample : last)
        hash = mix(hash, sample);
    return hash;
}

void graph::shift(context &last, uint64_t sample)
{
    std::shift_left(last.begin(), last.end(), 1);
    last.back() = sample;
}

void graph::count(node &here, uint64_t sample)
{
    const auto now = static_cast<uint32_t>(++here.events);
    edge *weakest = here.edges.data();
    for (edge &e : here.edges) {
        if (e.count != 0 && e.sample == sample) {
            /* Halving all keeps proportions when a counter would wrap. */
            if (++e.count == UINT32_MAX) {
                for (edge &other : here.edges)
                    other.count = (other.count + 1) / 2;
            }
            e.time = now;
            return;
        }
        if (e.count < weakest->count ||
            (e.count == weakest->count && now - e.time > now - weakest->time))
            weakest = &e;
    }
    *weakest = {sample, 1, now};
}

const graph::edge *graph::likeliest(const node &here)
{
    const auto now = static_cast<uint32_t>(here.events);
    const edge *best = here.edges.data();
    for (const edge &e : here.edges) {
        if (e.count > best->count || (e.count == best->count && now - e.time < now - best->time))
            best = &e;
    }
    return best->count != 0 ? best : nullptr;
}

void graph::learn(const zcp_receive_t &receive) noexcept
{
    const uint64_t sample = sample_hash(receive);
    *samples_.insert(sample, sample) = receive;
    if (seen_ == kOrder) {
        const uint64_t hash = node_hash(last_);
        count(*nodes_.insert(hash, hash), sample);
    } else {
        seen_++;
    }
    shift(last_, sample);
}

uint32_t graph::next(std::span<zcp_receive_t> out) const noexcept
{
    if (seen_ < kOrder)
        return 0;
    context last = last_;
    uint32_t nr = 0;
    for (zcp_receive_t &receive : out) {
        const uint64_t hash = node_hash(last);
        const node *here = nodes_.find(hash, hash);
        const edge *way = here ? likeliest(*here) : nullptr;
        const zcp_receive_t *sample = way ? samples_.find(way->sample, way->sample) : nullptr;
        if (!sample)
            break;
        receive = *sample;
        shift(last, way->sample);
        nr++;
    }
    return nr;
}

size_t graph::bytes() const noexcept
{
    return sizeof(*this) + samples_.bytes() + nodes_.bytes();
}

} // namespace zc::predict
