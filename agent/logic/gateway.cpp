/* SPDX-License-Identifier: BSD-3-Clause */
#include "gateway.h"

namespace zc::agent::party {
namespace {

constexpr std::size_t kMostClosed = 1024;

} // namespace

void gateway::on(node_id from, const msg::ask &m, effects &out)
{
    if (m.txn.decider != from)
        return;
    /* What an earlier life of ours has answered is not known in this one. */
    const char *late = closed_.contains(m.txn) ? "came after it was given up"
                       : m.incarnation != network_.self().incarnation
                           ? "was meant for an earlier life of the agent that reaches the job"
                           : nullptr;
    if (late != nullptr) {
        out.send.push_back(
            {from, "", msg::outcome{m.txn, m.job, msg::verdict::refused, 0, 0, {}, late}});
        return;
    }
    out.ask.push_back(m);
}

void gateway::on(node_id from, const msg::query &m, effects &out)
{
    if (m.txn.decider == from)
        out.query.push_back(m);
}

void gateway::on_job(const msg::outcome &m, effects &out)
{
    if (m.what == msg::verdict::unknown)
        close(m.txn);
    if (m.txn.decider != network_.self().id)
        out.send.push_back({m.txn.decider, "", m});
}

void gateway::close(const txn_id &txn)
{
    if (!closed_.insert(txn).second)
        return;
    closed_order_.push_back(txn);
    if (closed_order_.size() > kMostClosed) {
        closed_.erase(closed_order_.front());
        closed_order_.pop_front();
    }
}

} // namespace zc::agent::party
