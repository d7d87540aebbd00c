/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_PLACEMENT_H_INCLUDED
#define ZC_CONTROL_PLACEMENT_H_INCLUDED

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace zc::control {

/** Where ranks go that leave a host at once: each to the host that has the fewest ranks of its job,
 * and those that are on their way there count. Any thread. */
class placement {
  public:
    /** One more rank of @job is on @host. */
    void add(const std::string &job, const std::string &host);
    /** The host for a rank of @job, of @hosts, which are not empty: of several the first. The rank
     * counts there from now on. */
    std::string take(const std::string &job, const std::vector<std::string> &hosts);
    /** It has not come there. */
    void give_back(const std::string &job, const std::string &host);

  private:
    std::mutex mutex_;
    std::map<std::pair<std::string, std::string>, int> ranks_; /* by job and host */
};

} // namespace zc::control

#endif
