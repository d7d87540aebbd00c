/* SPDX-License-Identifier: BSD-3-Clause */
#include "communicators.h"

#include <numeric>

namespace zc::zct {

namespace {

/* Processes outside the world have no rank there: they get one behind it. */
std::vector<std::int32_t> with_strangers(std::vector<std::int32_t> ranks, std::int32_t processes)
{
    for (std::size_t i = 0; i < ranks.size(); i++)
        if (ranks[i] < 0)
            ranks[i] = processes + static_cast<std::int32_t>(i);
    return ranks;
}

} // namespace

communicator_names::communicator_names(std::int32_t processes)
{
    /* World is number 0 even if no file got as far as saying so. */
    std::vector<std::int32_t> world(static_cast<std::size_t>(processes));
    std::iota(world.begin(), world.end(), 0);
    by_groups_[{world, {}}].push_back(0);
    communicators_.push_back({std::move(world), {}});
}

void communicator_names::add(const file_records &file)
{
    std::map<groups, std::size_t> created;
    std::vector<std::uint32_t> &names = names_[file.rank];
    for (const members_record &members : file.communicators) {
        /* The two sides of an intercommunicator call each other remote. */
        groups key{members.local, members.remote};
        if (members.inter && key.second < key.first)
            std::swap(key.first, key.second);
        std::vector<std::uint32_t> &same = by_groups_[key];
        const std::size_t nth = created[std::move(key)]++;
        if (nth == same.size()) {
            same.push_back(static_cast<std::uint32_t>(communicators_.size()));
            communicators_.push_back({with_strangers(members.local, file.processes),
                                      with_strangers(members.remote, file.processes)});
        }
        names.push_back(same[nth]);
    }
}

} // namespace zc::zct
