/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_HELD_MOVES_H_INCLUDED
#define ZC_AGENT_HELD_MOVES_H_INCLUDED

#include <string>

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
};

/** @said of a move, as an outcome has it: what was sent while the rank ran is part of the bytes and
 * of the transfer, from which it is learned what the next move costs. */
void tell(const holder::held_move &said, msg::outcome &o);

/**
 * Moves of ranks below zc-hold, by the request that zcctl move --transparent makes: to the zc-hold
 * that the launcher has started, which decides. An outcome is
 *
 *   refused    by the rank or its zc-hold
 *   failed     for want of the target
 *   timed_out  no answer came in time: the move may go on
 */
class held_moves final : public background_mover {
  public:
    /** @key_file: the key pair of the user's holders. */
    held_moves(std::string key_file, double timeout_s);
    ~held_moves() override;

    void ask(const msg::ask &wanted, const held_errand &what);

  private:
    msg::outcome carry_out(const msg::ask &wanted, const held_errand &what);

    std::string key_file_;
    double timeout_s_;
};

} // namespace zc::agent

#endif
