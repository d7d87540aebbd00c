/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "process.h"
#include "quiet_thread.h"

namespace zc::migrate {

/**
 * Around calls of MPI that never return when a peer dies: unless it goes out of scope within
 * @timeout_s it ends the job, with @what as its error, as nothing can take this process out of the
 * call and the only honest end is an error; or it does what may end the call.
 */
class watchdog {
  public:
    watchdog(double timeout_s, std::string what)
        : watchdog(timeout_s, [what = std::move(what)] { end_job(-1, what); })
    {
    }
    watchdog(double timeout_s, std::function<void()> act)
        : thread_(quiet_thread([this, timeout_s, act = std::move(act)] {
              std::unique_lock lock(mutex_);
              if (!wake_.wait_for(lock, std::chrono::duration<double>(timeout_s),
                                  [this] { return done_; }))
                  act();
          }))
    {
    }
    ~watchdog()
    {
        {
            std::lock_guard lock(mutex_);
            done_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }
    watchdog(const watchdog &) = delete;
    watchdog &operator=(const watchdog &) = delete;

  private:
    std::mutex mutex_;
    std::condition_variable wake_;
    bool done_ = false;
    std::thread thread_;
};

} // namespace zc::migrate
