/* SPDX-License-Identifier: BSD-3-Clause */
#include "rank_time.h"

#include <algorithm>
#include <fstream>
#include <sys/stat.h>

namespace zc::agent {
namespace {

constexpr double kMostWaited = 0.05;   /* of the time that it could have run */
constexpr double kKept = 0.95;         /* of what is known, at each reading */
constexpr int kLeastReadings = 3;      /* the first iterations are not like the others */
constexpr double kLeastIterations = 2; /* in what is kept */
constexpr double kLeastWork = 2e6;     /* ns: the kernel counts finer, but is read at any moment */

std::uint64_t since(std::uint64_t now, std::uint64_t then)
{
    return now - std::min(now, then);
}

} // namespace

std::optional<processor_time> time_of_writer(const zcm_profile &p, int fd, const std::string &proc)
{
    const std::string process = proc + "/" + std::to_string(p.pid);
    struct stat ours, its;
    if (fstat(fd, &ours) != 0 ||
        stat((process + "/fd/" + std::to_string(p.lock)).c_str(), &its) != 0 ||
        ours.st_dev != its.st_dev || ours.st_ino != its.st_ino)
        return {};
    std::ifstream text(process + "/schedstat");
    processor_time time;
    if (!(text >> time.ran_ns >> time.waited_ns))
        return {};
    return time;
}

void rank_work::read(std::uint64_t now_ns, const processor_time &time, std::uint64_t mpi_ns,
                     std::uint64_t iterations, bool counts)
{
    if (last_ && counts) {
        auto ran = static_cast<double>(since(time.ran_ns, last_->time.ran_ns));
        auto waited = static_cast<double>(since(time.waited_ns, last_->time.waited_ns));
        auto outside =
            static_cast<double>(since(since(now_ns, last_->now_ns), since(mpi_ns, last_->mpi_ns)));
        if (waited <= kMostWaited * (ran + waited)) {
            work_ns_ = kKept * work_ns_ + std::min(outside, ran);
            iterations_ =
                kKept * iterations_ + static_cast<double>(since(iterations, last_->iterations));
            readings_++;
        }
    }
    last_ = {now_ns, time, mpi_ns, iterations};
}

double rank_work::seconds() const
{
    if (readings_ < kLeastReadings || iterations_ < kLeastIterations || work_ns_ < kLeastWork)
        return 0;
    return work_ns_ / iterations_ / 1e9;
}

} // namespace zc::agent
