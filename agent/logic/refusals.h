/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_REFUSALS_H_INCLUDED
#define ZC_AGENT_REFUSALS_H_INCLUDED

#include <map>
#include <string>

#include "agent_settings.h"

namespace zc::agent::party {

/**
 * Ranks below zc-hold that have refused to move, and nodes that could not take one. Most reasons
 * last: a window, a file that the other host has not. So neither is asked again before a time has
 * passed, which doubles with each refusal, and the next rank or node has its turn.
 */
class refusals {
  public:
    struct entry {
        std::uint32_t times = 0;
        nanos until = 0;         /* it is not asked before */
        bool is_put_off = false; /* it has not refused the last time */
        std::string why;
    };
    explicit refusals(const settings &s) : s_(s) {}

    /** Returns the entry as it is now. */
    const entry &add(nanos now, const rank_key &rank, const std::string &why);
    const entry &add(nanos now, node_id target, const std::string &why);
    /** It may be on its way still, which is no refusal: it is not asked for the time of one. */
    const entry &put_off(nanos now, const rank_key &rank, const std::string &why);
    /** They have moved, and have taken one. */
    void forget(const rank_key &rank, node_id target);
    /** Whether that rank is not to be asked to go to that node, and why. */
    bool hold_back(nanos now, const rank_key &rank, node_id target, std::string &why) const;
    /** Of a rank; nullptr if it has not refused. */
    const entry *of(const rank_key &rank) const;
    /** Of a node. */
    const entry *of(node_id target) const;
    std::uint64_t counted() const { return counted_; }

  private:
    template <class Key>
    const entry &add(nanos now, std::map<Key, entry> &to, const Key &key, const std::string &why);

    const settings &s_;
    std::map<rank_key, entry> ranks_;
    std::map<node_id, entry> targets_;
    std::uint64_t counted_ = 0;
};

} // namespace zc::agent::party

#endif
