/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_FLOW_H_INCLUDED
#define ZCP_GROUPING_FLOW_H_INCLUDED

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

namespace zc::groups {

/** Traffic from @src to @dst. Reals: sums of wild sizes must not wrap, and old traffic decays. */
struct flow {
    uint32_t src;
    uint32_t dst;
    double bytes;
    float messages;
    float confidence;
};

/** One scale for both: an empty message is worth a byte, so that it counts at all. */
inline double weight(const flow &f)
{
    return f.bytes + static_cast<double>(f.messages);
}

/** Sorts by (src, dst) and makes one of equal pairs; the confidence of the larger. In place. */
void add_up_equal_pairs(std::pmr::vector<flow> &flows);

/** Flows by pair of ranks: a fixed number of them, in order of entry. */
class flow_table {
  public:
    flow_table(size_t capacity, std::pmr::memory_resource *memory);

    /** The flow from @src to @dst, made if there is none; NULL if the table is full. */
    flow *at(uint32_t src, uint32_t dst);
    const flow *find(uint32_t src, uint32_t dst) const;
    std::span<const flow> flows() const { return flows_; }
    void clear();
    /** Halves everything and forgets what has become less than @least messages. */
    void halve(float least);
    void swap(flow_table &other) noexcept;

    /** Memory of a table, bytes, at most. */
    static size_t bytes_needed(size_t capacity);

  private:
    size_t slot_of(uint32_t src, uint32_t dst) const;

    std::pmr::vector<flow> flows_;
    std::pmr::vector<uint32_t> slots_; /* of index_, by flow: clearing costs what is in use */
    std::pmr::vector<uint32_t> index_; /* 1 + position in flows_; 0: free */
};

} // namespace zc::groups

#endif
