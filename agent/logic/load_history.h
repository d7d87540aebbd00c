/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_LOAD_HISTORY_H_INCLUDED
#define ZC_AGENT_LOAD_HISTORY_H_INCLUDED

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "message.h"

namespace zc::agent {

/** One decision, in words and figures. */
struct record {
    std::uint64_t id = 0;
    nanos time = 0;
    std::string what; /* refused, planned, asked, moved, failed, aborted, would_move, hosting */
    txn_id txn;
    job_id job = 0;
    std::vector<rank_id> ranks;
    node_id from = kNoNode;
    node_id to = kNoNode;
    std::string to_host;
    std::string why;
    double before = 0; /* pace of the slower node, without the move and with it */
    double after = 0;
    double gain_s = 0;
    double cost_s = 0;
    std::uint64_t bytes = 0;
    float phase_ms[kPhases] = {};
    std::uint32_t times = 1; /* the same again and again is counted, not repeated */
};

/** The last decisions; the oldest make room. */
class history {
  public:
    static constexpr std::size_t kMost = 1024;

    void add(record r)
    {
        if (!records_.empty()) {
            record &last = records_.back();
            if (last.what == r.what && last.to == r.to && last.job == r.job && last.why == r.why &&
                last.ranks == r.ranks && r.what == "refused") {
                last.times++;
                last.time = r.time;
                return;
            }
        }
        r.id = ++last_id_;
        if (on_record)
            on_record(r);
        records_.push_back(std::move(r));
        if (records_.size() > kMost)
            records_.pop_front();
    }
    const std::deque<record> &records() const { return records_; }

    std::function<void(const record &)> on_record; /* for the log */

  private:
    std::deque<record> records_;
    std::uint64_t last_id_ = 0;
};

} // namespace zc::agent

#endif
