/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_COMMUNICATORS_H_INCLUDED
#define ZCT_COMMUNICATORS_H_INCLUDED

#include <map>
#include <utility>
#include <vector>

#include "record.h"

namespace zc::zct {

/**
 * Finds which communicators of different ranks are the same one. Creating a
 * communicator is collective over its members, so the n-th that a rank created
 * with a list of members is the n-th with that list at every other member.
 * (Threads that create communicators of the same members at once break this.)
 */
class communicator_names {
  public:
    explicit communicator_names(std::int32_t processes);

    /** Ranks in ascending order, please: the numbers depend on it. Throws error if the run would
        have more members of communicators than can be kept. */
    void add(const file_records &file);

    /** The run's number of a rank's communicator. Throws error for one that was not added. */
    std::uint32_t name(std::int32_t rank, std::uint32_t local) const
    {
        const std::vector<std::uint32_t> &all = names_.at(rank);
        if (local >= all.size())
            throw error("a file has become another one while it was read");
        return all[local];
    }

    std::vector<communicator> take() { return std::move(communicators_); }

  private:
    using groups = std::pair<member_list, member_list>;
    std::vector<std::int32_t> with_strangers(const member_list &list, std::int32_t processes);

    std::uint64_t nr_members_ = 0; /* of all communicators */
    std::vector<communicator> communicators_;
    std::map<groups, std::vector<std::uint32_t>> by_groups_; /* in order of creation */
    std::map<std::int32_t, std::vector<std::uint32_t>> names_;
};

/** World rank of a peer; processes outside the world are numbered from @processes. */
inline std::int32_t world_rank(const file_records &file, std::uint32_t comm, std::int32_t peer)
{
    const members_record &members = file.communicators[comm];
    const std::int32_t rank =
        (members.inter ? members.remote : members.local)[static_cast<std::size_t>(peer)];
    return rank >= 0 ? rank : file.processes + peer;
}

} // namespace zc::zct

#endif
