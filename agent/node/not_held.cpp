/* SPDX-License-Identifier: BSD-3-Clause */

/* Of an agent that is built without zc-hold: no rank is below one. */
#include "held_moves.h"

namespace zc::agent {

held_processes::held_processes(std::string, std::string) {}

std::map<rank_key, rank_reading> held_processes::read(std::uint64_t)
{
    return {};
}

const rank_origin *held_processes::origin_of(const rank_key &) const
{
    return nullptr;
}

held_moves::held_moves(std::string key_file, double timeout_s)
    : key_file_(std::move(key_file)), timeout_s_(timeout_s)
{
}

held_moves::~held_moves() = default;

void held_moves::ask(const msg::ask &wanted, const std::vector<held_errand> &)
{
    begin(wanted, [wanted] {
        return msg::outcome{wanted.txn,
                            wanted.job,
                            msg::verdict::refused,
                            0,
                            0,
                            {},
                            "this agent is built without zc-hold"};
    });
}

} // namespace zc::agent
