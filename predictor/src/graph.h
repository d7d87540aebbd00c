/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GRAPH_H_INCLUDED
#define ZCP_GRAPH_H_INCLUDED

#include <array>

#include "cache.h"
#include "predictor.h"

namespace zc::predict {

/**
 * Graph predictor of order 3: Freitag, Farreras, Cortes, Labarta, "Predicting
 * MPI Buffer Addresses", ICCS 2004 (LNCS 3036), section 2.
 *
 * From the paper: a sample is (sender, size, address); a node stands for the
 * last three samples; an edge leads to the sample that followed and counts how
 * often it did; the likeliest successor is predicted, and predictions further
 * ahead walk on over predicted samples.
 *
 * Ours: ties go to the most recent successor; a node keeps kEdges successors
 * and gives up the least frequent; nodes and samples live in bounded caches;
 * communicator and tag, which the paper leaves out, are those a sample was last
 * seen with.
 */
class graph final : public predictor {
  public:
    explicit graph(size_t max_bytes);

    void learn(const zcp_receive_t &receive) noexcept override;
    uint32_t next(std::span<zcp_receive_t> out) const noexcept override;
    size_t bytes() const noexcept override;

  private:
    static constexpr uint32_t kOrder = 3;
    static constexpr uint32_t kEdges = 4;

    /* Samples are named by their hash throughout. */
    using context = std::array<uint64_t, kOrder>;

    struct edge {
        uint64_t sample;
        uint32_t count; /* 0: free */
        uint32_t time;  /* last taken, in events of this node */
    };
    struct node {
        std::array<edge, kEdges> edges;
        uint64_t events;
    };

    static uint64_t node_hash(const context &last);
    static void shift(context &last, uint64_t sample);
    static void count(node &here, uint64_t sample);
    static const edge *likeliest(const node &here);

    cache<uint64_t, zcp_receive_t> samples_;
    cache<uint64_t, node> nodes_;
    context last_{};
    uint32_t seen_ = 0; /* samples so far, up to kOrder */
};

} // namespace zc::predict

#endif
