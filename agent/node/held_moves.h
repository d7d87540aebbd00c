/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_HELD_MOVES_H_INCLUDED
#define ZC_AGENT_HELD_MOVES_H_INCLUDED

#include <string>
#include <vector>

#include "background_mover.h"
#include "held_processes.h"

namespace zc::holder {
struct held_move;
}

namespace zc::agent {

/** Whose rank moves, and where to. */
struct held_errand {
    rank_origin origin;
    std::string
        origin_place; /* HOST or HOST:PORT where zc-hold --listen is there; empty: it is here */
    std::string target_place; /* likewise, of the target */
    std::string why_not;      /* it cannot be asked */
};

/** Adds what was @said of a move to an outcome: what was sent while the rank ran is part of the
 * bytes and of the transfer, from which it is learned what the next move costs. Of several ranks
 * that have moved @at_once each phase takes as long as the one for which it takes longest. */
void tell(const holder::held_move &said, bool at_once, msg::outcome &o);

/** What became of all that o.each tells, of which there is one at least. Bytes and phases are those
 * of ranks that have moved, if any has. @said: of each. @at_once: none had to be tried again. */
void conclude(const std::vector<holder::held_move> &said, bool at_once, msg::outcome &o);

/**
 * Moves of ranks below zc-hold, by the request that zcctl move --transparent makes: to the zc-hold
 * that the launcher has started, which decides. Those of one request leave together. Of each rank
 * an outcome is
 *
 *   refused    by the rank or its zc-hold
 *   failed     for want of the target
 *   timed_out  no answer came in time: the move may go on
 *   unknown    it was not asked, as the agent is ending
 */
class held_moves final : public background_mover {
  public:
    /** @key_file: the key pair of the user's holders. */
    held_moves(std::string key_file, double timeout_s);
    ~held_moves() override;

    /** @errands: of the ranks that are asked for, one each, in the same order. */
    void ask(const msg::ask &wanted, const std::vector<held_errand> &errands);

  private:
    msg::outcome carry_out(const msg::ask &wanted, const std::vector<held_errand> &errands);

    std::string key_file_;
    double timeout_s_;
};

} // namespace zc::agent

#endif
