/* SPDX-License-Identifier: BSD-3-Clause */
#include "placement.h"

#include <algorithm>

namespace zc::control {

void placement::add(const std::string &job, const std::string &host)
{
    const std::lock_guard lock(mutex_);
    ranks_[{job, host}]++;
}

std::string placement::take(const std::string &job, const std::vector<std::string> &hosts)
{
    const std::lock_guard lock(mutex_);
    const std::string &host = *std::ranges::min_element(hosts, {}, [&](const std::string &each) {
        return ranks_[{job, each}];
    });
    ranks_[{job, host}]++;
    return host;
}

void placement::give_back(const std::string &job, const std::string &host)
{
    const std::lock_guard lock(mutex_);
    ranks_[{job, host}]--;
}

} // namespace zc::control
