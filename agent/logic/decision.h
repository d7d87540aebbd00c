/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_DECISION_H_INCLUDED
#define ZC_AGENT_DECISION_H_INCLUDED

#include <map>
#include <optional>
#include <string>

#include "candidates.h"
#include "policy.h"
#include "profiling.h"
#include "rank_groups.h"

namespace zc::agent {

/** What a move costs and brings. */
struct balance {
    double before = 0; /* pace of the slower of the two nodes */
    double after = 0;
    double remaining_s = 0; /* of the run, as it goes now */
    double gain_s = 0;
    double cost_s = 0; /* the job stands still so long */
};

/** Ranks to one node, in one step. */
struct plan {
    job_id job = 0;
    std::uint64_t epoch = 0;
    member target;
    std::vector<rank_id> own;
    std::map<node_id, std::vector<rank_id>> borrowed;
    std::uint64_t bytes = 0;
    std::uint32_t moves = 0;
    bool transparent = false; /* ranks below zc-hold, and none is borrowed */
    balance figures;
    std::string why;

    std::vector<rank_id> all() const;
};

struct opinion {
    std::optional<plan> give;
    std::string why; /* not */
};

/** Times of moves, as they were. */
class experience {
  public:
    explicit experience(const settings &s) : spawn_s_{s.spawn, s.spawn} {}
    double spawn_s(bool transparent) const { return spawn_s_[transparent]; }
    void learn(const msg::outcome &o, bool transparent)
    {
        double others = 0; /* all but the transfer, which the bytes explain */
        for (std::size_t i = 0; i < kPhases; i++)
            others += i == 3 ? 0 : o.phase_ms[i];
        if (others > 0)
            spawn_s_[transparent] = 0.5 * spawn_s_[transparent] + 0.5 * others / 1000;
    }

  private:
    double spawn_s_[2]; /* by safe points; below zc-hold */
};

/** Can a node take images of so many bytes? @free_bytes: its memory, 0 if that is not known. */
bool has_memory(std::uint64_t free_bytes, std::uint64_t image_bytes);

/** Seconds that a move with images of so many @bytes to the target of @p takes: its ranks stand
 * still once. */
double move_cost_s(const settings &s, const membership &network, const experience &past,
                   const plan &p, std::uint64_t bytes);
/** Else a move that takes so long would be given up. */
bool has_time_to_move(const settings &s, double cost_s);
/** In words, of one for which there is none. */
std::string too_long_to_move(const settings &s, double cost_s);

/** The decision component: should ranks go to this thief, which, and why. */
class decision {
  public:
    virtual ~decision() = default;
    virtual opinion decide(nanos now, const member &thief, std::span<const msg::link> links,
                           const free_check &free) = 0;
    /** Once more, with what the target says of itself now. Fills figures and why of @p. */
    virtual bool confirm(plan &p, const load_digest &target) = 0;
    /** Would a node with this load take something from one with that? */
    virtual bool worthwhile(const load_digest &thief, const load_digest &victim) const = 0;
};

std::unique_ptr<decision> make_balancing_decision(const settings &s, const profiling &here,
                                                  const membership &network, const grouping &groups,
                                                  const policy &chosen, const experience &past,
                                                  random_source &random);
/** The paper's, to be compared with: one rank, whenever a node is below the threshold. */
std::unique_ptr<decision> make_threshold_decision(const settings &s, const profiling &here,
                                                  const membership &network, const policy &chosen,
                                                  const experience &past, random_source &random);

} // namespace zc::agent

#endif
