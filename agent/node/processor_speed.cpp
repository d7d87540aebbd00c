/* SPDX-License-Identifier: BSD-3-Clause */
#include "processor_speed.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>
#include <utility>

namespace zc::agent {
namespace {

/* A hyperthread beside ours makes ours half as fast for as long as it is busy: of 4000 moments on
 * such a machine two in ten were slow, and three in a hundred series of ten, but of series of
 * thirty one in five hundred, and none of a hundred. */
constexpr int kFirstMoments = 30;
constexpr auto kBetween = std::chrono::milliseconds(10);
constexpr int kRuns = 4;                  /* in a moment */
constexpr int kSweeps = 40;               /* 20 us: some of the runs are disturbed by nothing */
constexpr std::size_t kPoints = 1024;     /* of two arrays: 16 KiB */
constexpr nanos kTogether = 60 * kSecond; /* readings that are remembered as one */
constexpr nanos kRemembered = 600 * kSecond;
constexpr double kReference = 1.9e9; /* points per second that are speed 1 */
constexpr double kStep = 1.1;

double time_of_this_thread()
{
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

double in_steps(double speed)
{
    return std::pow(kStep, std::round(std::log(speed) / std::log(kStep)));
}

} // namespace

double time_of_calculation()
{
    [[maybe_unused]] static volatile double sink; /* or the compiler leaves everything out */
    std::array<double, kPoints> from{}, to{};
    from[kPoints / 2] = 1;
    const double begin = time_of_this_thread();
    for (int sweep = 0; sweep < kSweeps; sweep++) {
        for (std::size_t i = 1; i + 1 < kPoints; i++)
            to[i] = 0.25 * from[i - 1] + 0.5 * from[i] + 0.25 * from[i + 1];
        std::swap(from, to);
    }
    sink = from[kPoints / 2];
    return time_of_this_thread() - begin;
}

processor_speed::processor_speed(std::function<double()> run, std::function<void()> wait)
    : run_(run ? std::move(run) : time_of_calculation),
      wait_(wait ? std::move(wait) : [] { std::this_thread::sleep_for(kBetween); })
{
}

double processor_speed::of_a_moment()
{
    double least = INFINITY;
    for (int i = 0; i < kRuns; i++)
        least = std::min(least, run_());
    return kSweeps * kPoints / std::max(least, 1e-9) / kReference;
}

double processor_speed::at(nanos now)
{
    double speed = of_a_moment();
    if (readings_.empty()) {
        for (int i = 1; i < kFirstMoments; i++) {
            wait_();
            speed = std::max(speed, of_a_moment());
        }
    }
    if (readings_.empty() || now >= readings_.back().since + kTogether)
        readings_.push_back({now, speed});
    else
        readings_.back().speed = std::max(readings_.back().speed, speed);
    while (readings_.front().since < now - kRemembered)
        readings_.pop_front();
    return in_steps(
        std::ranges::max(readings_, {}, [](const reading &one) { return one.speed; }).speed);
}

} // namespace zc::agent
