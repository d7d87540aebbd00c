/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_STATE_H_INCLUDED
#define ZC_AGENT_STATE_H_INCLUDED

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "message.h"

namespace zc::agent {

/**
 * What an agent must not forget when it is killed: the move it has asked for and
 * the ranks it has lent. Written before the message that makes it true goes out.
 */
struct saved_state {
    struct intent {
        msg::ask ask;
        node_id by = kNoNode; /* the agent that reaches the job */
        std::vector<node_id> lenders;
        std::vector<member> agents; /* all of these and the target, as they were known */
    };
    struct lease {
        txn_id txn;
        rank_key rank;
        bool operator==(const lease &) const = default;
    };
    node_id id = kNoNode;
    std::uint64_t incarnation = 0;
    std::optional<intent> asked;
    std::vector<lease> leases;
    bool draining = false;
};

std::string to_text(const saved_state &state);
/** Nothing if @text is not what to_text() makes. */
std::optional<saved_state> from_text(std::string_view text);

} // namespace zc::agent

#endif
