/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow.h"

#include <algorithm>
#include <bit>

#include "memory.h"

namespace zc::groups {

void add_up_equal_pairs(std::pmr::vector<flow> &flows)
{
    std::sort(flows.begin(), flows.end(), [](const flow &x, const flow &y) {
        return x.src != y.src   ? x.src < y.src
               : x.dst != y.dst ? x.dst < y.dst
                                : weight(x) > weight(y);
    });
    size_t kept = 0;
    for (const flow &f : flows) {
        if (kept > 0 && flows[kept - 1].src == f.src && flows[kept - 1].dst == f.dst) {
            flows[kept - 1].bytes += f.bytes;
            flows[kept - 1].messages += f.messages;
        } else {
            flows[kept++] = f;
        }
    }
    flows.resize(kept, flow{});
}

static size_t index_size(size_t capacity)
{
    return std::bit_ceil(capacity + capacity / 2 + 2);
}

flow_table::flow_table(size_t capacity, std::pmr::memory_resource *memory)
    : flows_(reserved<flow>(capacity, memory)), slots_(reserved<uint32_t>(capacity, memory)),
      index_(index_size(capacity), 0, memory)
{
}

size_t flow_table::bytes_needed(size_t capacity)
{
    return capacity * (sizeof(flow) + sizeof(uint32_t)) + index_size(capacity) * sizeof(uint32_t);
}

/** Where the pair is, or would go. There is always a free slot. */
size_t flow_table::slot_of(uint32_t src, uint32_t dst) const
{
    uint64_t h = (uint64_t{src} << 32 | dst) * 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio */
    h ^= h >> 32;
    const size_t mask = index_.size() - 1;
    size_t slot = (h * 0xd6e8feb86659fd93u >> 20) & mask;
    while (index_[slot] != 0) {
        const flow &f = flows_[index_[slot] - 1];
        if (f.src == src && f.dst == dst)
            break;
        slot = (slot + 1) & mask;
    }
    return slot;
}

flow *flow_table::at(uint32_t src, uint32_t dst)
{
    const size_t slot = slot_of(src, dst);
    if (index_[slot] == 0) {
        if (flows_.size() == flows_.capacity())
            return nullptr;
        flows_.push_back({src, dst, 0, 0, 0});
        slots_.push_back(static_cast<uint32_t>(slot));
        index_[slot] = static_cast<uint32_t>(flows_.size());
    }
    return &flows_[index_[slot] - 1];
}

const flow *flow_table::find(uint32_t src, uint32_t dst) const
{
    const size_t slot = slot_of(src, dst);
    return index_[slot] == 0 ? nullptr : &flows_[index_[slot] - 1];
}

void flow_table::clear()
{
    for (const uint32_t slot : slots_)
        index_[slot] = 0;
    slots_.clear();
    flows_.clear();
}

void flow_table::halve(float least)
{
    for (const uint32_t slot : slots_)
        index_[slot] = 0;
    slots_.clear();
    for (flow &f : flows_) {
        f.bytes *= 0.5;
        f.messages *= 0.5f;
    }
    std::erase_if(flows_, [least](const flow &f) { return f.messages < least; });
    for (size_t i = 0; i < flows_.size(); i++) {
        size_t slot = slot_of(flows_[i].src, flows_[i].dst);
        slots_.push_back(static_cast<uint32_t>(slot));
        index_[slot] = static_cast<uint32_t>(i + 1);
    }
}

void flow_table::swap(flow_table &other) noexcept
{
    flows_.swap(other.flows_);
    slots_.swap(other.slots_);
    index_.swap(other.index_);
}

} // namespace zc::groups
